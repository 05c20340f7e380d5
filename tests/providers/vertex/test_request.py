"""The peculiarities of a CustomJob; what a field must be is from Google's message types and guides (the fact sheet)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloudtrain.providers import registry
from tests.providers.contexts import context
from tests.providers.vertex.jobs import CPU, GPU, google_types, job, pools, requested, variables

RUN = "gs://my-vertex-bucket/cloudtrain/runs/"


def test_google_reads_the_request_as_it_is_meant() -> None:
    request = requested(GPU, limits={"runtime": "6h"}, spot={"enabled": True}, tags={"team": "vision"})
    types = google_types()
    read = types.CustomJob.from_json(json.dumps(request.native), ignore_unknown_fields=False)
    assert read.display_name == request.name
    first, second = read.job_spec.worker_pool_specs
    assert (first.replica_count, second.replica_count) == (1, 2)
    for pool in (first, second):
        assert pool.machine_spec.machine_type == "a2-ultragpu-8g"
        assert pool.machine_spec.accelerator_type == types.AcceleratorType.NVIDIA_A100_80GB
        assert pool.machine_spec.accelerator_count == 8
        assert (pool.disk_spec.boot_disk_type, pool.disk_spec.boot_disk_size_gb) == ("pd-ssd", 100)
        assert pool.container_spec.env == first.container_spec.env
        assert pool.container_spec.command == first.container_spec.command
        assert not pool.container_spec.args
    scheduling = read.job_spec.scheduling
    assert scheduling.timeout.total_seconds() == 6 * 3600
    assert scheduling.strategy == types.Scheduling.Strategy.SPOT
    assert scheduling.restart_job_on_worker_restart
    assert not scheduling.disable_retries
    assert read.job_spec.service_account == "trainer@my-project.iam.gserviceaccount.com"
    assert read.labels["team"] == "vision"


def test_one_node_is_one_pool_that_restarts_nobody_else() -> None:
    request = requested(CPU)
    (pool,) = pools(request)
    assert pool["replicaCount"] == "1"
    assert set(pool["machineSpec"]) == {"machineType"}
    assert request.native["jobSpec"]["scheduling"] == {"timeout": "604800s"}


def test_the_first_process_is_launch_py_and_no_shell() -> None:
    request = requested(GPU)
    code = next(ship.to for ship in request.ships if ship.kind == "code")
    mounted = code.replace("gs://", "/gcs/")
    for number, pool in enumerate(pools(request)):
        assert pool["containerSpec"]["command"] == ["python3", "-u", f"{mounted}launch.py"]
        assert variables(request, number)["CLOUDTRAIN_CODE"] == f"{mounted}code.tar.gz"


def test_the_run_folder_is_googles_output_folder_so_that_aip_model_dir_is_ours() -> None:
    request = requested(CPU)
    base = request.native["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"]
    run_id = request.spec["run_id"]
    assert base == f"{RUN}{run_id}/"
    assert variables(request)["CLOUDTRAIN_MODEL_DIR"] == f"{base}model/"
    assert variables(request)["CLOUDTRAIN_CHECKPOINT_DIR"] == f"{base}checkpoints/"
    assert variables(request)["CLOUDTRAIN_SPEC"] == f"/gcs/{base[5:]}spec/spec.json"


def test_attempts_differ_in_name_and_share_their_folders() -> None:
    made = job(GPU, checkpoint={"uri": "gs://kept/here"})
    first, second = (registry.translate(made, context(made, "vertex", attempt=attempt)) for attempt in (1, 2))
    assert (first.name[-3:], second.name[-3:]) == ("-a1", "-a2")
    assert first.native["displayName"] == first.name
    for name in ("CLOUDTRAIN_CHECKPOINT_DIR", "CLOUDTRAIN_MODEL_DIR", "CLOUDTRAIN_SPEC"):
        assert variables(first)[name] == variables(second)[name]
    assert variables(first)["CLOUDTRAIN_CHECKPOINT_DIR"] == f"gs://kept/here/{first.spec['run_id']}/"
    assert first.ships == second.ships


def test_labels_find_a_run_whose_create_call_got_no_answer() -> None:
    request = requested(CPU)
    run_id = request.spec["run_id"]
    ours = {"cloudtrain_job": "digits", "cloudtrain_run": run_id, "cloudtrain_attempt": "1"}
    assert request.native["labels"] == ours


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"restartJobOnWorkerRestart": True}),
        ({"retries": {"failure": 4}}, {"restartJobOnWorkerRestart": True}),
        ({"retries": {"preemption": 0}}, {"disableRetries": True}),
        ({"retries": {"preemption": 0, "failure": 4}}, {"disableRetries": True}),
        ({"spot": {"enabled": True}}, {"restartJobOnWorkerRestart": True, "strategy": "SPOT"}),
        ({"spot": {"enabled": True, "max_wait": "2h"}}, {"restartJobOnWorkerRestart": True, "strategy": "SPOT"}),
    ],
)
def test_vertex_repeats_a_job_unless_preemptions_are_not_to_be_repeated(
    changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Repeats are of losses that are none of the script's: launch.py ends with 1, which is final there."""
    assert requested(GPU, **changes).native["jobSpec"]["scheduling"] == {"timeout": "604800s", **expected}


