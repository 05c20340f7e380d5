"""What the service refuses, by the words of its documentation and of public reports; not by our own checks' output."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.vertex.clients import PARENT
from tests.emulator.vertex.conftest import Opened
from tests.emulator.vertex.requests import POOL, changed, custom_job

_POOLS = ("jobSpec", "workerPoolSpecs")
_FIRST = (*_POOLS, 0)
_GPU = {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}

REFUSED = {
    "no name": (("displayName",), None, "display_name"),
    "a name of 129 characters": (("displayName",), "x" * 129, "display_name"),
    "no pools": (_POOLS, [], "job_spec.worker_pool_specs"),
    "five pools": (_POOLS, [POOL] * 5, "job_spec.worker_pool_specs"),
    "two replicas in pool 0": ((*_FIRST, "replicaCount"), "2", "job_spec.worker_pool_specs[0].replica_count"),
    "no image": (
        (*_FIRST, "containerSpec", "imageUri"), None, "job_spec.worker_pool_specs[0].container_spec.image_uri",
    ),
    "no task": ((*_FIRST, "containerSpec"), None, "job_spec.worker_pool_specs[0]"),
    "a type and no count": (
        (*_FIRST, "machineSpec", "acceleratorCount"), None,
        "job_spec.worker_pool_specs[0].machine_spec.accelerator_count",
    ),
    "a count and no type": (
        (*_FIRST, "machineSpec", "acceleratorType"), None,
        "job_spec.worker_pool_specs[0].machine_spec.accelerator_type",
    ),
    "three T4": (
        (*_FIRST, "machineSpec"),
        {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 3},
        "job_spec.worker_pool_specs[0].machine_spec",
    ),
    "a GPU that is not that machine's": (
        (*_FIRST, "machineSpec", "acceleratorType"), "NVIDIA_TESLA_T4", "job_spec.worker_pool_specs[0].machine_spec",
    ),
    "a machine that is not offered": (
        (*_FIRST, "machineSpec"), {"machineType": "c3-standard-4"},
        "job_spec.worker_pool_specs[0].machine_spec.machine_type",
    ),
    "a disk of 99 GB": (
        (*_FIRST, "diskSpec", "bootDiskSizeGb"), 99, "job_spec.worker_pool_specs[0].disk_spec.boot_disk_size_gb",
    ),
    "a disk of 64001 GB": (
        (*_FIRST, "diskSpec", "bootDiskSizeGb"), 64_001, "job_spec.worker_pool_specs[0].disk_spec.boot_disk_size_gb",
    ),
    "101 variables": (
        (*_FIRST, "containerSpec"),
        {"imageUri": "a/b:1", "env": [{"name": f"A{number}", "value": "x"} for number in range(101)]},
        "job_spec.worker_pool_specs[0].container_spec.env",
    ),
    "a variable that is no identifier": (
        (*_FIRST, "containerSpec", "env", 0, "name"), "1A",
        "job_spec.worker_pool_specs[0].container_spec.env[0].name",
    ),
    "a capital in a label": (("labels", "Team"), "vision", "labels.Team"),
    "a label of 65 characters": (("labels", "team"), "x" * 65, "labels.team"),
    "65 labels": (("labels",), {f"l{number}": "x" for number in range(65)}, "labels"),
    "FLEX_START without a GPU of it": (
        ("jobSpec",),
        {
            "workerPoolSpecs": [{**POOL, "machineSpec": {"machineType": "n1-standard-4"}}],
            "scheduling": {"strategy": "FLEX_START", "timeout": "3600s"},
        },
        "job_spec.worker_pool_specs[0].machine_spec.accelerator_type",
    ),
    "FLEX_START for 8 days": (
        ("jobSpec", "scheduling"), {"strategy": "FLEX_START", "timeout": f"{8 * 86_400}s"},
        "job_spec.scheduling.timeout",
    ),
    "an output that is no bucket": (
        ("jobSpec", "baseOutputDirectory"), {"outputUriPrefix": "s3://bucket/x"},
        "job_spec.base_output_directory.output_uri_prefix",
    ),
    "a network by the project's name": (
        ("jobSpec", "network"), "projects/my-project/global/networks/n", "job_spec.network",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_create_is_refused(vertex: Opened, what: str) -> None:
    from google.api_core.exceptions import BadRequest

    path, value, field = REFUSED[what]
    with pytest.raises(BadRequest) as refusal:
        vertex.clients.create(changed(custom_job("refused"), path, value))
    assert f": List of found errors:\t1.Field: {field}; Message: " in refusal.value.message


def test_all_errors_are_listed(vertex: Opened) -> None:
    from google.api_core.exceptions import BadRequest

    job = changed(custom_job(), (*_FIRST, "replicaCount"), "2")
    with pytest.raises(BadRequest) as refusal:
        vertex.clients.create(changed(job, ("displayName",), None))
    assert "\t2.Field: job_spec.worker_pool_specs[0].replica_count; Message: " in refusal.value.message


MILD = {
    "no timeout: it is 7 days": (("jobSpec", "scheduling"), {}),
    "a deprecated strategy": (("jobSpec", "scheduling", "strategy"), "LOW_COST"),
    "retries off beside a restart": (
        ("jobSpec", "scheduling"), {"disableRetries": True, "restartJobOnWorkerRestart": True, "timeout": "60s"}),
    "an answer sent back": (("state",), "JOB_STATE_SUCCEEDED"),
    "colons in the output's path, which the SDK makes": (
        ("jobSpec", "baseOutputDirectory"), {"outputUriPrefix": "gs://b/aiplatform-custom-job-2026-12-01-03:51:39.138"}),
    "a machine without accelerators": ((*_FIRST, "machineSpec"), {"machineType": "n1-standard-4"}),
}  # fmt: skip


@pytest.mark.parametrize("what", MILD)
def test_the_service_is_milder_than_our_own_checks(vertex: Opened, what: str) -> None:
    job = vertex.clients.create(changed(custom_job("mild"), *MILD[what]))
    assert job.state.name == "JOB_STATE_QUEUED"
    vertex.clients.jobs.cancel_custom_job(name=job.name)


BODIES: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "Invalid JSON payload received."),
    "a list": (b"[]", "Invalid JSON payload received."),
    "an unknown field": (b'{"displayname": "x"}', "displayname"),
    "an unknown enum": (
        b'{"displayName": "x", "jobSpec": {"scheduling": {"strategy": "CHEAP"}}}', "CHEAP"),
    "text for a number": (
        b'{"displayName": "x", "jobSpec": {"workerPoolSpecs": [{"replicaCount": "one"}]}}', "replicaCount"),
}  # fmt: skip


@pytest.mark.parametrize("what", BODIES)
def test_a_body_that_is_no_custom_job(vertex: Opened, what: str) -> None:
    import json
    import urllib.error
    import urllib.request

    body, word = BODIES[what]
    call = urllib.request.Request(f"{vertex.url}/v1/{PARENT}/customJobs", data=body)
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(call)
    with refusal.value as answer:
        found: Any = json.loads(answer.read())
    assert (found["error"]["code"], found["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert word in found["error"]["message"]
