"""How a cloud node ends: results delivered whatever the end, the reason where the platform reads it, its exit code."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.entrypoints.clouds.conftest import Make
from tests.entrypoints.clouds.nodes import CloudJob, is_prepared
from tests.entrypoints.prepare.server import Answer, Server
from tests.local.project import may_isolate, require

# Every rank writes into the named output and the metrics, and then ends as it is told.
WRITES = """
import os, pathlib, signal, sys, time
rank = os.environ["RANK"]
for name in ("CLOUDTRAIN_OUTPUT_MADE", "CLOUDTRAIN_METRICS_DIR"):
    if name in os.environ:
        folder = pathlib.Path(os.environ[name], "sub")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"rank-{rank}").write_text(f"of {rank}")
pathlib.Path(os.environ["PROJECT"], f"up-{rank}").touch()
"""
WITHOUT_ROOTS_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
FAILS = WRITES + "if rank == '1':\n    raise RuntimeError('no good' + '!' * 3000)\ntime.sleep(1000)\n"
WAITS = WRITES + "time.sleep(1000)\n"


def _delivered(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def _made_by(*ranks: int) -> dict[str, str]:
    return {f"sub/rank-{rank}": f"of {rank}" for rank in ranks}


@pytest.mark.parametrize("scheme", ["file://", ""])
def test_named_outputs_of_sagemaker(scheme: str, make: Make) -> None:
    job = make("sagemaker")
    job.variables["CLOUDTRAIN_OUTPUT_MADE"] = f"{scheme}{job.folder}/delivered"
    job.write(WRITES, processes_per_node=1)
    assert job.run() == [0, 0], job.said
    assert _delivered(job.folder / "delivered") == _made_by(0, 1)
    assert f"[1/-] outputs.made: 1 files delivered to {scheme}{job.folder}/delivered\n" in job.nodes[1].out
    assert not any((root / "output/failure").exists() for root in job.opt_ml)


def test_metrics_of_vertex(make: Make) -> None:
    job = make("vertex")
    job.write(WRITES + "assert not os.environ['CLOUDTRAIN_METRICS_DIR'].startswith(os.environ['PROJECT'])\n")
    assert job.run() == [0, 0], job.said
    assert _delivered(job.bucket / "runs/r1/metrics") == _made_by(0, 1, 2, 3)


LOGS = """
import os, pathlib
folder = pathlib.Path(os.environ["CLOUDTRAIN_METRICS_DIR"])
with (folder / "rank-0.jsonl").open("a") as file:
    file.write(f'{{"step": {os.environ["STEP"]}}}\\n')
