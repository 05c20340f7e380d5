"""What a package does wrong ends in a line that names it, and nothing of ours is the worse for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conformance.backend import CLOUDTRAIN, Result, job_file
from tests.plugins.packages import environment, package

NAMED = "cloudtrain: provider bad of the package bad-cloud 1.0: "
FINE = """
from cloudtrain.providers.base import NativeCheck, Request

KEYS, ACCOUNT, STORE, CAPABILITIES = {}, (), "file:///tmp/bad", ()

def translate(job, context):
    return Request("bad", f"{context.run_id}-a{context.attempt}", {}, {}, ())

def check(native):
    return NativeCheck(())
"""
MADE = f"{FINE}\ndef translate(job, context):\n    "
CLIENT = """
class Client:
    poll_seconds = settle_seconds = 0.0
    upload = create = describe = stop = logs = fetch = native_id = lambda self, *_: None
    def list(self, run_id=None): yield from ()
    def artefacts(self, native_id): yield from ()
    def find(self, request): return {}["no such key"]
    def close(self): open("closed", "w").close()

def connect(account):
    return Client()
"""


def _cloudtrain(site: Path, *words: str | Path) -> Result:
    env = environment(site, CLOUDTRAIN_HOME=str(site / "home"))
    done = subprocess.run(
        [CLOUDTRAIN, *map(str, words)], env=env, cwd=site, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    job = job_file(tmp_path / "job", "", data={"train": {"uri": {"local": "files"}}})
    (job.parent / "files").mkdir()
    return job


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import absent", "cannot be loaded: ModuleNotFoundError: No module named 'absent' (site/bad_cloud.py,"),
        ("def translate(", "cannot be loaded: SyntaxError: '(' was never closed"),
        ("raise SystemError('odd\\n words')", "cannot be loaded: SystemError: odd words (site/bad_cloud.py, line 1)"),
        ("", "bad_cloud has no KEYS"),
        (f"{FINE}\nKEYS = ['region']", "account.KEYS must map names (a-z 0-9 _) to cloudtrain.settings.Key"),
        (f"{FINE}\nKEYS = {{'region': 'text'}}", "account.KEYS must map names (a-z 0-9 _) to cloudtrain.settings.Key"),
        (f"{FINE}\ndel translate", "bad_cloud has no translate"),
        (f"{FINE}\nSTORE = 's3://{{bucket}}'", "account.STORE: KeyError: 'bucket'"),
        (f"{MADE}1 / 0", "translate failed: ZeroDivisionError: division by zero (site/bad_cloud.py, line 13)"),
        (f"{MADE}return {{}}", "translate returned {}, not a Request"),
        (f"{MADE}return Request('vertex', 'a', {{}}, {{}}, ())", "translate made a request for 'vertex'"),
        (f"{MADE}return Request('bad', 'a', {{}}, {{}}, ())", "translate named the request 'a', which must end in -a1"),
        (f"{FINE}\nCAPABILITIES = 3", "its CAPABILITIES are none: TypeError: 'int' object is not iterable"),
    ],
)  # fmt: skip
def test_a_request_cannot_be_made(tmp_path: Path, job: Path, source: str, message: str) -> None:
    package(tmp_path / "site", "bad", source)
    shown = _cloudtrain(tmp_path / "site", "render", job, "--provider", "bad")
    first, hint = shown.err.splitlines()
    assert shown.code == 3
    assert first.startswith(NAMED + message)
    assert hint == "this is a fault of that package: install another version of it, or tell its authors"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"{FINE}\ncheck = None", "check failed: TypeError: 'NoneType' object is not callable"),
        (FINE, "bad_cloud has no connect"),
        (f"{FINE}\ndef connect(account): pass", "its client has no poll_seconds, settle_seconds, upload, create, find"),
        (f"{FINE}{CLIENT}", "find failed: KeyError: 'no such key' (site/bad_cloud.py, line 17)"),
    ],
)
def test_a_job_cannot_be_sent(tmp_path: Path, job: Path, source: str, message: str) -> None:
    package(tmp_path / "site", "bad", source)
    sent = _cloudtrain(tmp_path / "site", "submit", job, "--provider", "bad")
    assert (sent.code, sent.out) == (3, "")
    said = [line for line in sent.err.splitlines() if not line.startswith("note: ")]  # of where the data would go
    assert said[0].startswith(NAMED + message)


def test_its_connections_are_given_back_whatever_it_raises(tmp_path: Path, job: Path) -> None:
    package(tmp_path / "site", "bad", f"{FINE}{CLIENT}")
    assert _cloudtrain(tmp_path / "site", "submit", job, "--provider", "bad").code == 3
    assert (tmp_path / "site/closed").exists()


def test_it_disturbs_no_other(tmp_path: Path) -> None:
    """Though the job and the settings name it, and though it would have one of our names."""
    site = tmp_path / "site"
    package(site, "bad", "raise SystemError")
    package(site, "vertex", "raise SystemError", name="our-cloud", module="our_cloud")
    job = job_file(tmp_path / "job", "", outputs={"report": {"bad": "x", "vertex": "gs://bucket/report/"}})
    (tmp_path / "job/cloudtrain.toml").write_text('[bad]\nanything = "at all"\n[vertex]\nregion = "us-east4"\n')
    for words in (["validate", job], ["render", job, "--provider", "vertex", "--quiet"], ["runs"], ["--help"]):
        assert _cloudtrain(site, *words).code == 0, words


def test_two_of_one_name(tmp_path: Path, job: Path) -> None:
    site = tmp_path / "site"
    package(site, "bad", FINE)
    package(site, "bad", FINE, name="worse-cloud", module="worse_cloud")
    shown = _cloudtrain(site, "render", job, "--provider", "bad")
    assert shown.code == 2
    assert "two packages bring a provider bad: the package " in shown.err
    assert "bad-cloud 1.0" in shown.err
    assert "worse-cloud 1.0" in shown.err


def test_a_name_that_can_be_none(tmp_path: Path, job: Path) -> None:
    package(tmp_path / "site", "Bad-Cloud", FINE)
    shown = _cloudtrain(tmp_path / "site", "render", job, "--provider", "Bad-Cloud")
    assert shown.code == 2
    assert shown.err.startswith("cloudtrain: the package bad-cloud 1.0 calls a provider 'Bad-Cloud': the name must be")


def test_a_run_of_a_package_that_is_gone(tmp_path: Path) -> None:
    asked = _cloudtrain(tmp_path, "status", "bad:some-job")
    assert asked.code == 2
    assert asked.err == "cloudtrain: unknown provider 'bad'; known: sagemaker, vertex, azureml, local\n"
