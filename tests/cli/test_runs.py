"""The verbs about runs, as processes: over a run that is over, and over what the ledger has of clouds. None is asked.

tests/local/test_background.py has the same verbs on runs that go on.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from pathlib import Path

import pytest

import cloudtrain as ct
from cloudtrain.record.folder import RunFolder
from cloudtrain.record.state import State
from cloudtrain.runs.ledger import Entry, Ledger
from cloudtrain.runs.recording import keep
from tests.cli.running import cloudtrain

RUN = "digits-20261130-201500-k3f9"
CLOUD = "digits-3f9c2b71aa"
REASON = "AlgorithmError: the script ended with 1 \x1b[2J"
COMMAND = [sys.executable, "-c", "from cloudtrain.cli import main; main()"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a local run, and a ledger with that and one of SageMaker."""
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))
    run = local_run(tmp_path / "p", RUN, 1796000000.0)
    assert keep(run)
    cloud = Entry(
        run_id=CLOUD, provider="sagemaker", name="digits", family=CLOUD, project="/elsewhere", attempt=1,
        native_name=f"{CLOUD}-a1", native_id=f"{CLOUD}-a1", account={"region": "eu-west-1"}, created=1796000500.0,
        state=State.FAILED, vendor_state="Failed", reason=REASON, cause="user-code", started=1796000560.0,
        ended=1796004190.0,
    )  # fmt: skip
    with Ledger.open() as ledger:
        ledger.begin(cloud, {})
    return tmp_path / "p"


def local_run(project: Path, name: str, started: float) -> RunFolder:
    run = RunFolder.create(project, name)
    run.write_state(
        {"run_id": name, "name": "digits", "state": "SUCCEEDED", "exit_code": 0, "nodes": 2, "processes": 2,
         "started": started, "ended": started + 65}
    )  # fmt: skip
    (run.path / "job.yaml").write_text("name: digits\nentry: train.py\n")
    for rank in range(4):
        (run.logs / f"rank-{rank}.log").write_text("".join(f"line {n} of {rank}\n" for n in range(2)))
    (run.logs / "node-1.log").write_text("a word of the launcher\n")
    (run.model / "model.pt").write_bytes(b"w" * 2_000_000)
    (run.path / "metrics" / "rank-0.jsonl").write_text("{}\n")
    return run


def test_a_run_is_found_from_any_folder_by_its_id_a_beginning_of_it_or_as_the_latest(
    project: Path, tmp_path: Path
) -> None:
    for name in (RUN, "digits-2026", f"local:{RUN}", "latest"):
        done = cloudtrain("status", name, "--json", cwd=project if name == "latest" else tmp_path)
        status = json.loads(done.stdout)
        assert (done.returncode, status["run_id"], status["state"], status["exit_code"]) == (0, RUN, "SUCCEEDED", 0)


