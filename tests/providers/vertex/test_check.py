"""What the checks find in requests that overrides, or hands, have changed.

Numbers of enums and lists of fields are held against Google's own types; limits are those of the fact sheet.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cloudtrain.providers import registry
from cloudtrain.providers.vertex.rules import pools as pool_rules
from cloudtrain.providers.vertex.rules import scheduling as scheduling_rules
from tests.providers.vertex.jobs import CPU, GPU, google_types, requested

NETWORK = "projects/1/global/networks/n"
SPECIFIC = {"reservationAffinityType": "SPECIFIC_RESERVATION"}
RESERVATION = "compute.googleapis.com/reservation-name"
REDUCER = "europe-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
PACKAGE = {"executorImageUri": "europe-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"}


def changed(change: Callable[[dict[str, Any]], Any], base: dict[str, Any] = GPU) -> dict[str, Any]:
    native = copy.deepcopy(requested(base).native)
    change(native)
    return native


def found(native: dict[str, Any]) -> dict[str, str]:
    """Where something is found, and what."""
    return {".".join(map(str, p.path)): p.message for p in registry.check("vertex", native).problems}


def job_spec(**fields: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda native: native["jobSpec"].update(fields)


def pool(number: int, **fields: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda native: native["jobSpec"]["workerPoolSpecs"][number].update(fields)


def machine(number: int, **fields: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda native: native["jobSpec"]["workerPoolSpecs"][number]["machineSpec"].update(fields)


def scheduling(**fields: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda native: native["jobSpec"]["scheduling"].update(fields)


def reducer(number: int, kind: str = "n1-highcpu-16") -> Callable[[dict[str, Any]], Any]:
    spec = {"machineSpec": {"machineType": kind}, "replicaCount": "4", "containerSpec": {"imageUri": REDUCER}}
    return lambda native: native["jobSpec"]["workerPoolSpecs"].insert(number, spec)


P0, P1 = "jobSpec.workerPoolSpecs.0", "jobSpec.workerPoolSpecs.1"


@pytest.mark.parametrize(
    ("change", "where", "said"),
    [
        # the job as a whole
        (lambda n: n.update(state="JOB_STATE_RUNNING"), "state", "set by the service"),
        (lambda n: n.update(labels={"1x": "y"}), "labels.1x", "begin with a letter"),
        (job_spec(serviceAccount="trainer"), "jobSpec.serviceAccount", "e-mail"),
        (job_spec(network="default"), "jobSpec.network", "project's number"),
        (job_spec(reservedIpRanges=["r"]), "jobSpec.reservedIpRanges", "needs jobSpec.network"),
        (job_spec(network=NETWORK, pscInterfaceConfig={"networkAttachment": "a"}), "jobSpec.pscInterfaceConfig", "one"),
        (
            job_spec(pscInterfaceConfig={"networkAttachment": "a", "dnsPeeringConfigs": [{"domain": "x.com"}]}),
            "jobSpec.pscInterfaceConfig.dnsPeeringConfigs.0.domain",
            "end with a dot",
        ),
        (job_spec(tensorboard="tb"), "jobSpec.tensorboard", "locations/REGION/tensorboards"),
        (
            job_spec(tensorboard="projects/p/locations/us-east1/tensorboards/1"),
            "jobSpec.tensorboard",
            "europe-west4",
        ),
        (
            job_spec(tensorboard="projects/p/locations/europe-west4/tensorboards/1", serviceAccount=""),
            "jobSpec.tensorboard",
            "needs jobSpec.serviceAccount",
        ),
        (
            job_spec(baseOutputDirectory={"outputUriPrefix": "gs://b-1/a:b"}),
            "jobSpec.baseOutputDirectory.outputUriPrefix",
            "colon",
        ),
        (lambda n: n.update(encryptionSpec={"kmsKeyName": "k"}), "encryptionSpec.kmsKeyName", "keyRings"),
        # pools
        (pool(0, replicaCount="2"), f"{P0}.replicaCount", "exactly 1"),
        (pool(1, replicaCount="0"), f"{P1}.replicaCount", "at least 1"),
        (pool(0, pythonPackageSpec=PACKAGE), P0, "exactly one"),
        (lambda n: n["jobSpec"]["workerPoolSpecs"].append({}), "jobSpec.workerPoolSpecs.2", "only a pool between"),
        (lambda n: n["jobSpec"]["workerPoolSpecs"][0].clear(), P0, "is empty"),
        (pool(1, nfsMounts=[{"server": "1.2.3.4", "path": "/x"}]), f"{P1}.nfsMounts", "private network"),
        (pool(0, diskSpec={"bootDiskType": "pd-balanced"}), f"{P0}.diskSpec.bootDiskType", "hyperdisk-balanced"),
        (machine(0, machineType=""), f"{P0}.machineSpec.machineType", "missing"),
        (machine(0, machineType="c3-standard-4"), f"{P0}.machineSpec.machineType", "not offered"),
        (machine(0, machineType="n1-standard-2"), f"{P0}.machineSpec.machineType", "not offered"),
        (machine(0, machineType="custom-4-8192"), f"{P0}.machineSpec.machineType", "not offered"),
        (machine(1, acceleratorCount=4), f"{P1}.machineSpec", "takes 8 x NVIDIA_A100_80GB; here it has 4 x"),
        (machine(1, acceleratorType=1), f"{P1}.machineSpec.acceleratorType", "K80"),
        (machine(1, acceleratorType="NVIDIA_TESLA_P100"), f"{P1}.machineSpec.acceleratorType", "2026-09-15"),
        (
            machine(0, reservationAffinity=SPECIFIC),
            f"{P0}.machineSpec.reservationAffinity.key",
            "compute.googleapis.com/reservation-name",
        ),
        (
            machine(0, reservationAffinity={**SPECIFIC, "key": RESERVATION, "values": ["mine"]}),
            f"{P0}.machineSpec.reservationAffinity.values.0",
            "zones/ZONE",
        ),
        (reducer(0), "jobSpec.workerPoolSpecs.0", "place is pool 2"),
        # scheduling
        (lambda n: n["jobSpec"]["scheduling"].pop("timeout"), "jobSpec.scheduling.timeout", "7 days"),
        (scheduling(timeout="0s"), "jobSpec.scheduling.timeout", "3600s"),
        (scheduling(strategy="LOW_COST"), "jobSpec.scheduling.strategy", "write SPOT"),
        (scheduling(strategy=1), "jobSpec.scheduling.strategy", "write STANDARD"),
        (scheduling(disableRetries=True), "jobSpec.scheduling.restartJobOnWorkerRestart", "retries.preemption"),
        (scheduling(strategy="SPOT", maxWaitDuration="60s"), "jobSpec.scheduling.maxWaitDuration", "FLEX_START"),
        (scheduling(strategy=6, timeout="604801s"), "jobSpec.scheduling.timeout", "7 days"),
        (
            lambda n: (scheduling(strategy="FLEX_START")(n), job_spec(persistentResourceId="x")(n)),
            "jobSpec.persistentResourceId",
            "FLEX_START",
        ),
        (
            lambda n: (scheduling(strategy="FLEX_START")(n), machine(1, gpuPartitionSize="1g")(n)),
            f"{P1}.machineSpec",
            "differs",
        ),
        (
            lambda n: (
                scheduling(strategy="FLEX_START")(n),
                machine(0, reservationAffinity={"reservationAffinityType": 2})(n),
            ),
            f"{P0}.machineSpec.reservationAffinity",
            "no reservation",
        ),
        (
            lambda n: (scheduling(strategy="FLEX_START")(n), reducer(2)(n)),
            "jobSpec.workerPoolSpecs.2.machineSpec.acceleratorType",
            "no accelerator",
        ),
    ],
)
def test_a_rule_that_no_type_holds(change: Callable[[dict[str, Any]], Any], where: str, said: str) -> None:
    problems = found(changed(change))
    assert said in problems.get(where, ""), problems


@pytest.mark.parametrize(
    ("change", "where", "said"),
    [
        (lambda n: n.update(job_spec={}), "job_spec", "write 'jobSpec'"),
        (job_spec(workerPoolSpec=[]), "jobSpec.workerPoolSpec", "did you mean 'workerPoolSpecs'?"),
        (pool(1, containerSpecs={}), f"{P1}.containerSpecs", "did you mean 'containerSpec'?"),
        (machine(0, acceleratorType="nvidia_l4"), f"{P0}.machineSpec.acceleratorType", "did you mean 'NVIDIA_L4'?"),
        (machine(0, acceleratorType=99), f"{P0}.machineSpec.acceleratorType", "99 is none of AcceleratorType"),
        (scheduling(strategy=5), "jobSpec.scheduling.strategy", "FLEX_START"),
        (scheduling(timeout=3600), "jobSpec.scheduling.timeout", "'3600s'"),
        (scheduling(restartJobOnWorkerRestart="true"), "jobSpec.scheduling.restartJobOnWorkerRestart", "true or false"),
        (job_spec(baseOutputDirectory="gs://b"), "jobSpec.baseOutputDirectory", "outputUriPrefix"),
        (job_spec(workerPoolSpecs={}), "jobSpec.workerPoolSpecs", "must be a list"),
        (job_spec(scheduling=5), "jobSpec.scheduling", "must be a mapping"),
        (lambda n: n.update(labels={"a": 5}), "labels.a", "must be text"),
        (lambda n: n.update(displayName=None), "displayName", "null"),
        (pool(1, replicaCount=1.5), f"{P1}.replicaCount", "whole number"),
        (machine(0, acceleratorCount=2**31), f"{P0}.machineSpec.acceleratorCount", "2147483647"),
    ],
)
def test_what_googles_types_refuse_has_its_place(
    change: Callable[[dict[str, Any]], Any], where: str, said: str
) -> None:
    google_types()
    problems = found(changed(change))
    assert said in problems.get(where, ""), problems


@pytest.mark.parametrize(
    "change",
    [
        pool(1, replicaCount=2),
        machine(0, acceleratorType=9),
        scheduling(timeout="3600.5s"),
        job_spec(enableWebAccess=True, enableDashboardAccess=False, experiment="projects/p/x"),
        job_spec(network=NETWORK, reservedIpRanges=["range"]),
        job_spec(tensorboard="projects/p/locations/europe-west4/tensorboards/1"),
        machine(0, reservationAffinity={"reservationAffinityType": "ANY_RESERVATION"}),
        scheduling(strategy="FLEX_START", maxWaitDuration="0s"),
        reducer(2),
    ],
)
def test_what_the_service_takes_passes(change: Callable[[dict[str, Any]], Any]) -> None:
    assert found(changed(change)) == {}


@pytest.mark.parametrize("instance", ["n1-standard-4", "e2-standard-4", "g2-standard-4"])
def test_flex_start_is_for_some_accelerators(instance: str) -> None:
    native = changed(scheduling(strategy="FLEX_START"), {**CPU, "resources": {"instance": instance}})
    assert bool(found(native)) == (instance != "g2-standard-4")


def test_our_numbers_of_enums_are_googles() -> None:
    types = google_types()
    theirs = {value.value: value.name for value in types.AcceleratorType if value.value}
    assert dict(pool_rules.ACCELERATORS) == theirs
    assert dict(scheduling_rules.STRATEGIES) == {v.value: v.name for v in types.Scheduling.Strategy if v.value}
    kinds = types.ReservationAffinity.Type
    assert dict(pool_rules.AFFINITIES) == {kind.value: kind.name for kind in kinds if kind.value}


def test_without_googles_package_the_rules_still_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where it is not installed: the import itself fails."""
    monkeypatch.setitem(sys.modules, "google.cloud.aiplatform_v1.types.custom_job", None)
    checked = registry.check("vertex", changed(pool(0, replicaCount="2")))
    assert [str(problem) for problem in checked.problems] == [
        "jobSpec.workerPoolSpecs[0].replicaCount: is '2'; pool 0 has exactly 1 replica"
    ]
    assert "pip install 'cloudtrain[vertex]'" in checked.skipped


@pytest.mark.parametrize("junk", [{}, {"jobSpec": 5}, {"jobSpec": {"workerPoolSpecs": [5, None, []]}}, {"labels": [1]}])
def test_the_rules_bear_anything(junk: dict[str, Any]) -> None:
    assert registry.check("vertex", junk).problems
