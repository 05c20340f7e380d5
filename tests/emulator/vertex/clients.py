"""Google's own clients, pointed at an emulator: nothing of it is replaced or patched."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # on import, of Python versions near their end
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import logging, storage
    from google.cloud.aiplatform_v1.services.job_service import JobServiceClient

PROJECT, REGION = "my-project", "europe-west4"
PARENT = f"projects/{PROJECT}/locations/{REGION}"
BUCKET = "cloudtrain-emulator"
_LIMIT_SECONDS = 240.0


class Clients:
    """What a user of the services has."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        """``variables``: those that the plane names."""
        options = {"api_endpoint": variables["CLOUDTRAIN_ENDPOINT_VERTEX"]}
        self.jobs = JobServiceClient(credentials=AnonymousCredentials(), transport="rest", client_options=options)
        self.logs = logging.Client(
            project=PROJECT,
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": variables["CLOUDTRAIN_ENDPOINT_LOGGING"]},
            _use_grpc=False,
        )
        self.storage = storage.Client(
            project=PROJECT,
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": variables["STORAGE_EMULATOR_HOST"]},
        )

    @property
    def bucket(self) -> Any:
        return self.storage.bucket(BUCKET)

    def create(self, native: Mapping[str, Any]) -> Any:
        """Send a CustomJob given in its JSON form."""
        from google.cloud.aiplatform_v1.types import CustomJob

        job = CustomJob.from_json(_json(native), ignore_unknown_fields=False)
        return self.jobs.create_custom_job(parent=PARENT, custom_job=job)

    def state(self, name: str) -> str:
        return str(self.jobs.get_custom_job(name=name).state.name).removeprefix("JOB_STATE_")

    def until(self, name: str, found: Callable[[Any], bool]) -> Any:
        """Poll a job until it is as wanted."""
        return until(lambda: self.jobs.get_custom_job(name=name), found)

    def ended(self, name: str) -> Any:
        """The job when it is over, with its error if it gets one, which comes later."""
        ended = self.until(name, lambda job: "end_time" in job)
        if ended.state.name == "JOB_STATE_SUCCEEDED":
            return ended
        return self.until(name, lambda job: bool(job.error.code))

    def lines(self, name: str, task: str = "") -> list[str]:
        """What the log holds of a job, in its order."""
        return [entry.payload["message"] for entry in self.entries(name, task)]

    def entries(self, name: str, task: str = "") -> list[Any]:
        job = self.jobs.get_custom_job(name=name)
        wanted = f'resource.type="ml_job" AND resource.labels.job_id="{name.rpartition("/")[2]}"'
        wanted += f' AND timestamp>="{job.create_time.rfc3339()}"'
        wanted += f' AND resource.labels.task_name="{task}"' if task else ""
        return list(self.logs.list_entries(filter_=wanted, order_by=logging.ASCENDING, page_size=1000))

    def close(self) -> None:
        self.jobs.transport.close()
        self.logs.close()
        self.storage.close()


def until(look: Callable[[], Any], found: Callable[[Any], bool]) -> Any:
    """Look again and again; AssertionError if it takes too long."""
    deadline = time.monotonic() + _LIMIT_SECONDS
    while True:
        seen = look()
        if found(seen):
            return seen
        assert time.monotonic() < deadline, seen
        time.sleep(0.02)


def _json(native: Mapping[str, Any]) -> str:
    import json

    return json.dumps(native)
