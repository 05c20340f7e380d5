"""What a node does before its workers start: packages, secrets, data; how others wait, and what a failure ends."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import time
import zipfile
from pathlib import Path

import pytest

from cloudtrain_launch import processes
from tests.entrypoints.clouds.conftest import Make
from tests.entrypoints.clouds.nodes import CloudJob, is_prepared
from tests.entrypoints.prepare.server import Answer, Server
from tests.local.project import may_isolate, require

VALUE = "s3cr3t-v4lue"
TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
SECRET = "/v1/projects/p/secrets/wandb/versions/latest:access"

# Ends well only if the secret is there; never writes it down.
USES_SECRET = """
import hashlib, os
value = os.environ["WANDB_API_KEY"]
print("digest", hashlib.sha256(value.encode()).hexdigest(), sorted(n for n in os.environ if "CLOUDTRAIN_SECRET" in n))
"""


def _with_secret(job: CloudJob, server: Server) -> None:
    server.answer(TOKEN, Answer({"access_token": "ya29.t0ken"}))
    server.answer(SECRET, Answer({"payload": {"data": base64.b64encode(VALUE.encode()).decode()}}))
    job.variables.update(
        CLOUDTRAIN_SECRETREF_WANDB_API_KEY="projects/p/secrets/wandb",
        GCE_METADATA_HOST=server.host,
        CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER=server.url,
    )


def test_a_secret_reaches_the_workers_and_nothing_else(make: Make, server: Server, tmp_path: Path) -> None:
    job = make("vertex", variables={"CLOUDTRAIN_LOG_DIR": str(tmp_path / "logs")})
    (tmp_path / "logs").mkdir()
    _with_secret(job, server)
    job.write(USES_SECRET)
    assert job.run() == [0, 0], job.said
    digest = hashlib.sha256(VALUE.encode()).hexdigest()
    assert job.said.count(f"digest {digest} []") == 4
    assert VALUE not in job.said and "ya29" not in job.said
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if VALUE.encode() in path.read_bytes()] == []
    assert len(server.asked_for(SECRET)) == 2


def test_a_secret_that_was_given_by_value(make: Make, server: Server) -> None:
    """As `cloudtrain run --as` does: no store of the cloud is asked."""
    job = make("vertex", count=1)
    _with_secret(job, server)
    job.variables["CLOUDTRAIN_SECRET_WANDB_API_KEY"] = VALUE
    job.write(USES_SECRET)
    assert job.run() == [0], job.said
    assert server.asked == []


def test_a_secret_that_cannot_be_read_ends_the_job_everywhere(make: Make, server: Server) -> None:
    job = make("vertex")
    _with_secret(job, server)
    server.answer(SECRET, Answer({"error": {"message": "denied"}}, 403))
    job.write(USES_SECRET)
    job.start(0, changed={"CLOUDTRAIN_SECRETREF_WANDB_API_KEY": None})
    job.start(1)
    assert [node.end() for node in job.nodes] == [1, 1]
    for node in job.nodes:
        assert f"[{node.number}/-] failed first: node 1: secret WANDB_API_KEY (projects/p/secrets/wandb): " in node.out
        assert "403 Forbidden: denied" in node.out


def test_a_node_may_take_longer_than_the_start_timeout_to_prepare(make: Make, server: Server) -> None:
    """The other one is ready at once, connected, and waits."""
    job = make("vertex")
    _with_secret(job, server)
    server.open.clear()
    timeout = 10.0  # once all are there the ranks have as long to start, on whatever machine
    job.write("print('trained')\n", start_timeout=timeout, processes_per_node=1)
    head, slow = job.start(0, changed={"CLOUDTRAIN_SECRETREF_WANDB_API_KEY": None}), job.start(1)
    slow.wait_for(lambda: server.asked_for(TOKEN))
    head.wait_for(lambda: is_prepared(head))
    time.sleep(timeout + 1)  # both launchers count from before that: it is over for both, and neither may have minded
    server.open.set()
    assert [node.end() for node in job.nodes] == [0, 0], job.said


def test_a_preparation_that_is_killed(make: Make, server: Server) -> None:
    """As the kernel does when memory is short."""
    job = make("vertex")
    _with_secret(job, server)
    server.open.clear()
    job.write(USES_SECRET)
    job.start(0)
    other = job.start(1, changed={"CLOUDTRAIN_SECRETREF_WANDB_API_KEY": None})
    job.nodes[0].wait_for(lambda: server.asked_for(TOKEN))
    for pid in processes.descendants(job.nodes[0].process.pid):
        os.kill(pid, signal.SIGKILL)
    assert [node.end() for node in job.nodes] == [1, 1], job.said
    assert (
        "[1/-] failed first: node 0: the preparation was killed by SIGKILL (often the kernel, out of mem" in other.out
    )


def test_a_node_that_never_comes(make: Make) -> None:
    """Nothing was trained, so no one waits for results."""
    job = make("vertex")
    job.write(start_timeout=2.0)
    node = job.start(0)
    assert node.end() == 124
    assert "[0/-] failed first: node 1 (host-1) did not connect to node 0 within 2 s" in node.out


@pytest.mark.parametrize("number", [0, 1])
def test_sigterm_while_a_node_is_prepared(number: int, make: Make, server: Server) -> None:
    job = make("vertex")
    _with_secret(job, server)
    server.open.clear()
    job.write(USES_SECRET)
    job.start(0)
    job.start(1).wait_for(lambda: len(server.asked_for(TOKEN)) >= 2)
    job.nodes[number].process.send_signal(signal.SIGTERM)
    assert [node.end() for node in job.nodes] == [143, 143], job.said
    for node in job.nodes:
        assert (node.report["outcome"], node.report["root"]) == ("preempted", None)


def _wheel(folder: Path, name: str, content: str) -> None:
    """A package, as pip takes it without any index."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": content,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)


