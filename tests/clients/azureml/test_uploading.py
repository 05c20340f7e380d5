"""The code snapshot and the spec beside it: sent once, found again, whole."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import tarfile
import threading
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.bundle import Bundle, scan
from cloudtrain.errors import CloudtrainError, MissingError, RefusedError
from cloudtrain.providers import registry, shipping
from cloudtrain.providers.azureml.credentials import EmulatorToken
from cloudtrain.providers.azureml.snapshot import content_hash, files_of, snapshot_name
from cloudtrain.providers.base import Request
from cloudtrain.providers.shipping import spec_content, write_code
from cloudtrain.providers.written import as_yaml
from tests.clients.azureml.answers import error, fault
from tests.clients.azureml.cutting import wire_to
from tests.clients.azureml.service import ACCOUNT, Service
from tests.clients.azureml.storage import ACCOUNT as ACCOUNT_NAME
from tests.clients.azureml.storage import Storage
from tests.providers.azureml.jobs import request as request_of
from tests.providers.azureml.vendor import load

pytestmark = pytest.mark.usefixtures("vendor")

MIB = 1 << 20


def store(workspace: Service) -> str:
    """The container in which runs have their folders."""
    return str(workspace.datastores["workspaceblobstore"]["containerName"])


def spec_name(request: Request) -> str:
    return f"cloudtrain/runs/{request.spec['run_id']}/spec/spec.json"


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    folder = tmp_path / "project"
    (folder / "lib").mkdir(parents=True)
    (folder / "train.py").write_text("print('training')\n")
    (folder / "lib" / "ünï.py").write_text("")
    return scan(folder)


def test_all_that_a_node_needs_is_put_there(
    workspace: Service, client: Any, bundle: Bundle, blobs: Storage, tmp_path: Path
) -> None:
    request = request_of()
    shown: list[tuple[int, int]] = []
    uploaded = client.upload(request, bundle, lambda done, total: shown.append((done, total)))
    write_code(bundle, tmp_path / "code")
    wanted = {f"code/{file.name}": file.source.read_bytes() for file in files_of(tmp_path / "code")}
    assert blobs.content(blobs.places[-1]) == wanted
    spec = blobs.content(store(workspace))
    assert {name: json.loads(text) for name, text in spec.items()} == {spec_name(request): request.spec}
    with tarfile.open(fileobj=io.BytesIO(wanted["code/code.tar.gz"])) as archive:
        assert sorted(archive.getnames()) == ["lib/ünï.py", "train.py"]
    assert uploaded == (sum(map(len, [*wanted.values(), *spec.values()])), 0)
    assert shown[-1] == (uploaded.sent, uploaded.sent)
    assert shown == sorted(shown)


def test_the_same_code_is_sent_once(workspace: Service, client: Any, bundle: Bundle) -> None:
    first = client.upload(request_of(), bundle)
    assert client.upload(request_of(), bundle) == (0, first.sent)
    assert client.upload(request_of(attempt=2), None) == (0, first.sent)
    assert workspace.times("BeginCode") == 1


def test_of_other_arguments_only_the_spec_is_sent(
    workspace: Service, account: dict[str, str], bundle: Bundle, blobs: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen at the wire: what the blob server was asked to store."""
    before, other = request_of(), request_of(args=["--lr", "0.1"])
    with wire_to(blobs.url) as wire:
        monkeypatch.setenv("CLOUDTRAIN_ENDPOINT_BLOB", f"{wire.url}/{{}}")
        signed = workspace.place_of_code

        def by_wire(name: str) -> tuple[str, str]:
            uri, address = signed(name)
            return uri, address.replace(blobs.url, wire.url)

        workspace.place_of_code = by_wire
        with closing(registry.connect("azureml", account)) as client:
            first = client.upload(before, bundle)
            stored = len(wire.stored)
            assert stored == len(shipping.code_names()) + 1
            code = blobs.content(blobs.places[-1])
            again = client.upload(other, bundle)
    assert wire.stored[stored:] == [f"/{ACCOUNT_NAME}/{store(workspace)}/{spec_name(other)}"]
    assert again == (len(spec_content(other.spec)), first.sent - len(spec_content(before.spec)))
    assert blobs.content(blobs.places[-1]) == code
    assert workspace.times("BeginCode") == workspace.times("PutCode") == 1
    assert {name: json.loads(text) for name, text in blobs.content(store(workspace)).items()} == {
        spec_name(before): before.spec,
        spec_name(other): other.spec,
    }


