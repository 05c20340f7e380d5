"""Every field of the job file with every provider: it changes just what it should in the request, or is refused.

The table says where each field lands, read off the services' documentation by hand. What names the run (it holds a
digest of all that is asked for) is left out of the comparison; everything else must stay as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from cloudtrain.job import Job, merged
from cloudtrain.providers import registry
from cloudtrain.providers.base import Request
from cloudtrain.providers.registry import capabilities
from cloudtrain.spec.problems import JobFileError
from tests.providers.contexts import PROVIDERS, context

REFUSED = "refused"
Expected = set[str] | str

_IMAGES = {
    "sagemaker": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/t:{}",
    "vertex": "europe-west4-docker.pkg.dev/p/i/t:{}",
    "azureml": "r.azurecr.io/t:{}",
}
_S = {"sagemaker": "s3://bucket/{}/", "vertex": "gs://bucket/{}/", "azureml": "azureml://datastores/d/paths/{}/"}


def _per(table: Mapping[str, str], *names: str) -> dict[str, str]:
    return {provider: text.format(*names) for provider, text in table.items()}


# Image, machine and limits are named, so that a change of one field is a change of that field alone.
BASE: dict[str, Any] = {
    "name": "base",
    "entry": "train.py",
    "resources": {
        "nodes": 2,
        "accelerator": "A100-40GB",
        "accelerators_per_node": 8,
        "instance": {"sagemaker": "ml.p4d.24xlarge", "vertex": "a2-highgpu-8g", "azureml": "Standard_ND96asr_v4"},
    },
    "environment": {"image": _per(_IMAGES, "1")},
    "data": {"train": {"uri": _per(_S, "train")}},
    "limits": {"runtime": "2h"},
}
CPU = {"sagemaker": "ml.m5.xlarge", "vertex": "n1-standard-4", "azureml": "Standard_D4s_v5"}


class Case(NamedTuple):
    """One change of a job, and where it must show."""

    field: str
    change: dict[str, Any]
    sagemaker: Expected
    vertex: Expected
    azureml: Expected
    spec: frozenset[str] = frozenset()
    """Paths of spec.json, the same for every provider."""
    base: Mapping[str, Any] = MappingProxyType({})
    """What the job has besides BASE, before and after."""


_POOLS = ("jobSpec.workerPoolSpecs.0", "jobSpec.workerPoolSpecs.1")


def _pools(*below: str) -> set[str]:
    return {f"{pool}.{name}" for pool in _POOLS for name in below}


def _variables(*names: str) -> tuple[set[str], set[str], set[str]]:
    """A variable of the container, in the three requests."""
    return (
        {f"Environment.{name}" for name in names},
        _pools(*(f"containerSpec.env.{name}" for name in names)),
        {f"environment_variables.{name}" for name in names},
    )


_POLICY = _variables("CLOUDTRAIN_POLICY")
_NOTHING: tuple[set[str], set[str], set[str]] = (set(), set(), set())
_DESCRIBED = {"description"}  # Azure ML's description says in a sentence what runs where

_STARTED = frozenset({"kind", "target"})

CASES = [
    Case("name", {"name": "other"}, {"Tags.cloudtrain:job"}, {"labels.cloudtrain_job"},
         {"experiment_name", "tags.cloudtrain_job"}),
    Case("entry", {"entry": "other.py"}, set(), set(), _DESCRIBED, spec=frozenset({"target"})),
    Case("module", {"entry": None, "module": "pkg.train"}, set(), set(), _DESCRIBED, spec=_STARTED),
    Case("task", {"entry": None, "task": "t.py:T"}, set(), set(), _DESCRIBED, spec=_STARTED),
    Case("args", {"args": {"lr": "0.1"}}, *_NOTHING, spec=frozenset({"args"})),
    Case("framework", {"framework": "lightning"}, *_NOTHING, spec=frozenset({"framework"})),
    Case("framework=tensorflow", {"framework": "tensorflow"}, REFUSED, REFUSED, REFUSED),
    Case("framework=jax", {"framework": "jax"}, REFUSED, REFUSED, REFUSED),
    Case("framework=dataparallel", {"framework": "dataparallel"}, REFUSED, REFUSED, REFUSED),
    Case("resources.nodes", {"resources": {"nodes": 3}}, {"ResourceConfig.InstanceCount"},
         {"jobSpec.workerPoolSpecs.1.replicaCount"}, {"resources.instance_count"} | _DESCRIBED,
         spec=frozenset({"nodes"})),
    Case("resources.accelerator", {"resources": {"accelerator": "A100-80GB"}}, {"ResourceConfig.InstanceType"},
         _pools("machineSpec.machineType", "machineSpec.acceleratorType"),
         {"resources.instance_type", "resources.shm_size"}, base={"resources": {"instance": None}}),
    Case("resources.accelerators_per_node", {"resources": {"accelerators_per_node": 4}},
         {"ResourceConfig.InstanceType", "Environment.FI_PROVIDER",
          "Environment.RDMAV_FORK_SAFE"},
         _pools("machineSpec.acceleratorCount"),
         {"resources.instance_type", "resources.shm_size"},
         base={"resources": {"accelerator": "T4", "accelerators_per_node": 1, "processes_per_node": 1,
                             "instance": None}}),
    Case("resources.processes_per_node", {"resources": {"processes_per_node": 4}}, set(), set(), _DESCRIBED,
         spec=frozenset({"processes_per_node"})),
    Case("resources.instance", {"resources": {"instance": {"sagemaker": "ml.m5.2xlarge", "vertex": "n1-standard-8",
                                                           "azureml": "Standard_D8s_v5"}}},
         {"ResourceConfig.InstanceType"}, _pools("machineSpec.machineType"),
         {"resources.instance_type", "resources.shm_size"},
         base={"resources": {"accelerator": None, "accelerators_per_node": None, "instance": CPU}}),
    Case("resources.disk_gib", {"resources": {"disk_gib": 300}}, {"ResourceConfig.VolumeSizeInGB"},
         _pools("diskSpec.bootDiskSizeGb"), REFUSED,
         base={"resources": {"accelerator": None, "accelerators_per_node": None, "instance": CPU}}),
    Case("resources.shm_gib", {"resources": {"shm_gib": 3}}, REFUSED, REFUSED, {"resources.shm_size"}),
    Case("environment.image", {"environment": {"image": _per(_IMAGES, "2")}}, {"AlgorithmSpecification.TrainingImage"},
         _pools("containerSpec.imageUri"), {"environment.image"}),
    Case("environment.torch", {"environment": {"torch": "2.3"}}, {"AlgorithmSpecification.TrainingImage"},
         _pools("containerSpec.imageUri"), {"environment.conda_file.dependencies.2.pip.1"},
         base={"environment": {"image": None},
               "resources": {"accelerator": None, "accelerators_per_node": None, "instance": CPU}}),
    Case("environment.requirements", {"environment": {"requirements": "r.txt"}}, *_NOTHING,
         spec=frozenset({"requirements"})),
    Case("environment.env", {"environment": {"env": {"GREETING": "hello"}}}, *_variables("GREETING"),
         spec=frozenset({"env.GREETING"})),
    Case("environment.secrets",
         {"environment": {"secrets": {"KEY": {
             "sagemaker": "arn:aws:secretsmanager:eu-west-1:111122223333:secret:k-AbCdEf",
             "vertex": "projects/my-project/secrets/k", "azureml": "https://vault.vault.azure.net/secrets/k"}}}},
         *_variables("CLOUDTRAIN_SECRETREF_KEY")),
    Case("data.*.uri", {"data": {"train": {"uri": _per(_S, "other")}}},
         {"InputDataConfig.train.DataSource.S3DataSource.S3Uri"}, _pools("containerSpec.env.CLOUDTRAIN_DATA_TRAIN"),
         {"inputs.train.path"}),
    Case("data.*.mode=mount", {"data": {"train": {"mode": "mount"}}}, {"InputDataConfig.train.InputMode"}, set(),
         {"inputs.train.mode"}, base={"data": {"train": {"mode": "download"}}},
         spec=frozenset({"channels.train.mode", "channels.train.shard"})),
    Case("data.*.mode=stream", {"data": {"train": {"mode": "stream"}}}, REFUSED, REFUSED, REFUSED),
    Case("data.*.shard", {"data": {"train": {"shard": "by-object"}}},
         {"InputDataConfig.train.DataSource.S3DataSource.S3DataDistributionType"}, set(), set(),
         spec=frozenset({"channels.train.mode", "channels.train.shard"})),
    Case("outputs.*", {"outputs": {"report": _per(_S, "report")}}, {"Environment.CLOUDTRAIN_OUTPUT_REPORT"},
         _pools("containerSpec.env.CLOUDTRAIN_OUTPUT_REPORT"),
         {"outputs.report.type", "outputs.report.path", "outputs.report.mode", "command"}),
    Case("checkpoint.uri", {"checkpoint": {"uri": _per(_S, "ckpt")}}, {"CheckpointConfig.S3Uri"},
         _pools("containerSpec.env.CLOUDTRAIN_CHECKPOINT_DIR"), {"outputs.cloudtrain_checkpoint.path"}),
    Case("checkpoint.keep", {"checkpoint": {"keep": 9}}, *_NOTHING, spec=frozenset({"env.CLOUDTRAIN_CHECKPOINT_KEEP"})),
    Case("checkpoint.every", {"checkpoint": {"every": "7m"}}, *_NOTHING,
         spec=frozenset({"env.CLOUDTRAIN_CHECKPOINT_EVERY"})),
    Case("spot.enabled", {"spot": {"enabled": True}},
         {"EnableManagedSpotTraining", "StoppingCondition.MaxWaitTimeInSeconds"}, {"jobSpec.scheduling.strategy"},
         {"queue_settings.job_tier", "tags.cloudtrain_spot"}),
    Case("spot.max_wait", {"spot": {"max_wait": "9h"}},
         {"StoppingCondition.MaxWaitTimeInSeconds"} | _POLICY[0], _POLICY[1], _POLICY[2],
         base={"spot": {"enabled": True, "max_wait": "8h"}}),
    Case("retries.preemption", {"retries": {"preemption": 4}}, {"RetryStrategy.MaximumRetryAttempts"} | _POLICY[0],
         _POLICY[1], _POLICY[2]),
    Case("retries.capacity", {"retries": {"capacity": 4}}, *_POLICY),
    Case("retries.failure", {"retries": {"failure": 4}}, *_POLICY),
    Case("limits.runtime", {"limits": {"runtime": "3h"}}, {"StoppingCondition.MaxRuntimeInSeconds"} | _POLICY[0],
         {"jobSpec.scheduling.timeout"} | _POLICY[1], {"limits.timeout"} | _POLICY[2]),
    Case("limits.pending", {"limits": {"pending": "2h"}}, {"StoppingCondition.MaxPendingTimeInSeconds"} | _POLICY[0],
         _POLICY[1], _POLICY[2]),
    Case("limits.cost_usd", {"limits": {"cost_usd": 5}}, *_POLICY),
    Case("tags", {"tags": {"team": "vision"}}, {"Tags.team"}, {"labels.team"}, {"tags.team"}),
    Case("overrides",
         {"overrides": {"sagemaker": {"EnableNetworkIsolation": False}, "azureml": {"description": "mine"},
                        "vertex": {"jobSpec": {"enableWebAccess": True}}}},
         {"EnableNetworkIsolation"}, {"jobSpec.enableWebAccess"}, {"description"}),
]  # fmt: skip

# The folder that ships is in no request: its digest is (test_the_code_is_in_the_request).
ELSEWHERE = {"code", "data.*.mode", "environment.torch"} - {case.field for case in CASES}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.field)
def test_a_field_changes_what_it_should_and_nothing_else(case: Case, provider: str) -> None:
    before = Job.model_validate(_pruned(merged(BASE, case.base)))
    after = Job.model_validate(_pruned(merged(merged(BASE, case.base), case.change)))
    expected = getattr(case, provider)
    first = registry.translate(before, context(before, provider))
    if expected == REFUSED:
        with pytest.raises(JobFileError) as caught:
            registry.translate(after, context(after, provider))
        field = case.field.partition("=")[0].replace("*", "train")
        assert [problem.key for problem in caught.value.problems] == [field]
        assert len(caught.value.problems[0].message) > 20  # a reason, not a shrug
        return
    second = registry.translate(after, context(after, provider))
    changed = _differences(_flat(first), _flat(second))
    spec = {path for path in case.spec if not (provider == "sagemaker" and path.startswith("channels."))}
    if provider == "azureml" and case.field == "data.*.mode=mount":
        spec = set()  # the service copies, not the launcher
    assert changed == {*expected, *(f"spec:{path}" for path in spec)}
    assert first.native != second.native  # the fingerprint, at the least: two different jobs never look alike


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_code_is_in_the_request(provider: str) -> None:
    job = Job.model_validate(BASE)
    first = context(job, provider)
    second = first._replace(bundle="c" * 64)
    one, two = registry.translate(job, first), registry.translate(job, second)
    assert one.ships != two.ships or one.native != two.native


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_field_has_its_capability_and_its_case(provider: str) -> None:
    fields = set(_leaves(Job.model_json_schema()))
    declared = {capability.field for capability in capabilities(provider)}
    assert {name.partition("=")[0] for name in declared} == fields
    assert fields - {case.field.partition("=")[0] for case in CASES} <= ELSEWHERE
    refused = {capability.field for capability in capabilities(provider) if capability.support == "refused"}
    assert refused == {case.field for case in CASES if getattr(case, provider) == REFUSED}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_checkpoint_place_for_others_alone_is_beside_the_run_and_said(provider: str) -> None:
    others = {name: uri for name, uri in _per(_S, "ckpt").items() if name != provider}
    job = Job.model_validate({**BASE, "checkpoint": {"uri": others}})
    request = registry.translate(job, context(job, provider))
    assert f"checkpoint.uri names no place for {provider}: checkpoints are kept beside the run" in request.notes
    assert f"runs/{request.spec['run_id']}/checkpoints/" in json.dumps(request.native)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_output_without_a_place_is_beside_the_run_and_said(provider: str) -> None:
    job = Job.model_validate({**BASE, "outputs": {"report": {"local": "out"}}})
    request = registry.translate(job, context(job, provider))
    assert f"outputs.report names no place for {provider}: it is kept beside the run" in request.notes
    assert f"runs/{request.spec['run_id']}/outputs/report/" in json.dumps(request.native)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_nobody_keeps_yet_is_said(provider: str) -> None:
    job = Job.model_validate({**BASE, "limits": {"runtime": "2h", "cost_usd": 5}, "retries": {"failure": 2}})
    request = registry.translate(job, context(job, provider))
    cost = "limits.cost_usd: nothing ends the run when it has cost 5 USD; limits.runtime bounds it"
    assert cost in request.notes and cost in request.warnings
    assert any("retries.failure: not kept yet" in note for note in request.notes)
    assert set(request.warnings) <= set(request.notes)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_value_for_another_cloud_alone_says_nothing_here(provider: str) -> None:
    others = [name for name in PROVIDERS if name != provider]
    said = {"resources": {"disk_gib": dict.fromkeys(others, 300), "shm_gib": dict.fromkeys(others, 3)},
            "environment": {"torch": dict.fromkeys(others, "2.8")}}  # fmt: skip
    plain, job = Job.model_validate(BASE), Job.model_validate(merged(BASE, said))
    assert registry.translate(job, context(job, provider)) == registry.translate(plain, context(plain, provider))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_another_clouds_machine_is_refused(provider: str) -> None:
    other = PROVIDERS[PROVIDERS.index(provider) - 1]
    job = Job.model_validate(merged(BASE, {"resources": {"instance": {provider: CPU[other]}}}))
    with pytest.raises(JobFileError, match=f"is a machine of {other}, not of {provider}"):
        registry.translate(job, context(job, provider))


def test_a_machine_is_chosen_that_has_the_memory() -> None:
    job = Job.model_validate({"name": "shm", "entry": "train.py", "resources": {"shm_gib": {"azureml": 16}}})
    request = registry.translate(job, context(job, "azureml"))
    assert request.native["resources"]["shm_size"] == "16g"
    assert request.native["resources"]["instance_type"] == "Standard_D4s_v5"  # 16 GiB; the D2s has 8


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_limit_of_spot_capacity_needs_spot_capacity(provider: str) -> None:
    job = Job.model_validate({**BASE, "spot": {"max_wait": "9h"}})
    with pytest.raises(JobFileError, match=r"set spot\.enabled"):
        registry.translate(job, context(job, provider))


def _pruned(value: Any) -> Any:
    """Without what is None: left out."""
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    return value


def _flat(request: Request) -> dict[str, Any]:
    """Path -> value of request and spec, without what names the run."""
    run_id = request.spec["run_id"]
    text = (
        json.dumps({"native": request.native, "spec": request.spec})
        .replace(request.name, "NAME")
        .replace(run_id, "RUN")
    )
    data = json.loads(text)
    found = {f"spec:{path}": value for path, value in _paths(data["spec"])}
    found |= dict(_paths(data["native"]))
    return {path: value for path, value in found.items() if "CLOUDTRAIN_FINGERPRINT" not in path}


def _paths(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Lists of named things (variables, tags, channels) by their names."""
    if isinstance(value, list) and not all(isinstance(item, (dict, list)) for item in value):
        return [(path, value)] if path == "args" or not value else _items(enumerate(value), path)
    if isinstance(value, list):
        return _items(((_name(item, number), _unnamed(item)) for number, item in enumerate(value)), path)
    if isinstance(value, dict):
        return _items(value.items(), path)
    return [(path, value)]