(folder / "summary.json").write_text(os.environ["STEP"])
"""


@pytest.mark.parametrize("provider", ["vertex", "azureml"])
def test_metrics_of_a_job_that_goes_on(provider: str, make: Make) -> None:
    """Started once more, by the service or by cloudtrain, it measures into the same folder."""
    job = make(provider, count=1)
    job.write(LOGS, processes_per_node=1)
    for step in ("1", "2"):
        job.variables["STEP"] = step
        assert job.start(0).end() == 0, job.said
    metrics = job.bucket / "runs/r1/metrics" if provider == "vertex" else job.mount / "metrics"
    assert _delivered(metrics) == {"rank-0.jsonl": '{"step": 1}\n{"step": 2}\n', "summary.json": "2"}


def test_odd_things_among_the_results(make: Make) -> None:
    """Links in a circle, a pipe that nobody reads, a folder that the script took away: none of them hangs or fails."""
    odd = WRITES + "folder = pathlib.Path(os.environ['CLOUDTRAIN_OUTPUT_MADE'])\n"
    odd += "for name in 'xy':\n    (folder / name).symlink_to('.')\nos.mkfifo(folder / 'pipe')\n"
    odd += "os.rmdir(os.environ['CLOUDTRAIN_OUTPUT_EMPTY'])\n"
    job = make("sagemaker", count=1)
    job.variables["CLOUDTRAIN_OUTPUT_MADE"] = f"{job.folder}/delivered"
    job.variables["CLOUDTRAIN_OUTPUT_EMPTY"] = f"{job.folder}/empty"
    job.write(odd, processes_per_node=1)
    assert job.run() == [0], job.said
    assert _delivered(job.folder / "delivered") == _made_by(0)
    assert "[0/-] outputs.made: left out, since they are no files: 'pipe'\n" in job.said
    assert f"[0/-] outputs.empty: nothing is delivered to {job.folder}/empty, its folder is gone\n" in job.said


def test_folders_that_the_script_has_locked_are_removed_all_the_same(make: Make) -> None:
    require(os.geteuid() != 0 or shutil.which("setpriv") is not None, "root may read everything")
    job = make("vertex", count=1)
    locks = "import os\nos.makedirs('locked/folder')\nos.chmod('locked', 0)\nos.chmod('.', 0o500)\n"
    job.write(locks, processes_per_node=1)
    node = job.start(0, before=WITHOUT_ROOTS_RIGHTS if os.geteuid() == 0 else ())
    assert node.end() == 0, job.said  # that nothing is left is checked after every test here


def test_after_a_failure(make: Make) -> None:
    job = make("sagemaker")
    job.variables["CLOUDTRAIN_OUTPUT_MADE"] = f"{job.folder}/delivered"
    job.write(FAILS)
    assert job.run() == [1, 1], job.said
    assert set(_delivered(job.folder / "delivered")) >= {"sub/rank-1"}
    for root in job.opt_ml:
        reason = (root / "output/failure").read_text()
        assert reason.startswith("rank 1 on node 0: RuntimeError: no good!!!")
        assert len(reason) == 1024


def test_the_reason_and_the_end_of_the_traceback(make: Make) -> None:
    job = make("sagemaker", count=1)
    job.write("def broken():\n    raise ValueError('short')\nbroken()\n", processes_per_node=1)
    assert job.run() == [1], job.said
    first, *trace = (job.opt_ml[0] / "output/failure").read_text().splitlines()
    assert first == "rank 0 on node 0: ValueError: short"
    assert trace[0] == "Traceback (most recent call last):" and trace[-1] == "ValueError: short"


def test_a_reason_that_the_script_has_given_stays(make: Make) -> None:
    job = make("sagemaker", count=1)
    job.write("import os, sys\nopen(os.environ['WHY'], 'w').write('my own words')\nsys.exit(3)\n", processes_per_node=1)
    job.variables["WHY"] = str(job.opt_ml[0] / "output/failure")
    assert job.run() == [3], job.said
    assert (job.opt_ml[0] / "output/failure").read_text() == "my own words"


@pytest.mark.parametrize(
    ("spoiled", "reason"),
    [
        ("input/config/resourceconfig.json", "resourceconfig.json is not JSON: "),
        ("input/data/cloudtrain_spec/spec.json", "cannot read the launch spec "),
        ("input/data/cloudtrain_code/code.tar.gz", "node 0: CLOUDTRAIN_CODE: "),
    ],
)
def test_the_reason_why_nothing_started(spoiled: str, reason: str, make: Make) -> None:
    job = make("sagemaker", count=1)
    job.write()
    env = job.environment(0, {})
    (job.opt_ml[0] / spoiled).write_text("{")
    job.environment = lambda *_: env  # type: ignore[method-assign]
    assert job.run() == [125]
    assert reason in (job.opt_ml[0] / "output/failure").read_text().splitlines()[0]


def test_after_a_preemption(make: Make) -> None:
    job = make("vertex")
    job.write(WAITS, processes_per_node=1)
    _up(job)
    job.nodes[1].process.send_signal(signal.SIGTERM)
    assert [node.end() for node in job.nodes] == [143, 143], job.said
    assert _delivered(job.bucket / "runs/r1/metrics") == _made_by(0, 1)


STOPS_LATE = """
import os, pathlib, signal, sys, time
here = pathlib.Path(os.environ["PROJECT"])
if (here / "once-more").exists():
    sys.exit()
signal.signal(signal.SIGTERM, signal.SIG_IGN if os.environ["RANK"] == "0" else signal.SIG_DFL)
(here / f"up-{os.environ['RANK']}").touch()
while not (here / "enough").exists():
    time.sleep(0.02)
