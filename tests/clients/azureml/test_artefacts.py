"""What a run has left: found where the job says it is, fetched to where it belongs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.emulator.azureml.blobs import ACCOUNT
from cloudtrain.errors import RefusedError, SpecError
from cloudtrain.providers.azureml.store import Place, place_of
from cloudtrain.providers.port import Artefact
from tests.clients.azureml.service import ARM_ID, Service
from tests.clients.azureml.storage import Storage

STORE = "workspaceblobstore"
RUN = "cloudtrain/runs/digits-1"


def output(path: str, store: str = STORE) -> dict[str, str]:
    return {
        "uri": f"azureml://datastores/{store}/paths/{path}",
        "mode": "ReadWriteMount",
        "jobOutputType": "uri_folder",
    }


def has_job(service: Service, **outputs: dict[str, str]) -> None:
    service.has_job("job", "Completed", outputs=outputs)


@pytest.fixture
def container(workspace: Service) -> str:
    return str(workspace.datastores[STORE]["containerName"])


def test_every_folder_of_the_run(
    workspace: Service, client: Any, blobs: Storage, container: str, tmp_path: Path
) -> None:
    files = {
        "model/model.pt": ("model", "model.pt", b"weights"),
        "output/a/b.txt": ("output", "a/b.txt", b"text"),
        "metrics/metrics.jsonl": ("metrics", "metrics.jsonl", b"{}\n"),
        "checkpoints/step-10/model.pt": ("checkpoints", "step-10/model.pt", b"step"),
        "outputs/plots/loss curve é.png": ("outputs/plots", "loss curve é.png", b""),
    }
    for name, (_, _, content) in files.items():
        blobs.put(container, f"{RUN}/{name}", content)
    blobs.put(container, f"{RUN}/model-of-another/model.pt", b"not of the run")
    has_job(
        workspace,
        cloudtrain_model=output(f"{RUN}/model/"),
        cloudtrain_output=output(f"{RUN}/output/"),
        cloudtrain_metrics=output(f"{RUN}/metrics"),
        cloudtrain_checkpoint=output(f"{RUN}/checkpoints/"),
        plots=output(f"{RUN}/outputs/plots/"),
        default={"uri": f"azureml://datastores/{STORE}/ExperimentRun/dcid.job", "jobOutputType": "uri_folder"},
    )
    found = list(client.artefacts("job"))
    assert {(a.kind, a.path, a.size) for a in found} == {(kind, path, len(text)) for kind, path, text in files.values()}
    shown: list[tuple[int, int]] = []
    for artefact in found:
        client.fetch(artefact, tmp_path / "to" / artefact.kind, lambda done, total: shown.append((done, total)))
    for kind, path, content in files.values():
        assert (tmp_path / "to" / kind / path).read_bytes() == content
    assert len([path for path in (tmp_path / "to").rglob("*") if path.is_file()]) == len(files)
    assert (7, 7) in shown


def test_a_run_that_has_left_nothing(workspace: Service, client: Any) -> None:
    has_job(workspace, cloudtrain_model=output(f"{RUN}/none/"))
    assert list(client.artefacts("job")) == []
    workspace.has_job("bare")
    assert list(client.artefacts("bare")) == []


def test_folders_are_no_files(workspace: Service, client: Any, blobs: Storage, container: str) -> None:
    folder = blobs.service.get_blob_client(container, f"{RUN}/dirs/sub")
    folder.upload_blob(b"", metadata={"hdi_isfolder": "true"})
    blobs.put(container, f"{RUN}/dirs/sub/file", b"1")
    has_job(workspace, cloudtrain_output=output(f"{RUN}/dirs/"))
    assert [artefact.path for artefact in client.artefacts("job")] == ["sub/file"]


@pytest.mark.parametrize("name", ["../outside", "a/../../outside", "/outside", "a/\x01\x1b[31m b"])
def test_names_that_lead_elsewhere(
    workspace: Service, client: Any, blobs: Storage, container: str, tmp_path: Path, name: str
) -> None:
    """Blobs' names are free; nothing is written outside the folder."""
    artefact = Artefact("model", name, 4, f'["{STORE}", "evil", 4]')
    blobs.put(container, "evil", b"evil")
    has_job(workspace, cloudtrain_model=output("hostile/"))
    (tmp_path / "in").mkdir()
    if "outside" in name:
        with pytest.raises(SpecError, match="which is no path below"):
            client.fetch(artefact, tmp_path / "in")
        written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "ca.pem"]
        assert written == []
    else:
        client.fetch(artefact, tmp_path / "in")
        assert (tmp_path / "in" / name).read_bytes() == b"evil"