def test_status_says_what_to_do_next(project: Path) -> None:
    done = cloudtrain("status", "digits-2026", cwd=project)
    assert done.stdout.splitlines()[0] == f"run {RUN} on this machine: SUCCEEDED"
    assert "ended    " in done.stdout and "after 1 min 5 s" in done.stdout
    assert done.stdout.splitlines()[-1] == "  results  cloudtrain download digits-2026"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", f"{RUN[:-1]}8"], f"there is no run '{RUN[:-1]}8', did you mean '{RUN}'?"),
        (["logs", "digits"], f"'digits' is the beginning of more than one run: {CLOUD}, {RUN}"),
        (["status", "sagmaker:x"], "unknown provider 'sagmaker', did you mean 'sagemaker'?"),
        (["status", "vertex:"], "vertex: needs the name of a job behind it"),
        (["status", ""], "there is no run ''"),
        (["logs", RUN, "--rank", "a"], "'a' is no list of ranks; write 0 or 0,3"),
        (["logs", RUN, "--since", "yesterday"], "'yesterday' is neither a duration such as 10m nor a time such as"),
        (["download", RUN, "--only", "modle"], "no such results: modle, did you mean 'model'?"),
        (["download", RUN, "--only", "checkpoints"], f"run {RUN} has left no checkpoints"),
        (["resume", RUN], f"run {RUN} has succeeded: there is nothing to go on with"),
        (["runs", "--state", "DONE"], "'DONE' is no state; the states are PENDING, PROVISIONING, RUNNING,"),
        (["runs", "--provider", "azure"], "unknown provider 'azure'"),
        (["submit", "job.yaml", "--provider", "nowhere"], "known: sagemaker, vertex, azureml, local"),
        (["submit", "job.yaml", "--provider", "local", "--dry-run", "--follow"], "--follow does not go with it"),
        (["submit", "job.yaml", "--provider", "local", "--ranks", "0"], "--ranks goes with --follow"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_words(project: Path, words: list[str], said: str) -> None:
    (project / "job.yaml").write_text("name: digits\nentry: train.py\n")
    (project / "train.py").touch()
    done = cloudtrain(*words, cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "Traceback" not in done.stderr


def test_logs_of_ranks_and_nodes(project: Path) -> None:
    everything = cloudtrain("logs", RUN, cwd=project).stdout.splitlines()
    assert everything == [
        *(f"[{rank // 2}/{rank}] line {n} of {rank}" for rank in range(4) for n in range(2)),
        "[1/-] a word of the launcher",
    ]
    done = cloudtrain("logs", RUN, "--rank", "0,3", cwd=project)
    assert done.stdout.splitlines() == [line for line in everything if line.startswith(("[0/0]", "[1/3]"))]
    done = cloudtrain("logs", RUN, "--node", "1", "--follow", cwd=project)
    assert (done.returncode, done.stdout.splitlines()) == (0, everything[4:])
    assert done.stderr == f"SUCCEEDED after 1 min 5 s, exit code 0\n  results  cloudtrain download {RUN}\n"
    done = cloudtrain("logs", RUN, "--since", "10m", "--rank", "2", cwd=project)
    assert len(done.stdout.splitlines()) == 2
    assert "local runs do not keep when a line was printed" in done.stderr


def test_logs_as_json(project: Path) -> None:
    document = json.loads(cloudtrain("logs", RUN, "--rank", "1", "--json", cwd=project).stdout)
    assert document == {
        "run_id": RUN,
        "provider": "local",
        "lines": [{"node": 0, "rank": 1, "text": f"line {n} of 1", "time": None} for n in range(2)],
    }
    done = cloudtrain("logs", RUN, "--follow", "--json", cwd=project)
    assert json.loads(done.stdout)["state"] == "SUCCEEDED"
    assert done.stderr.count("\n") == 9


def test_a_reader_that_has_enough(project: Path) -> None:
    with (RunFolder(project / ".cloudtrain/runs" / RUN).logs / "rank-0.log").open("a") as log:
        log.writelines(f"{n}\n" for n in range(100_000))
    for words in (["logs", RUN], ["logs", RUN, "--follow"], ["logs", RUN, "--json"]):
        with subprocess.Popen([*COMMAND, *words], cwd=project, stdout=-1, stderr=-1, text=True) as process:
            assert process.stdout and process.stderr
            process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == ""
        assert process.returncode == 141, words


@pytest.mark.parametrize("words", [["runs"], ["status", RUN], ["logs", RUN], ["logs", RUN, "--follow"]])
def test_no_standard_output_at_all(project: Path, words: list[str]) -> None:
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, *words]
    done = subprocess.run(shell, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_runs_as_a_table(project: Path, tmp_path: Path) -> None:
    done = cloudtrain("runs", cwd=tmp_path)
    header, cloud, local = done.stdout.splitlines()
    assert header.split() == ["run", "provider", "state", "created", "took", "reason"]
    assert cloud.split()[:3] == [CLOUD, "sagemaker", "FAILED"]
    assert cloud.endswith("1 h        AlgorithmError: the script ended with 1 \\x1b[2J")
    assert local.split()[:3] == [RUN, "local", "SUCCEEDED"] and local.endswith("1 min 5 s")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], [CLOUD, RUN]),
        (["--limit", "1"], [CLOUD]),
        (["--provider", "local"], [RUN]),
        (["--state", "failed"], [CLOUD]),
        (["--name", "digits", "--state", "SUCCEEDED"], [RUN]),
        (["--name", "other"], []),
    ],
)
def test_runs_by_what_they_are(project: Path, options: list[str], expected: list[str]) -> None:
    done = cloudtrain("runs", "--json", *options, cwd=project)
    assert [entry["run_id"] for entry in json.loads(done.stdout)] == expected