def _items(items: Any, path: str) -> list[tuple[str, Any]]:
    return [found for key, item in items for found in _paths(item, f"{path}.{key}" if path else str(key))]


def _name(item: Any, number: int) -> Any:
    return next((item[key] for key in ("name", "Key", "ChannelName") if key in item), number)


def _unnamed(item: Any) -> Any:
    return item["value"] if set(item) == {"name", "value"} else item["Value"] if set(item) == {"Key", "Value"} else item


def _differences(first: dict[str, Any], second: dict[str, Any]) -> set[str]:
    absent = object()
    return {path for path in {*first, *second} if first.get(path, absent) != second.get(path, absent)}


def _leaves(schema: dict[str, Any]) -> list[str]:
    """Fields of the job file, from its own JSON Schema; names in mappings are ``*``."""
    found = []
    for name, what in schema["properties"].items():
        section = _section(schema, what)
        if name == "version":
            continue
        if section is not None and name in ("data",):
            found += [f"{name}.*.{field}" for field in section["properties"]]
        elif section is not None:
            found += [f"{name}.{field}" for field in section["properties"]]
        else:
            found.append("outputs.*" if name == "outputs" else name)
    return found


def _section(schema: dict[str, Any], what: dict[str, Any]) -> dict[str, Any] | None:
    below = what.get("additionalProperties")
    reference = what.get("$ref") or (below.get("$ref") if isinstance(below, dict) else None)
    return schema["$defs"][reference.rpartition("/")[2]] if reference else None
