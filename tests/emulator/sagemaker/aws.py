"""An account on an emulated AWS: the plane behind its real server, real clients, and programs as jobs.

The programs are small, so containers here are plain processes of theirs: what launch.py makes of a job is in
test_jobs.py.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from cloudtrain.emulator.base import Clock, NodePlan, Site
from cloudtrain.emulator.faults import Faults
from cloudtrain.emulator.sagemaker.plane import open_plane
from cloudtrain.emulator.web import Server

REGION = "eu-west-1"
BUCKET = "a-bucket"
GROUP = "/aws/sagemaker/TrainingJobs"
IMAGE = f"763104351884.dkr.ecr.{REGION}.amazonaws.com/pytorch-training:2.10.0-cpu-py313"
ROLE = "arn:aws:iam::111122223333:role/Training"
LONGEST_WAIT = 60.0
_SESSION = boto3.session.Session()
"""One, since it keeps the models that it has loaded."""


class Processes:
    """Containers as plain processes."""

    def __init__(self, plans: Sequence[NodePlan]) -> None:
        self._all = []
        for plan in plans:
            with plan.log.open("ab") as log:
                self._all.append(
                    subprocess.Popen(
                        [sys.executable, "-u", str(plan.launch)], cwd=plan.cwd, stdout=log, stderr=subprocess.STDOUT,
                        env={"PATH": os.environ["PATH"], **plan.env}, start_new_session=True,
                    )
                )  # fmt: skip
        self.pids = tuple(process.pid for process in self._all)

    def poll(self) -> dict[int, int]:
        found = {node: process.poll() for node, process in enumerate(self._all)}
        return {node: status for node, status in found.items() if status is not None}

    def signal(self, number: int, node: int | None = None) -> None:
        for process in self._all if node is None else [self._all[node]]:
            process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        for process in self._all:
            process.wait()

    def wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while len(self.poll()) < len(self._all) and time.monotonic() < deadline:
            time.sleep(0.01)
        return len(self.poll()) == len(self._all)

    def close(self) -> None:
        self.kill()


class Aws:
    """What a user has: clients, a bucket, and the variables that lead to them."""

    def __init__(self, plane: Any, server: Server, variables: Mapping[str, str]) -> None:
        self.plane = plane
        self.url = server.url
        self.variables = variables
        self._made: list[Any] = []
        self.sagemaker = self.client("sagemaker")
        self.s3 = self.client("s3")
        self.logs = self.client("logs")
        self.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})

    def client(self, service: str, region: str = REGION, attempts: int = 1) -> Any:
        made = _SESSION.client(
            service, region_name=region, endpoint_url=self.url,
            aws_access_key_id=self.variables["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.variables["AWS_SECRET_ACCESS_KEY"],
            config=Config(retries={"mode": "standard", "total_max_attempts": attempts}, proxies={}),
        )  # fmt: skip
        self._made.append(made)
        return made

    def put(self, key: str, content: str | bytes = "x") -> None:
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=content)

    def keys(self, prefix: str = "") -> list[str]:
        found = self.s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [item["Key"] for item in found.get("Contents", ())]

    def read(self, key: str) -> bytes:
        content: bytes = self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return content

    def submit(self, name: str, program: str, **changes: Any) -> str:
        """Put the program into the bucket, and create a job of it."""
        self.put(f"{name}/code/program.py", program)
        self.sagemaker.create_training_job(**request(name, **changes))
        return name

    def describe(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.sagemaker.describe_training_job(TrainingJobName=name)
        return found

    def until(self, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first description for which it holds."""
        return until(lambda: found if holds(found := self.describe(name)) else None, f"{name} gets there")

    def end(self, name: str) -> dict[str, Any]:
        """The description when the job is over."""
        return self.until(name, lambda job: job["TrainingJobStatus"] in ("Completed", "Failed", "Stopped"))

    def streams(self, name: str) -> list[str]:
        found = self.logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=f"{name}/")
        return [stream["logStreamName"] for stream in found["logStreams"]]

    def lines(self, stream: str) -> list[str]:
        """Read to the end, as AWS says it is found: the token stays the same."""
        found, token = [], ""
        while True:
            page = self.logs.get_log_events(
                logGroupName=GROUP, logStreamName=stream, startFromHead=True, **({"nextToken": token} if token else {})
            )
            found += [event["message"] for event in page["events"]]
            if page["nextForwardToken"] == token:
                return found
            token = page["nextForwardToken"]

    def close(self) -> None:
        for client in self._made:
            client.close()


@contextlib.contextmanager
def opened(
    folder: Path, *, faults: str = "", speed: float = 1000.0, start_nodes: Callable[..., Any] = Processes
) -> Iterator[Aws]:
    """An emulator with the faults of a YAML text; afterwards no thread of it is left, and nothing in its folder's
    ``jobs``."""
    before = set(threading.enumerate())
    site_folder = folder / "site"
    site_folder.mkdir()
    wrong = Faults.none()
    if faults:
        (folder / "faults.yaml").write_text(faults)
        wrong = Faults.load(folder / "faults.yaml")
    plane = open_plane(Site(site_folder, Clock(speed), wrong, start_nodes))
    server = Server(plane, wrong, "sagemaker")
    aws = None
    try:
        aws = Aws(plane, server, plane.opened(server.url))
        yield aws
    finally:
        plane.close()
        if aws:
            aws.close()
        server.close()
    until(lambda: not (set(threading.enumerate()) - before), "all threads end")
    assert list((site_folder / "jobs").glob("*")) == []


def request(name: str, **changes: Any) -> dict[str, Any]:
    """A job of one program in the bucket; None as a change takes a field out."""
    made: dict[str, Any] = {
        "TrainingJobName": name,
        "AlgorithmSpecification": {
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python3", "-u", "/opt/ml/input/data/code/program.py"],
        },
        "RoleArn": ROLE,
        "InputDataConfig": [channel("code", f"{name}/code/")],
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/{name}"},
        "ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        **changes,
    }
    return {field: value for field, value in made.items() if value is not None}


def channel(name: str, prefix: str, **changes: Any) -> dict[str, Any]:
    source = {
        "S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/{prefix}", "S3DataDistributionType": "FullyReplicated"
    }  # fmt: skip
    mode = {"InputMode": changes.pop("InputMode")} if "InputMode" in changes else {}
    return {"ChannelName": name, "DataSource": {"S3DataSource": {**source, **changes}}, **mode}


def nodes(count: int) -> dict[str, Any]:
    return {"InstanceType": "ml.m5.xlarge", "InstanceCount": count, "VolumeSizeInGB": 30}


def until(holds: Callable[[], Any], what: str) -> Any:
    """The first answer that is true."""
    deadline = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < deadline:
        if found := holds():
            return found
        time.sleep(0.02)
    raise AssertionError(f"it was waited in vain until {what}")