def test_runs_of_the_project_that_the_ledger_does_not_know(project: Path, tmp_path: Path) -> None:
    local_run(project, "digits-20261129-201500-aaaa", 1795990000.0)
    listed = json.loads(cloudtrain("runs", "--json", cwd=project).stdout)
    assert [entry["run_id"] for entry in listed] == [CLOUD, RUN, "digits-20261129-201500-aaaa"]
    assert len(json.loads(cloudtrain("runs", "--json", cwd=tmp_path).stdout)) == 2
    done = cloudtrain("status", "digits-20261129", "--json", cwd=project)
    assert json.loads(done.stdout)["run_id"] == "digits-20261129-201500-aaaa"


def test_a_run_that_is_not_there_any_more(project: Path) -> None:
    gone = local_run(project, "digits-20261130-201600-gone", 1796000100.0)
    gone.update_state(state="RUNNING")
    with gone.followed():
        assert keep(gone)
    gone.path.rename(project / "moved")
    listed = {entry["run_id"]: entry for entry in json.loads(cloudtrain("runs", "--json", cwd=project).stdout)}
    entry = listed["digits-20261130-201600-gone"]
    assert entry["state"] == "UNKNOWN" and entry["reason"].startswith("its folder is not there")
    done = cloudtrain("status", "digits-20261130-201600-gone", cwd=project)
    assert done.returncode == 4 and "there is no run in" in done.stderr


def test_before_there_is_any_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))
    assert cloudtrain("runs", cwd=tmp_path).stdout == "none\n"
    assert json.loads(cloudtrain("runs", "--json", cwd=tmp_path).stdout) == []
    done = cloudtrain("status", "latest", cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "cloudtrain: no run has been made yet")
    assert not (tmp_path / "home").exists()


