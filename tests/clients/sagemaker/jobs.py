"""SageMaker's training jobs as far as a client meets them: names that are taken, states, a list in pages.

Written from AWS's API reference and botocore's model, apart from the emulator, so that the two do not share a mistake.
What is received is held against botocore's model of the request.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

ARN = "arn:aws:sagemaker:eu-west-1:111122223333:training-job/"
_NO_JOB = (400, {"__type": "ValidationException", "message": "Requested resource not found."})


class Jobs:
    """All jobs of an account, as DescribeTrainingJob tells of them."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, Any]] = {}
        self.received: list[dict[str, Any]] = []
        self.page = 100
        self.endless = False
        """Whether the last page of a list is followed by the first."""
        """At most so many in a page of a list."""

    def answer(self, operation: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body."""
        if operation == "CreateTrainingJob":
            return self._create(asked)
        if operation == "ListTrainingJobs":
            return self._list(asked)
        job = self.known.get(asked["TrainingJobName"])
        if job is None:
            return _NO_JOB
        if operation == "DescribeTrainingJob":
            return 200, job
        if job["TrainingJobStatus"] != "InProgress":
            return 400, {"__type": "ValidationException", "message": "The request was rejected: not InProgress"}
        job |= {"TrainingJobStatus": "Stopping", "SecondaryStatus": "Stopping"}
        return 200, {}

    def set(self, name: str, status: str, secondary: str, **fields: Any) -> None:
        """Change how a job stands."""
        self.known[name] |= {"TrainingJobStatus": status, "SecondaryStatus": secondary, **fields}

    def _create(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.received.append(asked)
        name = asked["TrainingJobName"]
        if problems := list(_unlike_the_model(asked)):
            return 400, {"__type": "ValidationException", "message": "; ".join(problems)}
        if name in self.known:
            text = f"Training job names must be unique within an AWS account and region ({ARN}{name})"
            return 400, {"__type": "ResourceInUse", "message": text}
        shown = {key: value for key, value in asked.items() if key != "Tags"}  # they are not returned
        self.known[name] = {**shown, "TrainingJobArn": ARN + name, "CreationTime": time.time() + len(self.known)}
        self.set(name, "InProgress", "Starting")
        return 200, {"TrainingJobArn": ARN + name}

    def _list(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The page is cut before the filter is applied, so it may be short or empty with more behind it."""
        newest_first = sorted(self.known.values(), key=lambda job: -job["CreationTime"])
        begin = int(asked.get("NextToken", 0))
        end = begin + min(self.page, asked["MaxResults"])
        found = [job for job in newest_first[begin:end] if asked["NameContains"] in job["TrainingJobName"]]
        fields = ("TrainingJobName", "TrainingJobArn", "CreationTime", "TrainingJobStatus", "SecondaryStatus")
        more = {"NextToken": str(end)} if end < len(newest_first) else {}
        more = {"NextToken": "0"} if self.endless else more
        return 200, {"TrainingJobSummaries": [{name: job[name] for name in fields} for job in found], **more}


def _unlike_the_model(asked: dict[str, Any]) -> Iterator[str]:
    from botocore.validate import ParamValidator

    report = ParamValidator().validate(asked, _model().shape_for("CreateTrainingJobRequest"))
    if report.has_errors():
        yield report.generate_report()


@cache
def _model() -> Any:
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    return ServiceModel(Loader().load_service_model("sagemaker", "service-2"))