def _own_pip(job: CloudJob, number: int) -> dict[str, str | None]:
    """The nodes share this machine's interpreter: what they install goes into a folder of each."""
    site = str(job.folder / f"site-{number}")
    paths = [site, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PIP_TARGET": site, "PYTHONPATH": os.pathsep.join(paths), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": str(job.folder / "wheels"), "PIP_EXTRA_INDEX_URL": None, "PIP_INDEX_URL": None,
    }  # fmt: skip


def test_requirements_are_installed_first(make: Make) -> None:
    job = make("azureml", more_code={"deps/requirements.txt": "-r more.txt\n", "deps/more.txt": "ct_made_up\n"})
    _wheel(job.folder / "wheels", "ct_made_up", "WHO = 'made up'\n")
    job.write("import ct_made_up\nprint(ct_made_up.WHO)\n", requirements="deps/requirements.txt", processes_per_node=1)
    for number in (0, 1):
        job.start(number, changed=_own_pip(job, number))
    assert [node.end() for node in job.nodes] == [0, 0], job.said
    for node in job.nodes:
        assert f"[{node.number}/-] installing requirements.txt\n" in node.out
        assert f"[{node.number}/-] pip: Successfully installed ct_made_up-1.0" in node.out.replace(
            "ct-made-up", "ct_made_up"
        )
        assert f"[{node.number}/{node.number}] made up\n" in node.out


TELLS_OF_PIP = """
import json, os, pathlib, sys
if "install" in sys.orig_argv:
    pathlib.Path(os.environ["PROJECT"], "pip.json").write_text(json.dumps(dict(os.environ)))
"""


def test_what_pip_is_given(make: Make) -> None:
    """No secret and nothing of ours, and no module of the user's; it may change the Python that the workers run in."""
    code = {
        "requirements.txt": "ct_made_up\n",
        "queue.py": "raise OSError('not for pip')\n",
        "src/train.py": "import ct_made_up",
    }
    job = make("azureml", count=1, more_code=code, variables={"CLOUDTRAIN_SECRET_KEY": VALUE})
    _wheel(job.folder / "wheels", "ct_made_up", "")
    (job.folder / "site-0").mkdir()
    (job.folder / "site-0/sitecustomize.py").write_text(TELLS_OF_PIP)
    job.write(target="src/train.py", requirements="requirements.txt", processes_per_node=1)
    assert job.start(0, changed=_own_pip(job, 0)).end() == 0, job.said
    env = json.loads((job.folder / "pip.json").read_text())
    assert [name for name in env if name.startswith(("CLOUDTRAIN_", "AZUREML_"))] == []
    assert VALUE not in env.values()
    assert env["PIP_BREAK_SYSTEM_PACKAGES"] == "1"


def test_requirements_that_cannot_be_installed(make: Make) -> None:
    job = make("azureml", more_code={"requirements.txt": "ct_no_such_package==1\n"})
    (job.folder / "wheels").mkdir()
    job.write("print('never')\n", requirements="requirements.txt")
    job.start(0, changed=_own_pip(job, 0))
    job.start(1, changed=_own_pip(job, 1))
    assert [node.end() for node in job.nodes] == [125, 125]
    for node in job.nodes:
        failed = next(line for line in node.out.splitlines() if "failed first" in line)
        assert "environment.requirements: pip install -r requirements.txt ended with code 1: " in failed
        assert "No matching distribution found for ct_no_such_package==1" in failed
    assert "never" not in job.said


