"""Requests with one fault each: every fault is found offline, at its place, and the message holds the limit.

The limits are the services', as botocore's model of CreateTrainingJob, Google's and Azure ML's documentation have them:
the numbers here were taken from those by hand.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from cloudtrain.providers import registry
from tests.providers.contexts import PROVIDERS, context
from tests.providers.generate import jobs

Native = dict[str, Any]
Mutation = tuple[Callable[[Native], Any], str, str]
"""What is done to a request, where the problem must be (a part of its path), what its message must hold."""

BASES = 12


def _put(path: str, value: Any) -> Callable[[Native], Any]:
    """Set a field; numbers in the path are items of lists."""

    def mutate(native: Native) -> None:
        *above, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
        holder: Any = native
        for step in above:
            holder = holder.setdefault(step, {}) if isinstance(holder, dict) else holder[step]
        holder[last] = value

    return mutate


def _drop(path: str) -> Callable[[Native], Any]:
    def mutate(native: Native) -> None:
        *above, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
        holder: Any = native
        for step in above:
            holder = holder[step]
        del holder[last]

    return mutate


def _channel(**fields: Any) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x/", "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": "extra", "InputMode": "File", "DataSource": {"S3DataSource": source}, **fields}


def _more(path: str, items: list[Any]) -> Callable[[Native], Any]:
    def mutate(native: Native) -> None:
        *above, last = path.split(".")
        holder: Any = native
        for step in above:
            holder = holder[int(step) if step.isdecimal() else step]
        holder[last] = [*holder.get(last, []), *items]

    return mutate


_METRICS = [{"Name": f"m{n}", "Regex": "x=([0-9.]+)"} for n in range(41)]
_SPOT = {"EnableManagedSpotTraining": True}

SAGEMAKER: list[Mutation] = [
    (_put("TrainingJobName", "a" * 64), "TrainingJobName", "63"),
    (_put("TrainingJobName", "under_score"), "TrainingJobName", "under_score"),
    (_put("TrainingJobName", "ends-"), "TrainingJobName", "ends-"),
    (_put("RoleArn", "arn:aws:iam::1:role/x"), "RoleArn", "arn"),
    (_put("Environment.X", "v" * 513), "Environment.X", "512"),
    (_put("Environment", {f"V{n}": "x" for n in range(101)}), "Environment", "100"),
    (_put("Environment.9X", "x"), "Environment", "9X"),
    (_put("Environment.N", 5), "Environment.N", "5"),
    (_put("AlgorithmSpecification.MetricDefinitions", _METRICS), "MetricDefinitions", "40"),
    (_put("AlgorithmSpecification.TrainingInputMode", "Fast"), "TrainingInputMode", "FastFile"),
    (_put("AlgorithmSpecification.TrainingImage", "r/" + "i" * 254), "TrainingImage", "255"),
    (_put("AlgorithmSpecification.ContainerArguments", ["x" * 257]), "ContainerArguments", "256"),
    (_put("AlgorithmSpecification.ContainerEntrypoint", []), "ContainerEntrypoint", "1"),
    (_put("AlgorithmSpecification.TrainingImag", "x"), "TrainingImag", "TrainingImage"),
    (_put("ResourceConfig.InstanceType", "ml.nope.xlarge"), "InstanceType", "ml."),
    (_put("ResourceConfig.InstanceCount", 0), "InstanceCount", "1"),
    (_put("ResourceConfig.InstanceCount", "2"), "InstanceCount", "2"),
    (_put("ResourceConfig.KeepAlivePeriodInSeconds", 21_601), "KeepAlivePeriodInSeconds", "21600"),
    (_put("StoppingCondition.MaxRuntimeInSeconds", 0), "MaxRuntimeInSeconds", "1"),
    (_put("StoppingCondition.MaxRuntimeInSeconds", 28 * 86_400 + 1), "MaxRuntimeInSeconds", "28"),
    (lambda n: (n.update(_SPOT), n["StoppingCondition"].pop("MaxWaitTimeInSeconds", 0)), "", "MaxWaitTimeInSeconds"),
    (
        lambda n: (n.update(_SPOT), n["StoppingCondition"].update(MaxRuntimeInSeconds=99, MaxWaitTimeInSeconds=98)),
        "",
        "MaxRuntimeInSeconds",
    ),
    (
        lambda n: (n.pop("EnableManagedSpotTraining", 0), n["StoppingCondition"].update(MaxWaitTimeInSeconds=10**6)),
        "MaxWaitTimeInSeconds",
        "EnableManagedSpotTraining",
    ),
    (_put("StoppingCondition.MaxPendingTimeInSeconds", 1799), "MaxPendingTimeInSeconds", "1800"),
    (_put("RetryStrategy", {"MaximumRetryAttempts": 31}), "MaximumRetryAttempts", "30"),
    (_put("Tags", [{"Key": f"k{n}", "Value": "v"} for n in range(51)]), "Tags", "50"),
    (_put("Tags", [{"Key": "k" * 129, "Value": "v"}]), "Tags", "128"),
    (_put("Tags", [{"Key": "k", "Value": "v" * 257}]), "Tags", "256"),
    (_put("Tags", [{"Key": "aws:x", "Value": "v"}]), "Tags", "aws:"),
    (_put("Tags", [{"Key": "no;semicolon", "Value": "v"}]), "Tags", "no;semicolon"),
    (_put("OutputDataConfig.S3OutputPath", "b/x"), "S3OutputPath", "b/x"),
    (_put("OutputDataConfig.S3OutputPath", "s3://b/" + "x" * 1020), "S3OutputPath", "1024"),
    (_put("HyperParameters", {"a": "v" * 2501}), "HyperParameters", "2500"),
    (_more("InputDataConfig", [_channel(ChannelName=f"c{n}") for n in range(21)]), "InputDataConfig", "20"),
    (_more("InputDataConfig", [_channel(), _channel()]), "InputDataConfig", "extra"),
    (_more("InputDataConfig", [_channel(ChannelName="c" * 65)]), "ChannelName", "64"),
    (_more("InputDataConfig", [_channel(InputMode="Pype")]), "InputMode", "Pipe"),
    (_drop("RoleArn"), "", "RoleArn"),
    (_put("TrainingJobNam", "x"), "TrainingJobNam", "TrainingJobName"),
]

_POOL = "jobSpec.workerPoolSpecs.0"
_LABELS = {f"l{n}": "v" for n in range(65)}

VERTEX: list[Mutation] = [
    (_put("displayName", "d" * 129), "displayName", "128"),
    (_drop("displayName"), "", "displayName"),
    (_put("labels", _LABELS), "labels", "64"),
    (_put("labels", {"Upper": "v"}), "labels", "Upper"),
    (_put("labels", {"k": "v" * 65}), "labels", "64"),
    (_put("labels", {"k": "a b"}), "labels", "a b"),
    (_put("label", {}), "label", "labels"),
    (_put("jobSpec.workerPoolSpec", []), "workerPoolSpec", "workerPoolSpecs"),
    (_put(f"{_POOL}.machineSpec.machinType", "x"), "machinType", "machineType"),
    (_put(f"{_POOL}.machineSpec.acceleratorType", "NVIDIA_X"), "acceleratorType", "NVIDIA_X"),
    (
        lambda n: n["jobSpec"]["workerPoolSpecs"][0]["machineSpec"].update(
            acceleratorType="NVIDIA_L4", acceleratorCount=3
        ),
        "",
        "3",
    ),
    (
        lambda n: n["jobSpec"]["workerPoolSpecs"][0].update(
            machineSpec={"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4"}
        ),
        "",
        "acceleratorCount",
    ),
    (
        lambda n: n["jobSpec"]["workerPoolSpecs"][0].update(
            machineSpec={"machineType": "e2-standard-4", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
        ),
        "",
        "e2-standard-4",
    ),
    (
        lambda n: n["jobSpec"]["workerPoolSpecs"][0].update(
            machineSpec={"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_P100", "acceleratorCount": 1}
        ),
        "",
        "P100",
    ),
    (_put(f"{_POOL}.replicaCount", "2"), "replicaCount", "1"),
    (_put(f"{_POOL}.diskSpec.bootDiskSizeGb", 99), "bootDiskSizeGb", "100"),
    (_put(f"{_POOL}.diskSpec.bootDiskSizeGb", 64_001), "bootDiskSizeGb", "64000"),
    (_put(f"{_POOL}.containerSpec.imageUri", ""), "imageUri", "image"),
    (_put(f"{_POOL}.containerSpec.env", [{"name": f"V{n}", "value": "x"} for n in range(101)]), "env", "100"),
    (_put(f"{_POOL}.containerSpec.env", [{"name": "a-b", "value": "x"}]), "env", "a-b"),
    (_put(f"{_POOL}.containerSpec.env", [{"name": "A", "value": 5}]), "env", "5"),
    (_put(f"{_POOL}.pythonPackageSpec", {"executorImageUri": "x"}), "", "pythonPackageSpec"),
    (_put("jobSpec.workerPoolSpecs", []), "workerPoolSpecs", "1"),
    (lambda n: n["jobSpec"].update(workerPoolSpecs=n["jobSpec"]["workerPoolSpecs"] * 5), "workerPoolSpecs", "4"),
    (_put("jobSpec.scheduling.strategy", "SPOTTY"), "strategy", "SPOT"),
    (_put("jobSpec.scheduling.timeout", 3600), "timeout", "3600"),
    (_put("jobSpec.scheduling.timeout", "1h"), "timeout", "1h"),
    (
        lambda n: n["jobSpec"]["scheduling"].update(strategy="STANDARD", maxWaitDuration="60s"),
        "maxWaitDuration",
        "FLEX_START",
    ),
    (_put("jobSpec.network", "projects/my-project/global/networks/x"), "network", "number"),
    (_put("jobSpec.baseOutputDirectory", "gs://b/x"), "baseOutputDirectory", "outputUriPrefix"),
    (
        _put("encryptionSpec", {"kmsKeyName": "projects/p/locations/us-east1/keyRings/r/cryptoKeys/k"}),
        "kmsKeyName",
        "region",
    ),
]

AZUREML: list[Mutation] = [
    (_put("name", "n" * 256), "name", "255"),
    (_put("name", "has space"), "name", "has space"),
    (_put("name", "-x"), "name", "-x"),
    (_put("display_name", "d" * 257), "display_name", "256"),
    (_put("description", "d" * 5001), "description", "5000"),
    (_put("tags", {f"t{n}": "v" for n in range(51)}), "tags", "50"),
    (_put("tags", {"k" * 101: "v"}), "tags", "100"),
    (_put("tags", {"k": "v" * 1001}), "tags", "1000"),
    (_put("environment_variables.X", "${{inputs.a}}"), "environment_variables", "${{"),
    (_put("environment_variables.N", 5), "environment_variables", "5"),
    (_put("resources.instance_count", 0), "instance_count", "1"),
    (_put("resources.instance_count", -1), "instance_count", "1"),
    (_put("resources.shm_size", "16 gigs"), "shm_size", "16 gigs"),
    (_put("resources.instance_typ", "x"), "instance_typ", "instance_type"),
    (_put("resources.shm_size", 16), "shm_size", "16"),
    (_put("inputs", {"a-b": {"type": "uri_folder", "path": "azureml://datastores/d/paths/x"}}), "inputs", "a-b"),
    (_put("inputs", {"a": {"type": "uri_foldr", "path": "azureml://datastores/d/paths/x"}}), "inputs", "uri_folder"),
    (_put("inputs", {"a": {"type": "uri_folder", "path": "s3://b/x"}}), "inputs", "s3://"),
    (_put("outputs", {"a": {"type": "uri_folder", "path": "https://x/y"}}), "outputs", "datastore"),
    (_put("command", ""), "command", "command"),
    (_put("command", "python x ${{inputs.nothing}}"), "command", "nothing"),
    (_put("limits.timeout", 0), "timeout", "1"),
    (_put("limits.timeout", 22 * 86_400), "timeout", "21"),
    (_put("distribution", {"type": "pytorc"}), "distribution", "pytorch"),
    (_put("queue_settings.job_tier", "cheap"), "job_tier", "pot"),
    (_drop("environment"), "", "environment"),
    (_put("environment", "just-a-name"), "environment", "just-a-name"),
    (_put("environment_variable", {}), "environment_variable", "environment_variables"),
    (_put("type", "comand"), "type", "command"),
    (_put("identity", {"type": "me"}), "identity", "managed"),
]

MUTATIONS = {"sagemaker": SAGEMAKER, "vertex": VERTEX, "azureml": AZUREML}
CASES = [(provider, number) for provider in PROVIDERS for number in range(len(MUTATIONS[provider]))]


def test_there_are_two_hundred_for_every_provider() -> None:
    assert all(len(mutations) * BASES >= 200 for mutations in MUTATIONS.values())


@pytest.mark.parametrize(("provider", "number"), CASES)
def test_a_fault_is_found_with_its_limit(provider: str, number: int) -> None:
    mutate, where, limit = MUTATIONS[provider][number]
    for job in jobs(provider, BASES, seed=100 + number):
        native = copy.deepcopy(registry.translate(job, context(job, provider)).native)
        mutate(native)
        problems = registry.check(provider, native).problems
        said = [str(problem) for problem in problems]
        assert any(where in ".".join(map(str, problem.path)) and limit in str(problem) for problem in problems), said
