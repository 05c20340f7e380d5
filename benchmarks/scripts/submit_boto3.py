"""What `cloudtrain submit` asks of AWS for code that is there already, and nothing else: five calls by boto3."""

import json
import sys
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

given = json.loads(Path(sys.argv[1]).read_text())
s3, sagemaker = boto3.client("s3"), boto3.client("sagemaker")
there = s3.list_objects_v2(Bucket=given["bucket"], Prefix=given["code"])["KeyCount"]
try:
    s3.get_object(Bucket=given["bucket"], Key=given["spec"])
except ClientError:
    s3.put_object(Bucket=given["bucket"], Key=given["spec"], Body=json.dumps(given["content"]).encode())
try:
    sagemaker.describe_training_job(TrainingJobName=given["request"]["TrainingJobName"])
except ClientError:
    print(there, sagemaker.create_training_job(**given["request"])["TrainingJobArn"])
