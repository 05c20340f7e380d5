"""What a cloud would refuse stands where the job file says it; what no override says stands at the request."""

from __future__ import annotations

import pytest

from cloudtrain.providers import registry
from cloudtrain.providers.checking import check_request
from tests.providers.contexts import context, job_of

HEAD = "name: j\nentry: t.py\nenvironment: {image: a/b}\noverrides:\n"


TAGS = """  sagemaker:
    Tags:
      - {Key: fine, Value: x}
      - {Key: 'a;b', Value: x}
"""
POOL = """  vertex:
    jobSpec:
      workerPoolSpecs:
        "0":
          diskSpec: {bootDiskSizeGb: 9}
"""


@pytest.mark.parametrize(
    ("provider", "overrides", "place", "said"),
    [
        # an unknown field at its key, a wrong value at its value
        ("sagemaker", "  sagemaker:\n    ResourceConfig:\n      VolumeSize: 5\n", "7:7", "'VolumeSizeInGB'?"),
        ("sagemaker", "  sagemaker:\n    ResourceConfig: {VolumeSizeInGB: many}\n", "6:38", "a whole number"),
        # below a list the item's number, or the * that means it
        ("vertex", POOL, "9:38", "100 to 64000"),
        ("vertex", '  vertex: {jobSpec: {workerPoolSpecs: {"*": {diskSpec: {bootDiskSizeGb: 9}}}}}\n', "5:73", "64000"),
        # within a whole list of the job's own
        ("sagemaker", TAGS, "8:15", "a;b"),
        # what is missing because a null took it out, at the null
        ("sagemaker", "  sagemaker:\n    StoppingCondition: null\n", "6:24", "is missing"),
        ("azureml", "  azureml:\n    resources: {instance_cout: 1}\n", "6:17", "'instance_count'?"),
    ],
)
def test_a_problem_is_at_the_override_that_is_to_blame(provider: str, overrides: str, place: str, said: str) -> None:
    job = job_of(HEAD + overrides)
    checked = check_request(job, registry.translate(job, context(job, provider)))
    lines = [str(problem) for problem in checked.problems]
    assert [line for line in lines if line.startswith(f"job.yaml:{place}: overrides.{provider}") and said in line], (
        lines
    )


def test_what_no_override_says_is_a_matter_of_the_request() -> None:
    job = job_of(HEAD.removesuffix("overrides:\n"))
    request = registry.translate(job, context(job, "sagemaker"))
    request.native["StoppingCondition"]["MaxRuntimeInSeconds"] = 0
    (problem,) = check_request(job, request).problems
    assert problem.line == 0
    assert problem.message == "sagemaker request: StoppingCondition.MaxRuntimeInSeconds: 0, at least 1"