"""


def test_a_container_that_is_started_once_more_while_node_0_is_on_its_way_out(make: Make) -> None:
    """It belongs to the next start of node 0: neither refused nor let in by this one, it waits."""
    job = make("sagemaker")
    job.write(STOPS_LATE, processes_per_node=1)
    _up(job)
    head, other = job.nodes
    other.process.send_signal(signal.SIGTERM)
    assert other.end() == 143, job.said
    (job.folder / "once-more").touch()
    again = job.start(1)
    again.wait_for(lambda: is_prepared(again))
    (job.folder / "enough").touch()
    assert head.end() == 143, job.said
    assert [job.start(0).end(), again.end()] == [0, 0], job.said


def _up(job: CloudJob, ranks: int = 2) -> None:
    for number in range(job.count):
        job.start(number)
    for rank in range(ranks):
        job.nodes[0].wait_for((job.folder / f"up-{rank}").exists)


def test_sigterm_while_results_are_delivered(make: Make, server: Server) -> None:
    """They are still delivered, and the end is a preemption, as it is for ranks that end well when told to stop."""
    job = make("sagemaker")
    _with_aws(job, server)
    server.answer("/", Answer(headers={"ETag": '"0"'}))
    server.open.clear()
    job.write(WRITES, processes_per_node=1)
    _up(job)
    job.nodes[0].wait_for(lambda: len({asked.path for asked in server.asked_for("/bucket")}) == 2)
    job.nodes[0].process.send_signal(signal.SIGTERM)
    server.open.set()
    assert [node.end() for node in job.nodes] == [143, 143], job.said
    assert "[1/-] outputs.made: 1 files delivered to s3://bucket/runs/r1/made/\n" in job.nodes[1].out


def test_results_that_take_longer_than_the_grace(make: Make, server: Server) -> None:
    """The platform would kill the container in the middle of it; that the results are lost is said before."""
    job = make("sagemaker", count=1)
    _with_aws(job, server)
    server.open.clear()
    job.write(WAITS, processes_per_node=1, grace=1.0)
    _up(job, ranks=1)
    job.nodes[0].process.send_signal(signal.SIGTERM)
    assert job.nodes[0].end() == 143, job.said
    assert "[0/-] no time is left to deliver the results; what was not delivered is lost\n" in job.said


def test_a_folder_that_cannot_be_made_ends_the_job_on_all_nodes(make: Make) -> None:
    job = make("azureml")
    job.write()
    (job.folder / "file").write_text("no folder")
    job.start(0)
    job.start(1, changed={"CLOUDTRAIN_MODEL_DIR": str(job.folder / "file/model")})
    assert [node.end() for node in job.nodes] == [125, 125]
    assert (
        "[0/-] failed first: node 1: cannot make CLOUDTRAIN_MODEL_DIR: [Errno 20] Not a directory" in job.nodes[0].out
    )


def test_what_cannot_be_delivered_fails_the_job_on_all_nodes(make: Make) -> None:
    job = make("vertex")
    (job.bucket / "runs/r1").mkdir(parents=True)
    job.write(WRITES, processes_per_node=1)
    (job.bucket / "runs/r1/metrics").write_text("a file where the folder is to be")
    assert job.run() == [1, 1], job.said
    for node in job.nodes:
        failed = next(line for line in node.out.splitlines() if "failed first" in line)
        assert f"metrics could not be delivered to {job.bucket}/runs/r1/metrics: [Errno 20] Not a directory" in failed
        assert node.report["root"]["kind"] == "delivery"


ON_A_FULL_DISK = """
mount -t tmpfs -o size=100k tmpfs "$METRICS" && head -c 60000 /dev/zero > "$METRICS/rank-0.jsonl" || exit 9
"$@"
echo "exit code $?, $(wc -c < "$METRICS/rank-0.jsonl") bytes, $(ls -A "$METRICS" | wc -l) files"
"""


def test_metrics_of_earlier_starts_outlive_a_disk_that_is_full(make: Make) -> None:
    require(may_isolate() and os.geteuid() == 0, "only root may mount a small disk")
    job = make("vertex", count=1)
    metrics = job.bucket / "runs/r1/metrics"
    metrics.mkdir(parents=True)
    grows = "import os, pathlib\nplace = pathlib.Path(os.environ['CLOUDTRAIN_METRICS_DIR'], 'rank-0.jsonl')\n"
    job.write(grows + "place.write_text('x' * 60000)\n", processes_per_node=1)
    shell = ("unshare", "--mount", "sh", "-c", ON_A_FULL_DISK, "sh")
    node = job.start(0, before=shell, changed={"METRICS": str(metrics)})
    node.end()
    assert "metrics could not be delivered" in node.out and "No space left on device" in node.out
    assert "exit code 1, 60000 bytes, 1 files" in node.out


def test_a_failure_stays_the_cause_when_delivering_fails_too(make: Make) -> None:
    job = make("vertex", count=1)
    (job.bucket / "runs/r1").mkdir(parents=True)
    job.write(WRITES + "sys.exit(7)\n", processes_per_node=1)
    (job.bucket / "runs/r1/metrics").write_text("a file where the folder is to be")
    assert job.run() == [1], job.said
    assert "[0/-] failed first: rank 0 on node 0 exited with code 7" in job.said
    assert "[0/-] metrics could not be delivered to " in job.said


@pytest.mark.parametrize("target", ["gs://b/m", "relative/folder", "s3://"])
def test_a_place_that_cannot_be_delivered_to_is_said_before_the_training(target: str, make: Make) -> None:
    job = make("sagemaker", count=1, variables={"CLOUDTRAIN_OUTPUT_MADE": target})
    job.write("print('trained')\n")
    assert job.run() == [125]
    assert f"CLOUDTRAIN_OUTPUT_MADE is '{target}'; results are delivered to s3://bucket/path" in job.said
    assert "trained" not in job.said


def _with_aws(job: CloudJob, server: Server) -> None:
    require(importlib.util.find_spec("boto3") is not None, "boto3 is not installed")
    job.variables.update(
        AWS_ENDPOINT_URL=server.url, AWS_ACCESS_KEY_ID="AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY="k",
        AWS_CONFIG_FILE=os.devnull, AWS_SHARED_CREDENTIALS_FILE=os.devnull, AWS_EC2_METADATA_DISABLED="true",
        CLOUDTRAIN_OUTPUT_MADE="s3://bucket/runs/r1/made/",
    )  # fmt: skip


def test_named_outputs_go_to_s3(make: Make, server: Server) -> None:
    job = make("sagemaker")
    _with_aws(job, server)
    server.answer("/", Answer(status=200, headers={"ETag": '"0"'}))
    job.write(WRITES, processes_per_node=1)
    assert job.run() == [0, 0], job.said
    put = sorted(asked.path for asked in server.asked if asked.method == "PUT")
    assert put == [f"/bucket/runs/r1/made/sub/rank-{rank}" for rank in (0, 1)]
    assert {asked.headers["authorization"].split("/")[2] for asked in server.asked} == {"eu-west-1"}
    assert "[0/-] outputs.made: 1 files delivered to s3://bucket/runs/r1/made/\n" in job.said


def test_s3_that_refuses(make: Make, server: Server) -> None:
    job = make("sagemaker", count=1)
    _with_aws(job, server)
    denied = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
    server.answer("/", Answer(denied, 403))
    job.write(WRITES, processes_per_node=1)
    assert job.run() == [1], job.said
    reason = (job.opt_ml[0] / "output/failure").read_text()
    assert reason.startswith("node 0: outputs.made could not be delivered to s3://bucket/runs/r1/made/: ")
    assert "AccessDenied" in reason


def test_an_image_without_boto3_is_found_before_the_training(make: Make, tmp_path: Path) -> None:
    job = make("sagemaker", count=1, variables={"CLOUDTRAIN_OUTPUT_MADE": "s3://bucket/made"})
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/boto3.py").write_text("raise ModuleNotFoundError(\"No module named 'boto3'\")\n")
    job.variables["PYTHONPATH"] = str(tmp_path / "hidden")
    job.write("print('trained')\n")
    assert job.run() == [125]
    assert "outputs.made: this image has no boto3" in job.said and "trained" not in job.said


@pytest.mark.parametrize(
    ("provider", "how", "code"),
    [
        ("vertex", "os.abort()", 1),
        ("vertex", "os.kill(os.getpid(), signal.SIGSEGV)", 1),
        ("vertex", "os._exit(6)", 1),
        ("vertex", "os._exit(7)", 1),
        ("sagemaker", "os.abort()", 134),
        ("azureml", "os._exit(11)", 11),
    ],
)
def test_codes_that_vertex_would_take_for_a_passing_fault(provider: str, how: str, code: int, make: Make) -> None:
    job = make(provider, count=1)
    job.write(f"import os, signal\n{how}\n", processes_per_node=1)
    assert job.run() == [code], job.said
    original = job.nodes[0].report["exit_code"]
    told = f"cloudtrain launch: leaves with 1 instead of {original}, for which vertex would run the whole job again\n"
    assert (told in job.said) is (code == 1)
