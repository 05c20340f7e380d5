"""The shortest program on Google's own SDK that makes the same job; the code is there already."""

import json
import os
import sys
from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform

given = json.loads(Path(sys.argv[1]).read_text())
aiplatform.init(
    project=given["project"],
    location=given["region"],
    staging_bucket=given["bucket"],
    api_endpoint=os.environ["CLOUDTRAIN_ENDPOINT_VERTEX"],
    api_transport="rest",
    credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
)
job = aiplatform.CustomJob(display_name=given["name"], worker_pool_specs=given["pools"])
job.submit()
print(job.resource_name)