def test_a_name_with_dots_is_listed_as_it_is(
    workspace: Service, client: Any, blobs: Storage, container: str, tmp_path: Path
) -> None:
    blobs.put(container, "dots/..a/...", b"fine")
    has_job(workspace, cloudtrain_model=output("dots/"))
    (artefact,) = client.artefacts("job")
    client.fetch(artefact, tmp_path)
    assert (tmp_path / "..a" / "...").read_bytes() == b"fine"


def test_a_file_that_is_gone_leaves_nothing_half(
    workspace: Service, client: Any, blobs: Storage, container: str, tmp_path: Path
) -> None:
    blobs.put(container, f"{RUN}/gone/model.pt", b"x")
    has_job(workspace, cloudtrain_model=output(f"{RUN}/gone/"))
    (artefact,) = client.artefacts("job")
    blobs.remove(container, f"{RUN}/gone/model.pt")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.pt").write_bytes(b"of before")
    with pytest.raises(RefusedError, match="not there any more"):
        client.fetch(artefact, tmp_path / "model")
    assert [path.read_bytes() for path in (tmp_path / "model").iterdir()] == [b"of before"]


def test_large_files_come_whole(
    workspace: Service, client: Any, blobs: Storage, container: str, tmp_path: Path
) -> None:
    content = bytes(range(256)) * (40 << 10)
    blobs.put(container, f"{RUN}/large/model.pt", content)
    has_job(workspace, cloudtrain_model=output(f"{RUN}/large/"))
    (artefact,) = client.artefacts("job")
    shown: list[tuple[int, int]] = []
    client.fetch(artefact, tmp_path, lambda done, total: shown.append((done, total)))
    assert (tmp_path / "model.pt").read_bytes() == content
    assert shown[-1] == (len(content), len(content))


@pytest.mark.parametrize(
    "uri, place",
    [
        ("azureml://datastores/s/paths/a/b/", Place("s", "a/b/")),
        ("azureml://datastores/s/paths/a", Place("s", "a/")),
        ("azureml://datastores/s/paths/", Place("s", "")),
        ("azureml://subscriptions/1/resourcegroups/g/workspaces/w/datastores/s/paths/a/", Place("s", "a/")),
        (f"azureml:/{ARM_ID}/datastores/s/paths/a/", Place("s", "a/")),
        ("azureml:model:1", None),
        ("azureml://locations/westeurope/workspaces/1/data/x/versions/1", None),
        ("https://account.blob.core.windows.net/c/a", None),
        ("", None),
    ],
)
def test_places_of_outputs(uri: str, place: Place | None) -> None:
    assert place_of(uri) == place


def test_a_datastore_with_a_right_of_its_own(workspace: Service, client: Any, blobs: Storage, container: str) -> None:
    from azure.storage.blob import generate_container_sas

    until = datetime.now(timezone.utc) + timedelta(hours=1)
    right = generate_container_sas(ACCOUNT, container, account_key=blobs.key, permission="rl", expiry=until)
    workspace.secrets[STORE] = {"secretsType": "Sas", "sasToken": right}
    workspace.datastores[STORE]["credentials"] = {"credentialsType": "Sas"}
    blobs.put(container, "sas/model.pt", b"x")
    has_job(workspace, cloudtrain_model=output("sas/"))
    assert [artefact.path for artefact in client.artefacts("job")] == ["model.pt"]


def test_a_right_that_is_refused(workspace: Service, client: Any) -> None:
    workspace.secrets[STORE] = {"secretsType": "Sas", "sasToken": "sv=2022-11-02&sp=rl&sig=c2VjcmV0"}
    has_job(workspace, cloudtrain_model=output("sas/"))
    with pytest.raises(RefusedError) as raised:
        list(client.artefacts("job"))
    assert raised.value.cause == "permission"
    assert "c2VjcmV0" not in str(raised.value)


def test_datastores_that_cannot_be_read(workspace: Service, client: Any) -> None:
    workspace.datastores["files"] = {"datastoreType": "AzureFile", "accountName": "a", "fileShareName": "s"}
    has_job(workspace, cloudtrain_model=output("x/", "files"))
    with pytest.raises(RefusedError, match="of the kind 'AzureFile', which cloudtrain can neither read nor write"):
        list(client.artefacts("job"))
    has_job(workspace, cloudtrain_model=output("x/", "none"))
    with pytest.raises(RefusedError, match="there is no datastore 'none' in workspace"):
        list(client.artefacts("job"))


def test_outputs_that_are_no_folders_of_a_datastore(workspace: Service, client: Any) -> None:
    has_job(workspace, asset={"uri": "azureml:model:1"}, cloudtrain_model={"jobOutputType": "uri_folder"})
    assert list(client.artefacts("job")) == []
