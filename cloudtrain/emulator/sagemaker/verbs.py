"""The calls about training jobs, and the jobs of an emulator: by region and name."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.emulator.base import TakenJob
from cloudtrain.emulator.sagemaker import listing
from cloudtrain.emulator.sagemaker.errors import ApiError, constraints, invalid, no_such_job, over_quota, taken
from cloudtrain.emulator.sagemaker.inspection import inspect, inspect_channels
from cloudtrain.emulator.sagemaker.job import Job, World
from cloudtrain.emulator.sagemaker.record import Record
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import mappings, text, whole
from cloudtrain.providers.sagemaker import schema
from cloudtrain.providers.sagemaker.rules.machines import types_of

if TYPE_CHECKING:
    from cloudtrain.emulator.faults import JobFaults

Asked = Mapping[str, Any]
Answer = dict[str, Any]
_ARN = re.compile(r"arn:[^:]*:sagemaker:(?P<region>[^:]*):[^:]*:training-job/(?P<name>.*)")
_MOST_TAGS = 50


class Call(NamedTuple):
    """One kind of call."""

    shape: str
    """Of its request, in botocore's model."""
    answer: Callable[[Verbs, Asked, str], Answer]
    """From the request and the region."""


class Verbs:
    """What the service does when it is called. Any number of threads may call."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._jobs: dict[tuple[str, str], Job] = {}
        self._threads: list[Job] = []
        self._lock = threading.Lock()
        self._folders = itertools.count()
        self._closed = False
        self.requests: list[dict[str, Any]] = []
        """Every CreateTrainingJob, as it was received."""

    def answer(self, operation: str, asked: Asked, region: str) -> Answer:
        """Raises ApiError."""
        call = CALLS.get(operation)
        if call is None:
            raise ApiError("UnknownOperationException", f"The emulator knows training jobs only, not {operation}.")
        if operation == "CreateTrainingJob":
            self.requests.append(dict(asked))
        elif problems := list(schema.problems(asked, call.shape)):
            raise constraints(problems)
        return call.answer(self, asked, region)

    def jobs(self) -> list[TakenJob]:
        """Of all regions."""
        with self._lock:
            return [TakenJob(name, job.record.is_over) for (_, name), job in self._jobs.items()]

    def close(self) -> None:
        """Take no more jobs, end all that there are, and wait until they have ended."""
        with self._lock:
            self._closed = True
        for job in self._threads:
            job.close()
        for job in self._threads:
            job.join()

    def create(self, native: Asked, region: str) -> Answer:
        """CreateTrainingJob."""
        inspect(native)
        name = text(native, "TrainingJobName")
        self._refuse_taken(region, name)
        faults = self._world.site.faults.job("sagemaker", name)
        made = Record(native, region, self._world.site.clock.now, faults.unknown_state)
        if faults.refuse == "quota":
            raise over_quota(types_of(native)[0], whole(native, "ResourceConfig", "InstanceCount") or 1)
        inspect_channels(native, self._world.clients.s3, region)
        self._begin(made, faults)
        return {"TrainingJobArn": made.arn}

    def describe(self, asked: Asked, region: str) -> Answer:
        """DescribeTrainingJob."""
        return self._job(asked, region).record.describe()

    def stop(self, asked: Asked, region: str) -> Answer:
        """StopTrainingJob."""
        job = self._job(asked, region)
        if job.record.is_over:
            status = job.record.state.status
            raise invalid(f"The request was rejected because the training job is in status {status}.")
        job.stop()
        return {}

    def listed(self, asked: Asked, region: str) -> Answer:
        """ListTrainingJobs."""
        with self._lock:
            jobs = [job.record for (where, _), job in self._jobs.items() if where == region]
        return listing.page(jobs, asked)

    def delete(self, asked: Asked, region: str) -> Answer:
        """DeleteTrainingJob. The name may then be used again."""
        job = self._job(asked, region)
        if not job.record.is_over:
            status = job.record.state.status
            raise ApiError("ResourceInUse", f"The training job is in status {status} and cannot be deleted.")
        with self._lock:
            self._jobs.pop((region, job.record.name), None)
        return {}

    def update(self, asked: Asked, region: str) -> Answer:
        """UpdateTrainingJob, which changes profilers, warm pools and remote debugging: none is here."""
        self._job(asked, region)
        raise invalid("The emulator changes nothing of a job that has been created: this is no answer of AWS.")

    def tags(self, asked: Asked, region: str) -> Answer:
        """ListTags, always in one page: there are at most 50."""
        tags = self._tagged(asked, region).tags
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    def add_tags(self, asked: Asked, region: str) -> Answer:
        """AddTags."""
        record = self._tagged(asked, region)
        new = {text(tag, "Key"): text(tag, "Value") for _, tag in mappings(asked, "Tags")}
        if reserved := next((key for key in new if key.lower().startswith("aws:")), None):
            raise constraints([NativeProblem(("Tags",), f"{reserved!r} begins with aws:, reserved for AWS")])
        with self._lock:
            if len({**record.tags, **new}) > _MOST_TAGS:
                raise invalid(f"The resource may have at most {_MOST_TAGS} tags.")
            record.tags = {**record.tags, **new}
        return {"Tags": [{"Key": key, "Value": value} for key, value in record.tags.items()]}

    def delete_tags(self, asked: Asked, region: str) -> Answer:
        """DeleteTags."""
        record = self._tagged(asked, region)
        with self._lock:
            record.tags = {key: value for key, value in record.tags.items() if key not in asked["TagKeys"]}
        return {}

    def _refuse_taken(self, region: str, name: str) -> None:
        there = self._jobs.get((region, name))
        if there is not None:
            raise taken(there.record.arn)

    def _begin(self, made: Record, faults: JobFaults) -> None:
        with self._lock:
            if self._closed:
                raise ApiError("ServiceUnavailable", "The emulator ends.", 503)
            self._refuse_taken(made.region, made.name)  # as another call may have come in between
            folder = self._world.site.folder / "jobs" / str(next(self._folders))
            folder.mkdir(parents=True)
            job = Job(self._world, made, faults, folder)
            self._jobs[made.region, made.name] = job
            self._threads = [thread for thread in self._threads if thread.is_alive()] + [job]
            job.start()

    def _job(self, asked: Asked, region: str) -> Job:
        with self._lock:
            found = self._jobs.get((region, asked["TrainingJobName"]))
        if found is None:
            raise no_such_job()
        return found

    def _tagged(self, asked: Asked, region: str) -> Record:
        arn = _ARN.fullmatch(asked["ResourceArn"])
        if arn is None or arn["region"] != region:
            raise no_such_job()
        return self._job({"TrainingJobName": arn["name"]}, region).record


CALLS: Mapping[str, Call] = {
    "CreateTrainingJob": Call("CreateTrainingJobRequest", Verbs.create),
    "DescribeTrainingJob": Call("DescribeTrainingJobRequest", Verbs.describe),
    "StopTrainingJob": Call("StopTrainingJobRequest", Verbs.stop),
    "ListTrainingJobs": Call("ListTrainingJobsRequest", Verbs.listed),
    "DeleteTrainingJob": Call("DeleteTrainingJobRequest", Verbs.delete),
    "UpdateTrainingJob": Call("UpdateTrainingJobRequest", Verbs.update),
    "ListTags": Call("ListTagsInput", Verbs.tags),
    "AddTags": Call("AddTagsInput", Verbs.add_tags),
    "DeleteTags": Call("DeleteTagsInput", Verbs.delete_tags),
}