def test_a_submit_that_ended_between_spec_and_code_goes_on(
    workspace: Service, client: Any, bundle: Bundle, blobs: Storage
) -> None:
    request = request_of()
    workspace.will("BeginCode", lambda _: error(403, "AuthorizationFailed", "not you"))
    with pytest.raises(RefusedError):
        client.upload(request, bundle)
    size = len(spec_content(request.spec))
    assert list(blobs.content(store(workspace))) == [spec_name(request)]
    again = client.upload(request, bundle)
    assert again.sent > again.present == size
    blobs.remove(store(workspace), spec_name(request))  # the other way round
    assert client.upload(request, bundle) == (size, again.sent)
    assert json.loads(blobs.content(store(workspace))[spec_name(request)]) == request.spec
    assert workspace.times("PutCode") == 1


@pytest.mark.parametrize("left", ["", "{}", "longer"])
def test_a_spec_that_differs_is_replaced(
    workspace: Service, client: Any, bundle: Bundle, blobs: Storage, left: str
) -> None:
    """By whatever: half of one, or that of another version of cloudtrain, as long as ours or not."""
    request = request_of()
    content = spec_content(request.spec)
    client.upload(request, bundle)
    other = content + b" " if left == "longer" else left.encode() or content.replace(b'"version":1', b'"version":2')
    blobs.put(store(workspace), spec_name(request), other)
    assert client.upload(request, bundle).sent == len(content)
    assert blobs.content(store(workspace))[spec_name(request)] == content


def test_a_further_attempt_from_another_machine_has_the_same_spec(
    workspace: Service, account: dict[str, str], client: Any, bundle: Bundle, blobs: Storage
) -> None:
    first = client.upload(request_of(), bundle)
    before = blobs.content(store(workspace))
    blobs.remove(store(workspace), spec_name(request_of()))
    with closing(registry.connect("azureml", account)) as there:
        attempt = request_of(attempt=2)
        sent = there.upload(attempt, None).sent
        assert there.create(attempt).name == attempt.name
    assert blobs.content(store(workspace)) == before
    assert sent == len(next(iter(before.values()))) < first.sent
    assert workspace.jobs[attempt.name]["properties"]["inputs"]["cloudtrain_spec"]["uri"].endswith("/spec/")


def test_a_store_of_a_kind_that_cannot_be_written_is_told(workspace: Service, client: Any, bundle: Bundle) -> None:
    workspace.datastores["workspaceblobstore"]["datastoreType"] = "AzureFile"
    with pytest.raises(RefusedError, match=r"workspaceblobstore is of the kind 'AzureFile'.*neither read nor write"):
        client.upload(request_of(), bundle)
    assert not workspace.times("BeginCode")


def test_a_datastore_that_refuses_the_spec_is_told(
    workspace: Service, client: Any, bundle: Bundle, blobs: Storage
) -> None:
    workspace.secrets["workspaceblobstore"] = {"secretsType": "AccountKey", "key": "d3Jvbmc="}
    with pytest.raises((RefusedError, MissingError), match=r"spec\.json in datastore workspaceblobstore"):
        client.upload(request_of(), bundle)
    assert blobs.content(store(workspace)) == {}


def test_a_further_attempt_needs_the_code_to_be_there(workspace: Service, client: Any) -> None:
    with pytest.raises(MissingError, match=r"code of run digits-\w+ is not in workspace"):
        client.upload(request_of(attempt=2), None)