@pytest.mark.parametrize(("spot", "times"), [(False, "3 times"), (True, "6 times")])
def test_that_vertex_counts_repeats_itself_is_said(spot: bool, times: str) -> None:
    told = requested(GPU, retries={"preemption": 1}, spot={"enabled": spot}).notes
    assert any(note.startswith("retries.preemption") and times in note for note in told)
    for other in (requested(GPU), requested(GPU, retries={"preemption": 0})):
        assert not any(note.startswith("retries.preemption") for note in other.notes)


def test_what_vertex_has_no_field_for_travels_as_policy() -> None:
    request = requested(GPU, spot={"enabled": True, "max_wait": "9h"}, limits={"pending": "2h", "cost_usd": 5})
    policy = json.loads(variables(request)["CLOUDTRAIN_POLICY"])
    assert (policy["max_wait"], policy["pending"], policy["cost_usd"]) == ("9h", "2h", 5)
    assert "maxWaitDuration" not in request.native["jobSpec"]["scheduling"]


@pytest.mark.parametrize(
    ("instance", "kind"),
    [
        ("n1-standard-4", "pd-ssd"),
        ("a3-highgpu-8g", "pd-ssd"),
        ("a3-ultragpu-8g", "hyperdisk-balanced"),
        ("a4-highgpu-8g", "hyperdisk-balanced"),
    ],
)
def test_newer_machines_boot_from_hyperdisk(instance: str, kind: str) -> None:
    (pool,) = pools(requested(CPU, resources={"instance": instance, "disk_gib": 500}))
    assert pool["diskSpec"] == {"bootDiskType": kind, "bootDiskSizeGb": 500}


def test_gpu_only_machines_say_their_accelerators_though_the_name_implies_them() -> None:
    (pool,) = pools(requested(CPU, resources={"instance": "g2-standard-24"}))
    machine = {"machineType": "g2-standard-24", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2}
    assert pool["machineSpec"] == machine


def test_a_general_machine_gets_the_accelerators_asked_for() -> None:
    resources = {"instance": "n1-standard-16", "accelerator": "V100-16GB", "accelerators_per_node": 2}
    (pool,) = pools(requested(CPU, resources=resources))
    machine = {"machineType": "n1-standard-16", "acceleratorType": "NVIDIA_TESLA_V100", "acceleratorCount": 2}
    assert pool["machineSpec"] == machine


def test_a_machine_that_the_catalogue_does_not_hold_is_taken_as_written_and_said() -> None:
    resources = {"instance": "a9-newgpu-4g", "accelerator": "L4", "accelerators_per_node": 4}
    request = requested(CPU, resources=resources)
    machine = {"machineType": "a9-newgpu-4g", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 4}
    assert pools(request)[0]["machineSpec"] == machine
    assert any("a9-newgpu-4g is not in the catalogue" in note for note in request.notes)


def test_a_small_h100_machine_without_spot_is_remarked_on() -> None:
    on_demand = requested(CPU, resources={"instance": "a3-highgpu-2g"})
    assert any("Spot or Flex-start" in note for note in on_demand.notes)
    assert not requested(CPU, resources={"instance": "a3-highgpu-2g"}, spot={"enabled": True}).notes[1:]


@pytest.mark.parametrize(
    ("instance", "said"),
    [("a3-highgpu-8g", "sets no variables"), ("a3-ultragpu-8g", "set_nccl_env.sh"), ("g2-standard-4", "")],
)
def test_what_the_fast_network_wants_of_the_image_is_said(instance: str, said: str) -> None:
    request = requested(CPU, resources={"instance": instance, "nodes": 2})
    notes = [note for note in request.notes if "only if the image brings it" in note]
    assert [said in note for note in notes] == ([True] if said else [])
    assert not any("image brings" in note for note in requested(CPU, resources={"instance": instance}).notes)


def test_the_prebuilt_image_is_taken_with_a_warning() -> None:
    request = requested({"name": "digits", "entry": "train.py", "resources": {"instance": "g2-standard-8"}})
    image = pools(request)[0]["containerSpec"]["imageUri"]
    assert image == "europe-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"
    assert any("2026-07-24" in note for note in request.notes)
    assert any(choice.field == "environment.image" for choice in request.chosen)


def test_defaults_are_said() -> None:
    said = {choice.field: choice.value for choice in requested(CPU).chosen}
    assert said["limits.runtime"] == "7d"
    assert said["resources.disk_gib"] == "100"
    assert said["environment.env.GOOGLE_CLOUD_PROJECT"] == "my-project"


