"""What Azure ML wants otherwise than others do, and the traps of its jobs."""

from __future__ import annotations

import re

import pytest

from tests.providers.azureml.jobs import DATASTORE, GPUS, TRAIN, native, request


def test_one_node_gets_no_distribution_and_more_get_one_process_each() -> None:
    assert "distribution" not in native()
    assert native(resources={"nodes": 2})["distribution"] == {"type": "pytorch", "process_count_per_instance": 1}
    assert native(resources=GPUS)["distribution"]["process_count_per_instance"] == 1


def test_launch_py_takes_the_place_of_the_shell() -> None:
    command = native(data=TRAIN, outputs={"preds": f"{DATASTORE}preds/"})["command"]
    assert command.startswith("exec env ")
    assert command.endswith(" python3 -u launch.py")
    assert 'CLOUDTRAIN_SPEC="${{inputs.cloudtrain_spec}}/spec.json"' in command
    assert re.findall(r'(\w+)="\$\{\{(.*?)\}\}"', command.replace("/spec.json", "")) == [
        ("CLOUDTRAIN_SPEC", "inputs.cloudtrain_spec"),
        ("CLOUDTRAIN_DATA_TRAIN", "inputs.train"),
        ("CLOUDTRAIN_CHECKPOINT_DIR", "outputs.cloudtrain_checkpoint"),
        ("CLOUDTRAIN_MODEL_DIR", "outputs.cloudtrain_model"),
        ("CLOUDTRAIN_OUTPUT_DIR", "outputs.cloudtrain_output"),
        ("CLOUDTRAIN_METRICS_DIR", "outputs.cloudtrain_metrics"),
        ("CLOUDTRAIN_OUTPUT_PREDS", "outputs.preds"),
    ]


def test_paths_are_put_into_the_command_only() -> None:
    form = native(data=TRAIN, environment={"env": {"WHERE": "${data.train}"}})
    assert form["environment_variables"]["WHERE"] == "${data.train}"
    assert not [value for value in form["environment_variables"].values() if "${{" in value]


def test_the_code_is_the_snapshot_and_the_spec_lies_beside_the_run() -> None:
    made = request()
    place = f"azureml://datastores/workspaceblobstore/paths/cloudtrain/runs/{made.spec['run_id']}/spec/"
    assert made.native["code"] == "./code"
    assert [(ship.kind, ship.to) for ship in made.ships] == [("code", "code/"), ("spec", place)]
    assert made.native["inputs"] == {"cloudtrain_spec": {"type": "uri_folder", "path": place, "mode": "download"}}
    variables = made.native["environment_variables"]
    assert variables["CLOUDTRAIN_CODE"] == "code.tar.gz"
    assert "CLOUDTRAIN_SPEC" not in variables  # nothing is replaced there
    assert request(attempt=2).native["inputs"] == made.native["inputs"]


def test_every_attempt_finds_the_folders_of_the_run_again() -> None:
    first, second = request(attempt=1), request(attempt=2)
    run = first.native["tags"]["cloudtrain_run"]
    assert first.name == f"{run}-a1"
    assert second.name == f"{run}-a2"
    assert first.native["outputs"] == second.native["outputs"]
    place = f"azureml://datastores/workspaceblobstore/paths/cloudtrain/runs/{run}/checkpoints/"
    wanted = {"type": "uri_folder", "path": place, "mode": "rw_mount"}
    assert first.native["outputs"]["cloudtrain_checkpoint"] == wanted


def test_a_place_for_checkpoints_gets_a_folder_for_the_run() -> None:
    form = native(checkpoint={"uri": {"azureml": f"{DATASTORE}kept"}})
    assert form["outputs"]["cloudtrain_checkpoint"]["path"] == f"{DATASTORE}kept/{form['tags']['cloudtrain_run']}/"


def test_a_name_is_lower_case_and_has_at_most_63_characters() -> None:
    name = native(name="n" * 40)["name"]
    assert len(name) <= 63
    assert name == name.lower()


def test_serverless_gets_the_size_and_no_compute() -> None:
    for compute in ("", "serverless"):  # the service knows no cluster of that name
        form = native(resources=GPUS, compute=compute)
        assert "compute" not in form
        assert form["resources"]["instance_type"] == "Standard_ND96amsr_A100_v4"