def on_a_terminal(columns: int, *words: str, cwd: Path) -> str:
    """What the command shows on a terminal of this width, standard error included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen([*COMMAND, *words], cwd=cwd, stdout=theirs, stderr=theirs, stdin=theirs, env=env) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # as Linux says that nobody has the other end
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    assert process.returncode == 0, shown
    return shown.decode()


@pytest.mark.parametrize(
    ("columns", "kept"),
    [(200, "run provider state created took reason"), (60, "run provider state"), (40, "run state"), (20, "run")],
)
def test_on_a_narrow_terminal_columns_give_way(project: Path, columns: int, kept: str) -> None:
    lines = on_a_terminal(columns, "runs", cwd=project).splitlines()
    assert lines[0].split()[: len(kept.split())] == kept.split()
    assert len(lines) == 3 and all(len(line) <= max(columns, len(RUN)) for line in lines)
    assert lines[2].startswith(RUN)


def test_download_never_replaces_what_differs(project: Path, tmp_path: Path) -> None:
    to = tmp_path / "results"
    done = cloudtrain("download", RUN, "--to", to, cwd=project)
    assert done.stdout.splitlines() == [f"{to}/model: 1 file, 1.9 MiB", f"{to}/metrics: 1 file, 3 bytes"]
    assert sorted(path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file()) == [
        "metrics/rank-0.jsonl",
        "model/model.pt",
    ]
    again = cloudtrain("download", RUN, "--to", to, cwd=project).stdout.splitlines()
    assert again == [f"{to}/model: 1 file, 1.9 MiB, there already", f"{to}/metrics: 1 file, 3 bytes, there already"]
    for mine in (b"mine", b"m" * 2_000_000):  # of another size, of the same
        (to / "model" / "model.pt").write_bytes(mine)
        done = cloudtrain("download", RUN, "--to", to, "--json", cwd=project)
        assert (done.returncode, done.stdout) == (2, "")
        assert "has other files already: 'model/model.pt'" in done.stderr and "--force" in done.stderr
        assert (to / "model" / "model.pt").read_bytes() == mine
    done = cloudtrain("download", RUN, "--to", to, "--force", "--only", "model", "--json", cwd=project)
    assert json.loads(done.stdout) == {"run_id": RUN, "folder": str(to), "folders": [str(to / "model")]}
    assert (to / "model" / "model.pt").read_bytes() == b"w" * 2_000_000
    assert not [path for path in to.iterdir() if path.name.startswith(".")]


def test_what_was_downloaded_is_no_code_of_the_next_job(project: Path, tmp_path: Path) -> None:
    (project / "job.yaml").write_text("name: digits\nentry: train.py\n")
    (project / "train.py").touch()
    listed = cloudtrain("bundle", "--list", "job.yaml", cwd=project).stdout
    assert cloudtrain("download", RUN, cwd=project).returncode == 0
    assert (project / RUN / "model" / "model.pt").exists()
    assert cloudtrain("bundle", "--list", "job.yaml", cwd=project).stdout == listed


def test_download_shows_a_bar_on_a_terminal(project: Path) -> None:
    shown = on_a_terminal(100, "download", RUN, cwd=project)
    assert "downloading" in shown and "2.0/2.0 MB" in shown
    assert (project / RUN / "model" / "model.pt").stat().st_size == 2_000_000


def test_stopping_what_is_over(project: Path) -> None:
    done = cloudtrain("stop", RUN, "--wait", cwd=project)
    assert (done.returncode, done.stdout) == (0, f"run {RUN} was over already: SUCCEEDED\n")
    assert json.loads(cloudtrain("stop", RUN, "--json", cwd=project).stdout)["state"] == "SUCCEEDED"


def test_a_dry_run_sends_nothing(project: Path, tmp_path: Path) -> None:
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "job.yaml").write_text("name: digits\nentry: train.py\n")
    (tmp_path / "q" / "train.py").touch()
    settings = ["--set", "region=eu-west-1", "--set", "role=arn:aws:iam::111122223333:role/x", "--set", "bucket=b"]
    rendered = cloudtrain("render", "job.yaml", "--provider", "sagemaker", *settings, cwd=tmp_path / "q")
    words = ["submit", "job.yaml", "--provider", "sagemaker", *settings, "--dry-run"]
    report = json.loads(cloudtrain(*words, "--json", cwd=tmp_path / "q").stdout)
    assert report["request"] == json.loads(rendered.stdout)
    assert report["name"] == f"{report['run_id']}-a1" and report["account"]["region"] == "eu-west-1"
    assert cloudtrain(*words, "--quiet", cwd=tmp_path / "q").stdout == f"{report['run_id']}\n"
    assert "nothing was sent" in cloudtrain(*words, cwd=tmp_path / "q").stdout
    done = cloudtrain(*words[:4], "--dry-run", cwd=tmp_path / "q")
    assert done.returncode == 3 and "not set: sagemaker.region, sagemaker.role, sagemaker.bucket" in done.stderr
    assert len(json.loads(cloudtrain("runs", "--json", cwd=project).stdout)) == 2


def test_a_dry_run_looks_at_the_ledger(project: Path) -> None:
    (project / "job.yaml").write_text(
        "name: digits\nentry: train.py\nenvironment: {image: {vertex: europe-docker.pkg.dev/p/r/i:1}}\n"
        "limits: {cost_usd: 5}\n"
    )
    (project / "train.py").touch()
    settings = ["--set", "region=europe-west4", "--set", "project=p", "--set", "bucket=b"]
    words = ["submit", "job.yaml", "--provider", "vertex", *settings, "--dry-run"]
    first = json.loads(cloudtrain(*words, "--json", cwd=project).stdout)
    run_id = first["run_id"]
    assert (first["name"], first["going_on"]) == (f"{run_id}-a1", False)
    assert first["warnings"] and set(first["warnings"]) <= set(first["notes"])
    known = Entry(
        run_id=run_id, provider="vertex", name="digits", family=run_id, project="/elsewhere", attempt=1,
        native_name=first["name"], native_id="projects/p/locations/l/customJobs/1", account={}, created=1.0,
        state=State.RUNNING,
    )  # fmt: skip
    with Ledger.open() as ledger:
        ledger.begin(known, {})
    done = cloudtrain(*words, cwd=project)
    assert f"would take up run {run_id} of this job, RUNNING when it was last seen" in done.stdout
    assert "warning: limits.cost_usd: nothing ends the run when it has cost 5 USD" in done.stderr.splitlines()[-1]
    assert "cloudtrain render job.yaml --provider vertex" in done.stdout
    with Ledger.open() as ledger:
        ledger.begin(replace(known, state=State.FAILED), {})
    then = json.loads(cloudtrain(*words, "--json", cwd=project).stdout)
    assert (then["run_id"], then["name"], then["going_on"]) == (f"{run_id}-2", f"{run_id}-2-a1", False)
    assert f"run {run_id} of this job FAILED before" in cloudtrain(*words, cwd=project).stdout


def test_a_run_says_who_it_is(project: Path) -> None:
    run = ct.Run.open(RUN, project)
    assert repr(run) == f"<Run {RUN} on local, SUCCEEDED when it was last looked at>"
    with Ledger.open() as ledger:
        cloud = ledger.entry(CLOUD)
    assert cloud and repr(ct.Run.of(cloud)) == f"<Run {CLOUD} on sagemaker, FAILED when it was last looked at>"