def test_the_hash_is_the_vendors(
    workspace: Service, client: Any, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So its own client finds what was uploaded here: the exported job is created without sending anything."""
    from azure.ai.ml._utils._asset_utils import get_content_hash

    request = request_of()
    client.upload(request, bundle)
    write_code(bundle, tmp_path / "form" / "code")
    (tmp_path / "form" / "job.yml").write_text(as_yaml(request.native))
    assert content_hash(files_of(tmp_path / "form" / "code")) == get_content_hash(tmp_path / "form" / "code")
    (kept,) = workspace.codes.values()
    assert kept["properties"]["properties"]["hash_sha256"] == get_content_hash(tmp_path / "form" / "code")

    _as_the_vendor_does(workspace, tmp_path / "form" / "job.yml", monkeypatch)
    assert workspace.times("ListCodes") == 1
    assert workspace.times("BeginCode") == 1, "the one of ours"
    assert workspace.jobs[request.name]["properties"]["codeId"] == kept["id"]


def _as_the_vendor_does(workspace: Service, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from azure.ai.ml import MLClient

    monkeypatch.setenv("AZUREML_CURRENT_CLOUD", "AzureCloud")  # it would write it itself, and leave it there
    monkeypatch.setenv("AZUREML_DEV_URL_MFE", workspace.url)
    names = [ACCOUNT[name] for name in ("subscription", "resource_group", "workspace")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own package
        MLClient(EmulatorToken(), *names, enable_telemetry=False).jobs.create_or_update(load(file))


@pytest.mark.parametrize("requests", [[request_of()] * 2, [request_of(), request_of(args=["x"])]], ids=["one", "two"])
def test_two_submits_at_once_do_not_collide(
    workspace: Service, account: dict[str, str], bundle: Bundle, blobs: Storage, requests: list[Request]
) -> None:
    """Nor those of two jobs of one code."""
    both = threading.Barrier(2)
    failed = []

    def submit(request: Request) -> None:
        client: Any = registry.connect("azureml", account)
        try:
            both.wait()
            client.upload(request, bundle)
            client.create(request)
        except CloudtrainError as error:
            failed.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=submit, args=(request,)) for request in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert list(workspace.codes) == [snapshot_name(requests[0])] == [snapshot_name(requests[1])]
    assert sorted(workspace.jobs) == sorted({request.name for request in requests})
    assert sorted(blobs.content(store(workspace))) == sorted({spec_name(request) for request in requests})


def test_somebody_faster_is_no_failure(workspace: Service, client: Any, bundle: Bundle) -> None:
    request = request_of()
    client.upload(request, bundle)
    name, kept = workspace.codes.popitem()

    def meanwhile(_: str) -> tuple[str, str]:
        workspace.codes[name] = kept
        return before(name)

    before, workspace.place_of_code = workspace.place_of_code, meanwhile
    client.upload(request, bundle)
    assert workspace.codes == {name: kept}


def test_a_snapshot_that_the_service_refuses(workspace: Service, client: Any, bundle: Bundle) -> None:
    workspace.will("PutCode", lambda _: error(403, "AuthorizationFailed", "not you"))
    with pytest.raises(RefusedError, match="refuses to upload the code: AuthorizationFailed: not you"):
        client.upload(request_of(), bundle)


def test_a_cut_costs_the_block_that_was_cut(workspace: Service, client: Any, blobs: Storage, tmp_path: Path) -> None:
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(random.Random(4).randbytes(12 * MIB))
    with wire_to(blobs.url) as wire:
        before = workspace.place_of_code

        def by_wire(name: str) -> tuple[str, str]:
            uri, address = before(name)
            return uri, address.replace(blobs.url, wire.url)

        workspace.place_of_code = by_wire
        wire.cut_after = 6 * MIB
        uploaded = client.upload(request_of(), scan(folder))
        assert wire.cuts == 1
        assert wire.sent < uploaded.sent + 10 * MIB
    content = blobs.content(blobs.places[-1])
    spec = blobs.content(store(workspace))
    assert sum(map(len, [*content.values(), *spec.values()])) == uploaded.sent
    with tarfile.open(fileobj=io.BytesIO(content["code/code.tar.gz"])) as archive:
        weights = archive.extractfile("weights.bin")
        assert weights is not None and weights.read() == (folder / "weights.bin").read_bytes()


def test_a_store_that_refuses_is_told_and_nothing_hangs(
    workspace: Service, client: Any, bundle: Bundle, blobs: Storage
) -> None:
    before = workspace.place_of_code
    workspace.place_of_code = lambda name: (before(name)[0], before(name)[1] + "tampered")
    with pytest.raises((RefusedError, MissingError), match="upload the code") as raised:
        client.upload(request_of(), bundle)
    assert "sig=" not in str(raised.value)
    assert not workspace.codes


def test_faults_of_the_service_are_waited_out(workspace: Service, client: Any, bundle: Bundle) -> None:
    workspace.will("GetCode", fault(503))
    workspace.will("BeginCode", fault(429, "TooManyRequests"))
    workspace.will("PutCode", fault(500), done=True)
    client.upload(request_of(), bundle)
    assert list(workspace.codes) == [snapshot_name(request_of())]


def test_nothing_is_printed(workspace: Service, account: dict[str, str], bundle: Bundle) -> None:
    """Standard output is a contract; the vendor's packages tell of experimental classes and the like."""
    code = (
        "import json, sys; from pathlib import Path; from cloudtrain.bundle import scan\n"
        "from cloudtrain.providers import registry; from tests.providers.azureml.jobs import request\n"
        "client = registry.connect('azureml', json.loads(sys.argv[1])); job = request()\n"
        "client.upload(job, scan(Path(sys.argv[2]))); client.create(job); client.describe(job.name)\n"
    )
    command = [sys.executable, "-c", code, json.dumps(account), str(bundle.folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
