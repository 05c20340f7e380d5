"""Programs on the vendors' own SDKs, which know nothing of cloudtrain, inside `cloudtrain emulate`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.local.project import CLOUDTRAIN

LIMIT_SECONDS = 600
JOB = "name: plain\nentry: train.py\nresources: {nodes: 2}\n"

SUBMITS = """
set -e
for cloud in sagemaker vertex azureml; do cloudtrain submit job.yaml --provider $cloud --follow --quiet; done
cloudtrain runs --json > runs.json
for program in aws.py gcs.py mlclient.py; do python -W ignore $program > $program.json; done
"""

AWS = """
import json, os
import boto3

sagemaker, s3 = boto3.client("sagemaker"), boto3.client("s3")
jobs = sagemaker.list_training_jobs(NameContains="plain")["TrainingJobSummaries"]
job = sagemaker.describe_training_job(TrainingJobName=jobs[0]["TrainingJobName"])
bucket = job["OutputDataConfig"]["S3OutputPath"].split("/")[2]
objects = s3.list_objects_v2(Bucket=bucket)["Contents"]
streams = boto3.client("logs").describe_log_streams(
    logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix=job["TrainingJobName"]
)["logStreams"]
print(json.dumps({
    "jobs": [[job["TrainingJobName"], job["TrainingJobStatus"]] for job in jobs],
    "instances": job["ResourceConfig"]["InstanceCount"],
    "objects": [found["Key"] for found in objects], "streams": len(streams),
}))
"""

GCS = """
import json, os
from google.cloud import storage

client = storage.Client()
names = [bucket.name for bucket in client.list_buckets()]
print(json.dumps({"buckets": names, "objects": [blob.name for blob in client.list_blobs(names[0])]}))
"""

MLCLIENT = """
import json, os, time
from azure.ai.ml import MLClient
from azure.core.credentials import AccessToken

class Somebody:
    def get_token(self, *scopes, **options):
        return AccessToken("e30.e30.e30", int(time.time()) + 3600)

env = os.environ
client = MLClient(
    Somebody(), env["CLOUDTRAIN_AZUREML_SUBSCRIPTION"], env["CLOUDTRAIN_AZUREML_RESOURCE_GROUP"],
    env["CLOUDTRAIN_AZUREML_WORKSPACE"],
)
print(json.dumps({"jobs": [[job.name, job.status] for job in client.jobs.list()]}))
"""


def test_they_see_the_jobs_and_files_of_a_submit(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    files = {"job.yaml": JOB, "train.py": "print('there is nothing to do')\n", "aws.py": AWS, "gcs.py": GCS}
    for name, content in {**files, "mlclient.py": MLCLIENT}.items():
        (project / name).write_text(content)
    env = {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "CLOUDTRAIN_HOME": str(tmp_path / "home"),
    }
    done = subprocess.run(
        [CLOUDTRAIN, "emulate", "--", "sh", "-c", SUBMITS], cwd=project, env=env, capture_output=True, text=True,
        timeout=LIMIT_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    native = {run["provider"]: run["native_name"] for run in json.loads((project / "runs.json").read_text())}
    aws, gcs, azure = (json.loads((project / f"{name}.py.json").read_text()) for name in ("aws", "gcs", "mlclient"))
    assert aws["jobs"] == [[native["sagemaker"], "Completed"]]
    assert (aws["instances"], aws["streams"]) == (2, 2)
    assert any(key.startswith("cloudtrain/") for key in aws["objects"])
    assert gcs["buckets"] == ["cloudtrain-emulator"]
    assert any(native["vertex"] in name or name.startswith("cloudtrain/") for name in gcs["objects"])
    assert azure["jobs"] == [[native["azureml"], "Completed"]]