def test_a_cluster_decides_its_size() -> None:
    made = request(resources=GPUS, compute="gpu-cluster")
    assert made.native["compute"] == "azureml:gpu-cluster"
    assert "instance_type" not in made.native["resources"]
    assert any("gpu-cluster decides the VM size" in note for note in made.notes)
    assert "resources.instance" not in {choice.field for choice in made.chosen}


def test_a_size_that_the_job_names_goes_to_a_cluster_too() -> None:
    made = request(resources={"instance": {"azureml": "Standard_NC24ads_A100_v4"}}, compute="kube")
    assert made.native["resources"]["instance_type"] == "Standard_NC24ads_A100_v4"
    assert any("only Kubernetes compute heeds" in note for note in made.notes)


def test_a_cluster_may_have_what_the_catalogue_has_not() -> None:
    resources = {"accelerator": "L4"}  # Azure rents none
    made = request(resources=resources, environment={"image": "r.azurecr.io/t:1"}, compute="kube")
    assert any("azureml has no L4" in note for note in made.notes)


def test_low_priority_is_asked_for_where_a_request_can() -> None:
    assert native(spot={"enabled": True})["queue_settings"] == {"job_tier": "Spot"}
    assert "queue_settings" not in native()
    on_cluster = request(spot={"enabled": True}, compute="gpu-cluster")
    assert "queue_settings" not in on_cluster.native
    assert on_cluster.native["tags"]["cloudtrain_spot"] == "true"
    assert any("vm_priority" in note for note in on_cluster.notes)


def test_shared_memory_is_half_the_machines_unless_the_job_says() -> None:
    assert native(resources={"shm_gib": 16})["resources"]["shm_size"] == "16g"
    assert native(resources=GPUS)["resources"]["shm_size"] == "950g"  # of 1900 GiB
    assert native(resources=GPUS, compute="gpu-cluster")["resources"]["shm_size"] == "8g"
    assert "resources.shm_gib" in {choice.field for choice in request().chosen}


@pytest.mark.parametrize(("mode", "native_mode"), [(None, "ro_mount"), ("mount", "ro_mount"), ("download", "download")])
def test_modes_of_channels(mode: str | None, native_mode: str) -> None:
    made = request(data={"train": {**TRAIN["train"], "mode": mode}})
    wanted = {"type": "uri_folder", "path": f"{DATASTORE}train/", "mode": native_mode}
    assert made.native["inputs"]["train"] == wanted
    assert list(made.native["inputs"]) == ["cloudtrain_spec", "train"]
    assert "channels" not in made.spec


@pytest.mark.parametrize("mode", ["mount", "download"])
def test_the_launcher_shards_what_is_mounted_whole(mode: str) -> None:
    """Downloading all objects to every node, to use a share of them, is what by-object is there to avoid."""
    made = request(data={"train": {**TRAIN["train"], "mode": mode, "shard": "by-object"}})
    assert made.native["inputs"]["train"]["mode"] == "ro_mount"
    assert made.spec["channels"] == {"train": {"mode": mode, "shard": "by-object"}}


@pytest.mark.parametrize(
    "uri",
    [
        "azureml://datastores/data/paths/train/",
        "azureml://subscriptions/s/resourcegroups/g/workspaces/w/datastores/data/paths/train/",
        "azureml://registries/r/data/digits/versions/3",
        "azureml:digits:3",
        "azureml:digits@latest",
        "wasbs://container@account.blob.core.windows.net/train/",
        "abfss://container@account.dfs.core.windows.net/train/",
        "https://account.blob.core.windows.net/container/train/",
    ],
)
def test_places_that_are_read(uri: str) -> None:
    assert native(data={"train": {"uri": uri}})["inputs"]["train"]["path"] == uri


@pytest.mark.parametrize(
    ("image", "environment"),
    [
        ("r.azurecr.io/team/train:1.2", {"image": "r.azurecr.io/team/train:1.2"}),
        ("localhost:5000/train@sha256:" + "a" * 64, {"image": "localhost:5000/train@sha256:" + "a" * 64}),
        ("azureml:mine:4", "azureml:mine:4"),
        ("AzureML-acpt-pytorch-2.8-cuda12.6:3", "azureml:AzureML-acpt-pytorch-2.8-cuda12.6:3"),
        ("azureml://registries/azureml/environments/acpt/versions/3",) * 2,
    ],
)
def test_forms_of_images(image: str, environment: object) -> None:
    assert native(environment={"image": {"azureml": image}})["environment"] == environment


