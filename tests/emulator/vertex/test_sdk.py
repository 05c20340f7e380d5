"""``google.cloud.aiplatform``, as its users have it: what it makes of a job, waits for and says of failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.emulator.vertex.conftest import Opened
from tests.emulator.vertex.requests import custom_job
from tests.emulator.vertex.scripts import play

_USES = """
import json, os, sys, time
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform

aiplatform.init(
    project="my-project", location="europe-west4", api_transport="rest", credentials=AnonymousCredentials(),
    api_endpoint=os.environ["CLOUDTRAIN_ENDPOINT_VERTEX"], staging_bucket="gs://cloudtrain-emulator",
)
said = {}
good, bad = (aiplatform.CustomJob(display_name="by-sdk", worker_pool_specs=json.loads(text)) for text in sys.argv[1:3])
good.submit(restart_job_on_worker_restart=True)
while good.end_time is None:
    time.sleep(0.05)
said["ended"] = good.state.name
said["listed"] = [job.resource_name for job in aiplatform.CustomJob.list(filter='display_name="by-sdk"')]
try:
    bad.run()
except RuntimeError as error:
    said["failed"] = str(error)
good.delete()
said["left"] = [job.resource_name for job in aiplatform.CustomJob.list(filter='display_name="by-sdk"')]
said["names"] = [good.resource_name, bad.resource_name]
print(json.dumps(said))
"""


def _pools(script: str) -> str:
    """In the form of the SDK, which has protobuf's names."""
    job: Any = custom_job(env={"PLAY": script, "PLAYGROUND": "by-sdk"})
    (pool,) = job["jobSpec"]["workerPoolSpecs"]
    container = pool["containerSpec"]
    machine = {"machine_type": "n1-standard-4"}
    task = {"image_uri": container["imageUri"], "command": container["command"], "env": container["env"]}
    return json.dumps([{"machine_spec": machine, "replica_count": 1, "container_spec": task}])


def test_custom_job(vertex: Opened) -> None:
    vertex.clients.ended(play(vertex.clients, "puts-the-script-there", "").name)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _USES, _pools("print('by the SDK')"), _pools("sys.exit(1)")],
        env={**os.environ, **vertex.variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    good, bad = said["names"]
    assert said["ended"] == "JOB_STATE_SUCCEEDED"
    assert said["listed"] == [good]
    assert said["failed"].startswith('Job failed with:\ncode: 3\nmessage: "The replica workerpool0-0 exited with')
    assert said["left"] == [bad]
    output = vertex.plane.requests[-2]["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"]
    assert output.startswith("gs://cloudtrain-emulator/aiplatform-custom-job-")