def test_googles_libraries_are_told_the_project_unless_the_job_says_another() -> None:
    assert variables(requested(CPU))["GOOGLE_CLOUD_PROJECT"] == "my-project"
    other = requested(CPU, environment={"env": {"GOOGLE_CLOUD_PROJECT": "other"}})
    assert variables(other)["GOOGLE_CLOUD_PROJECT"] == "other"
    assert all(choice.field != "environment.env.GOOGLE_CLOUD_PROJECT" for choice in other.chosen)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("wandb", "projects/my-project/secrets/wandb/versions/latest"),
        ("wandb/versions/3", "projects/my-project/secrets/wandb/versions/3"),
        ("projects/other/secrets/wandb", "projects/other/secrets/wandb/versions/latest"),
        ("projects/123/secrets/wandb/versions/prod", "projects/123/secrets/wandb/versions/prod"),
    ],
)
def test_a_secret_is_a_full_name_in_the_request(given: str, sent: str) -> None:
    request = requested(CPU, environment={"secrets": {"WANDB_API_KEY": {"vertex": given}}})
    assert variables(request)["CLOUDTRAIN_SECRETREF_WANDB_API_KEY"] == sent
    assert "WANDB_API_KEY" not in variables(request)


def test_what_looks_like_a_reference_is_escaped_in_the_request_and_not_in_the_spec() -> None:
    text = "$(date) costs 5$ or $$ in $HOME"
    request = requested(CPU, environment={"env": {"NOTE": text}})
    assert variables(request)["NOTE"] == "$$(date) costs 5$ or $$$$ in $HOME"
    assert request.spec["env"]["NOTE"] == text


def test_mounting_is_the_services_work_and_the_rest_the_launchers() -> None:
    data = {
        "plain": {"uri": "gs://data/plain/"},
        "copied": {"uri": "gs://data/copied/", "mode": "download"},
        "shared": {"uri": "gs://data/shared/", "shard": "by-object"},
    }
    request = requested(CPU, data=data)
    assert variables(request)["CLOUDTRAIN_DATA_PLAIN"] == "gs://data/plain/"
    assert request.spec["channels"] == {
        "copied": {"mode": "download", "shard": "replicate"},
        "shared": {"mode": "mount", "shard": "by-object"},
    }


def test_settings_land_in_their_fields() -> None:
    settings = {
        "network": "projects/123/global/networks/training",
        "kms_key": "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k",
        "prefix": "team/ct",
    }
    native = requested(CPU, settings).native
    assert native["jobSpec"]["network"] == settings["network"]
    assert native["encryptionSpec"] == {"kmsKeyName": settings["kms_key"]}
    assert native["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"].startswith("gs://my-vertex-bucket/team/ct/runs/")


def test_nothing_stands_where_nothing_is_set() -> None:
    native = requested(CPU, {"service_account": ""}).native
    assert set(native) == {"displayName", "jobSpec", "labels"}
    assert set(native["jobSpec"]) == {"workerPoolSpecs", "scheduling", "baseOutputDirectory"}


def test_overrides_are_part_of_the_fingerprint() -> None:
    flex = {"vertex": {"jobSpec": {"scheduling": {"strategy": "FLEX_START", "maxWaitDuration": "7200s"}}}}
    plain, queued = requested(GPU), requested(GPU, overrides=flex)
    assert queued.native["jobSpec"]["scheduling"]["strategy"] == "FLEX_START"
    assert variables(plain)["CLOUDTRAIN_FINGERPRINT"] != variables(queued)["CLOUDTRAIN_FINGERPRINT"]
    assert variables(queued)["CLOUDTRAIN_FINGERPRINT"] == variables(queued, 1)["CLOUDTRAIN_FINGERPRINT"]
    assert not registry.check("vertex", queued.native).problems


def test_a_pool_of_another_kind_gets_nothing_of_ours() -> None:
    reducer = {
        "machineSpec": {"machineType": "n1-highcpu-16"},
        "replicaCount": "2",
        "containerSpec": {
            "imageUri": "europe-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest",
        },
    }
    base = requested(GPU)
    made = job(GPU)
    ours = [
        {**pool, "containerSpec": {**pool["containerSpec"], "env": pool["containerSpec"]["env"][:-1]}}
        for pool in pools(base)
    ]
    overrides = {"vertex": {"jobSpec": {"workerPoolSpecs": [*ours, reducer]}}}
    changed = made.with_(overrides=overrides)
    with_reducer = registry.translate(changed, context(made, "vertex"))
    assert pools(with_reducer)[2] == reducer
    assert variables(with_reducer)["CLOUDTRAIN_FINGERPRINT"]
    assert not registry.check("vertex", with_reducer.native).problems