def test_a_label_is_said_to_move() -> None:
    made = request(environment={"image": "azureml://registries/azureml/environments/acpt/labels/latest"})
    assert any("tomorrow" in note for note in made.notes)
    assert not request(environment={"image": "azureml:mine:4"}).notes


def test_a_version_of_torch_beside_a_named_image_is_said_to_be_unchecked() -> None:
    assert any("torch" in note for note in request(environment={"image": "r.io/t:1", "torch": "2.8"}).notes)


def test_the_service_builds_an_image_for_cpus() -> None:
    environment = native()["environment"]
    assert environment["image"] == "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
    assert environment["conda_file"]["dependencies"]


@pytest.mark.parametrize(("setting", "word"), [("managed", "managed"), ("user", "user_identity"), ("aml_token",) * 2])
def test_identities(setting: str, word: str) -> None:
    assert native(identity=setting)["identity"] == {"type": word}


@pytest.mark.parametrize("cloud", ["vault.azure.net", "vault.azure.cn", "vault.usgovcloudapi.net"])
def test_vaults_of_all_of_azures_clouds_are_known(cloud: str) -> None:
    """As launch.py reads them."""
    place = f"https://team-vault.{cloud}/secrets/wandb"
    made = request(environment={"secrets": {"KEY": {"azureml": place}}}, identity="managed")
    assert made.native["environment_variables"]["CLOUDTRAIN_SECRETREF_KEY"] == place


def test_secrets_are_references_and_their_reader_is_asked_for() -> None:
    place = "https://team-vault.vault.azure.net/secrets/wandb"
    made = request(environment={"secrets": {"WANDB_API_KEY": {"azureml": place}}})
    assert made.native["environment_variables"]["CLOUDTRAIN_SECRETREF_WANDB_API_KEY"] == place
    assert any("identity" in note for note in made.notes)
    with_reader = request(environment={"secrets": {"WANDB_API_KEY": {"azureml": place}}}, identity="user")
    assert not any("identity" in note for note in with_reader.notes)


def test_network_variables_are_for_several_nodes_and_the_job_wins() -> None:
    assert "NCCL_SOCKET_IFNAME" not in native(resources={**GPUS, "nodes": 1})["environment_variables"]
    variables = native(resources=GPUS, environment={"env": {"NCCL_IB_DISABLE": "1"}})["environment_variables"]
    assert variables["NCCL_SOCKET_IFNAME"] == "eth0"
    assert variables["NCCL_IB_DISABLE"] == "1"


def test_another_nodes_files_are_seen_and_the_last_checkpoint_is_waited_for() -> None:
    variables = native()["environment_variables"]
    assert int(variables["DATASET_MOUNT_ATTRIBUTE_CACHE_TTL"]) < 600  # unset, attributes are kept for ever
    assert int(variables["DATASET_UNMOUNT_TIMEOUT_SECONDS"]) > 30  # the service's own


def test_the_time_limit_is_in_seconds_and_absent_unless_given() -> None:
    assert native(limits={"runtime": "6h"})["limits"] == {"timeout": 21_600}
    assert "limits" not in native()


def test_overrides_come_last_and_into_the_fingerprint() -> None:
    plain, over = native(), native(overrides={"azureml": {"resources": {"locations": ["eastus"]}, "description": None}})
    assert over["resources"] == {**plain["resources"], "locations": ["eastus"]}
    assert "description" not in over
    prints = [form["environment_variables"]["CLOUDTRAIN_FINGERPRINT"] for form in (plain, over)]
    assert prints[0] != prints[1]


def test_a_command_may_stand_before_ours() -> None:
    ours = native()["command"]
    assert native(overrides={"azureml": {"command": f"nvidia-smi; {ours}"}})["command"] == f"nvidia-smi; {ours}"


def test_variables_of_an_override_stand_beside_ours() -> None:
    form = native(overrides={"azureml": {"environment_variables": {"AZUREML_X": "1"}}})
    assert form["environment_variables"]["AZUREML_X"] == "1"
    assert form["environment_variables"]["CLOUDTRAIN_PROVIDER"] == "azureml"
