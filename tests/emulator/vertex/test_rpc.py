"""The same calls by gRPC, which Google's clients speak by default, in a process that has the plane's variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.emulator.vertex.clients import PARENT
from tests.emulator.vertex.conftest import Opened
from tests.emulator.vertex.requests import changed, custom_job
from tests.emulator.vertex.scripts import play

_CALLS = """
import json, os, sys, time
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1 import JobServiceClient
from google.cloud.aiplatform_v1.types import CustomJob
from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

parent, good, bad, ended = sys.argv[1], *map(json.loads, sys.argv[2:4]), sys.argv[4]
options = {"api_endpoint": os.environ["CLOUDTRAIN_ENDPOINT_VERTEX_GRPC"]}
client = JobServiceClient(credentials=AnonymousCredentials(), client_options=options)
assert client.transport.kind == "grpc"
said = {}
try:
    client.create_custom_job(parent=parent, custom_job=CustomJob.from_json(json.dumps(bad)))
except exceptions.InvalidArgument as error:
    said["refused"] = error.message
job = client.create_custom_job(parent=parent, custom_job=CustomJob.from_json(json.dumps(good)))
said["created"] = [job.name, job.state.name, dict(job.labels)]
client.cancel_custom_job(name=job.name)
while "end_time" not in (job := client.get_custom_job(name=job.name)):
    time.sleep(0.02)
said["ended"] = job.state.name
said["listed"] = [found.name for found in client.list_custom_jobs(
    {"parent": parent, "filter": f'display_name="{job.display_name}"', "page_size": 1})]
client.delete_custom_job(name=job.name).result(timeout=20)
try:
    client.get_custom_job(name=job.name)
except exceptions.NotFound as error:
    said["deleted"] = error.message
logs = LoggingServiceV2Client(credentials=AnonymousCredentials(), client_options=options)
wanted = f'resource.labels.job_id="{ended}" AND resource.labels.task_name="workerpool0-0"'
said["lines"] = [entry.json_payload["message"] for entry in logs.list_log_entries(
    {"resource_names": ["projects/my-project"], "filter": wanted, "page_size": 2})]
print(json.dumps(said))
"""


def test_all_calls(vertex: Opened) -> None:
    done = vertex.clients.ended(play(vertex.clients, "by-grpc-lines", "for number in range(5): print(number)").name)
    good = custom_job("by-grpc")
    bad = changed(good, ("jobSpec", "workerPoolSpecs", 0, "replicaCount"), "2")
    words = [PARENT, json.dumps(good), json.dumps(bad), done.name.rpartition("/")[2]]
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CALLS, *words],
        env={**os.environ, **vertex.variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    name, state, labels = said["created"]
    assert name.startswith(f"{PARENT}/customJobs/")
    assert (state, labels) == ("JOB_STATE_QUEUED", good["labels"])
    assert said["refused"].startswith("List of found errors:\t1.Field: job_spec.worker_pool_specs[0].replica_count;")
    assert said["ended"] in ("JOB_STATE_CANCELLED", "JOB_STATE_FAILED")
    assert said["listed"] == [name]
    assert name in said["deleted"]
    assert said["lines"] == ["0", "1", "2", "3", "4"]
    assert vertex.plane.requests[-1] == good