def test_requirements_that_did_not_ship(make: Make) -> None:
    job = make("azureml", count=1)
    job.write("print('never')\n", requirements="requirements.txt")
    assert job.run() == [125]
    assert "environment.requirements: " in job.said and "requirements.txt is not in the code" in job.said


LISTS = """
import json, os, pathlib
folder = pathlib.Path(os.environ["CLOUDTRAIN_DATA_TRAIN"])
found = {p.relative_to(folder).as_posix(): [p.read_text(), p.is_symlink()] for p in folder.rglob("*") if p.is_file()}
pathlib.Path(os.environ["PROJECT"], f"rank-{os.environ['RANK']}.json").write_text(json.dumps(found))
"""
KEYS = ["a.txt", "b/c.txt", "b/d.txt", "e", "f"]


@pytest.mark.parametrize("provider", ["vertex", "azureml"])
@pytest.mark.parametrize("mode", ["mount", "download"])
def test_every_node_gets_its_share_of_the_objects(provider: str, mode: str, make: Make) -> None:
    job = make(provider)
    for key in KEYS:
        job.data(key, f"content of {key}")
    job.write(LISTS, processes_per_node=1, channels={"train": {"mode": mode, "shard": "by-object"}})
    assert job.run() == [0, 0], job.said
    for node in (0, 1):
        expected = {key: [f"content of {key}", mode == "mount"] for key in KEYS[node::2]}
        assert job.seen(node) == expected
        assert f"[{node}/-] data.train: {3 - node} of 5 objects, " in job.nodes[node].out


def test_data_that_is_downloaded_is_a_copy(make: Make) -> None:
    job = make("vertex", count=1)
    job.data("a.txt", "x")
    job.write(LISTS, processes_per_node=1, channels={"train": {"mode": "download"}})
    assert job.run() == [0], job.said
    assert job.seen(0) == {"a.txt": ["x", False]}


def test_data_that_is_mounted_is_left_where_it_is(make: Make) -> None:
    job = make("vertex", count=1)
    job.data("a.txt", "x")
    job.write("import os\nprint(os.environ['CLOUDTRAIN_DATA_TRAIN'])\n", processes_per_node=1, channels={"train": {}})
    assert job.run() == [0], job.said
    assert f"[0/0] {job.bucket}/data/train\n" in job.said


def test_data_that_is_not_there(make: Make) -> None:
    job = make("vertex", count=1)
    job.write("print('never')\n", channels={"train": {"mode": "download"}})
    assert job.run() == [1]
    assert f"data.train: {job.bucket}/data/train is not there" in job.said


def test_a_channel_without_a_folder(make: Make) -> None:
    job = make("vertex", count=1)
    job.write("print('never')\n", channels={"test": {"mode": "download"}})
    assert job.run() == [1]
    assert "the spec has a channel 'test', but CLOUDTRAIN_DATA_TEST is not set" in job.said


def test_the_banner_shows_no_secret(make: Make) -> None:
    job = make("vertex", count=1, variables={"CLOUDTRAIN_SECRET_NCCL_KEY": VALUE, "NCCL_DEBUG": "WARN"})
    job.write("import os\nprint(len(os.environ['NCCL_KEY']))\n", processes_per_node=1)
    assert job.run() == [0], job.said
    assert "[0/-] network: NCCL_DEBUG=WARN\n" in job.said
    assert f"[0/0] {len(VALUE)}\n" in job.said and VALUE not in job.said


SMALL_SHM = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'


def test_little_shared_memory_is_said(make: Make) -> None:
    require(may_isolate() and os.geteuid() == 0, "namespaces are not permitted here")
    job = make("vertex", count=1)
    job.write("print('trained')\n", processes_per_node=1)
    node = job.start(0, before=("unshare", "--mount", "sh", "-c", SMALL_SHM, "sh"))
    assert node.end() == 0, job.said
    assert "[0/-] /dev/shm has 64 MiB, which DataLoader workers and NCCL share; if a rank dies of SIGBUS: " in node.out


def test_a_report_of_each_node(make: Make) -> None:
    job = make("azureml")
    job.write("print('ok')\n", processes_per_node=1)
    assert job.run() == [0, 0], job.said
    reports = [(node.report["node"], node.report["outcome"]) for node in job.nodes]
    assert reports == [(0, "succeeded"), (1, "succeeded")]
