"""``cloudtrain emulate``: what the command gets, whose end it is, and that nothing is left of it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from tests.local.project import CLOUDTRAIN, LIMIT_SECONDS

SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
WAITS = """
import signal, sys, time
heard = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: heard.append(signal.Signals(number).name))
print("ready", flush=True)
while not heard:
    time.sleep(0.01)
time.sleep(0.3)
print(*heard, flush=True)
sys.exit(5)
"""


class Emulate:
    """Commands in a folder of their own, with one that stands for /tmp."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.folder = folder
        self.temporary = temporary
        self.started: list[subprocess.Popen[str]] = []

    def start(
        self, *arguments: str, env: Mapping[str, str] | None = None, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [CLOUDTRAIN, "emulate", *arguments], cwd=self.folder, env={**os.environ, **(env or {})}, text=True,
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.started.append(process)
        return process

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        process = self.start(*arguments, env=env)
        out, err = process.communicate(timeout=LIMIT_SECONDS)
        return process.returncode, out, err

    def ready(self, process: subprocess.Popen[str]) -> list[psutil.Process]:
        """Wait for the command's first line; all processes of the emulator, and the command."""
        assert process.stdout
        assert process.stdout.readline() == "ready\n", process.communicate()
        return psutil.Process(process.pid).children(recursive=True)

    def nothing_is_left(self, everything: list[psutil.Process]) -> None:
        _, left = psutil.wait_procs(everything, timeout=30)
        assert [process.cmdline() for process in left] == []
        deadline = time.monotonic() + 30
        while list(self.temporary.iterdir()):
            assert time.monotonic() < deadline, list(self.temporary.rglob("*"))
            time.sleep(0.02)


@pytest.fixture
def emulate(tmp_path: Path, temporary: Path) -> Iterator[Emulate]:
    emulate = Emulate(tmp_path, temporary)
    yield emulate
    for process in emulate.started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_the_exit_code_is_that_of_the_command(emulate: Emulate, command: str, code: int) -> None:
    assert emulate.run("--provider", "vertex", "--", "sh", "-c", command) == (code, "", "emulated here: vertex\n")


def test_the_command_is_run_as_it_stands(emulate: Emulate) -> None:
    words = ["--help", "a b", "$HOME", "", "--", "*", "ä"]
    program = "import json, sys; print(json.dumps([sys.argv[1:], sys.stdin.read()]))"
    process = emulate.start("--provider", "vertex", "--", sys.executable, "-c", program, *words, stdin=subprocess.PIPE)
    out, err = process.communicate("from outside", timeout=LIMIT_SECONDS)
    assert (process.returncode, json.loads(out)) == (0, [words, "from outside"]), err


def test_what_follows_the_command_is_its_own_without_dashes_too(emulate: Emulate) -> None:
    program = "import json, sys; print(json.dumps(sys.argv[1:]))"
    code, out, err = emulate.run("--provider", "vertex", sys.executable, "-c", program, "--provider", "x", "--", "-q")
    assert (code, json.loads(out)) == (0, ["--provider", "x", "--", "-q"]), err


REAL = {
    "AWS_ACCESS_KEY_ID": "real-1", "AWS_SECRET_ACCESS_KEY": "real-2", "AWS_SESSION_TOKEN": "real-3",
    "AWS_PROFILE": "real-4", "AWS_ENDPOINT_URL_S3": "https://real-5.example", "AWS_ROLE_ARN": "real-6",
    "AWS_SHARED_CREDENTIALS_FILE": "/real-7", "AWS_WEB_IDENTITY_TOKEN_FILE": "/real-8",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/real-9", "GOOGLE_APPLICATION_CREDENTIALS": "/real-10.json",
    "CLOUDSDK_CONFIG": "/real-11", "AZURE_CLIENT_SECRET": "real-12", "AZURE_CONFIG_DIR": "/real-13",
    "IDENTITY_ENDPOINT": "https://real-14.example", "MSI_SECRET": "real-15", "ARM_CLIENT_SECRET": "real-16",
    "AZUREML_DEV_URL_MFE": "https://real-17.example", "CLOUDTRAIN_ENDPOINT_BLOB": "https://real-18.example/{}",
    "STORAGE_EMULATOR_HOST": "http://real-19.example", "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": "/real-20",
}  # fmt: skip


@pytest.mark.parametrize("provider", ["sagemaker", "vertex"])
def test_nothing_of_the_shell_leads_to_a_real_account(emulate: Emulate, provider: str) -> None:
    ours = {"MINE": "kept", "HTTPS_PROXY": "http://proxy.example:3128", "no_proxy": "intern.example"}
    env = {name: value for name, value in os.environ.items() if name not in ("NO_PROXY", "CLOUDTRAIN_HOME")}
    process = subprocess.run(
        [CLOUDTRAIN, "emulate", "--provider", provider, "--", sys.executable, "-c", SHOW],
        env={**env, **REAL, **ours}, cwd=emulate.folder, capture_output=True, text=True, timeout=LIMIT_SECONDS,
        check=True,
    )  # fmt: skip
    seen = json.loads(process.stdout)
    assert {name: value for name, value in seen.items() if "real-" in value} == {}
    assert (seen["MINE"], seen["HTTPS_PROXY"]) == ("kept", ours["HTTPS_PROXY"])
    assert seen["no_proxy"] == seen["NO_PROXY"] == "intern.example,127.0.0.1,localhost"
    assert seen["CLOUDTRAIN_POLL_SECONDS"] == "0.2"
    home = Path(seen["CLOUDTRAIN_HOME"])
    assert home.is_relative_to(emulate.temporary)
    assert not home.exists()


@pytest.mark.parametrize("provider", ["sagemaker", "vertex", "azureml"])
def test_its_runs_are_not_among_the_users_own(emulate: Emulate, provider: str) -> None:
    """Each time the same job is a new one, and nothing of it is left where the user's other runs are."""
    (emulate.folder / "train.py").write_text("import time; time.sleep(600)\n")
    (emulate.folder / "job.yaml").write_text("name: same\nentry: train.py\n")
    home = {"CLOUDTRAIN_HOME": str(emulate.folder / "home"), "PYTHONWARNINGS": "ignore"}
    submit = ["--provider", provider, "--", CLOUDTRAIN, "submit", "job.yaml", "--provider", provider, "--json"]
    names = []
    for _ in range(2):
        code, out, err = emulate.run(*submit, env=home)
        assert code == 0, err
        names.append(json.loads(out)["run_id"] + "-a1")
        assert err.endswith(
            "gone with the emulator: 1 emulated job, with files, logs and cloudtrain's ledger of the runs\n"
            f"it had not ended: {names[-1]} on {provider}; submit --follow waits for a job's end\n"
        )
        assert "had not been created yet" not in err
    assert names[0] == names[1]
    runs = subprocess.run(
        [CLOUDTRAIN, "runs", "--json"], cwd=emulate.folder, env={**os.environ, **home}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert json.loads(runs.stdout) == []


def test_what_has_ended_is_not_said_to_go_on(emulate: Emulate) -> None:
    (emulate.folder / "train.py").write_text("print('nothing to do')\n")
    (emulate.folder / "job.yaml").write_text("name: short\nentry: train.py\n")
    submit = f"{CLOUDTRAIN} submit job.yaml --provider sagemaker --quiet"
    code, _, err = emulate.run("--provider", "sagemaker", "--", "sh", "-c", f"{submit} --follow && {submit} --new")
    assert code == 0, err
    assert "gone with the emulator: 2 emulated jobs, with" in err
    assert "\n1 of them had not ended: short-" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_passed_on_and_the_command_has_the_last_word(emulate: Emulate, number: signal.Signals) -> None:
    process = emulate.start("--provider", "vertex", "--", sys.executable, "-c", WAITS)
    everything = emulate.ready(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=LIMIT_SECONDS)
    assert (process.returncode, out) == (5, f"{number.name}\n"), err
    emulate.nothing_is_left(everything)


def test_ctrl_c_on_a_terminal_reaches_the_command_once(emulate: Emulate) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(emulate.folder)
        os.execv(CLOUDTRAIN, [CLOUDTRAIN, "emulate", "--provider", "vertex", "--", sys.executable, "-c", WAITS])
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    try:
        while True:
            said += os.read(terminal, 1000)
    except OSError:  # how a terminal says that nobody is left
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    assert said.count(b"SIGINT") == 1, said


def test_a_signal_before_the_command_runs_leaves_nothing(emulate: Emulate) -> None:
    process = emulate.start("--provider", "vertex", "--", "sleep", "600")
    deadline = time.monotonic() + LIMIT_SECONDS
    while not list(emulate.temporary.glob("cloudtrain-emulator-*")):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    everything = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 130
    emulate.nothing_is_left(everything)


def test_who_asks_twice_before_the_command_runs_does_not_wait(emulate: Emulate) -> None:
    process = emulate.start("--provider", "vertex", "--", "sleep", "600")
    while not (started := list(emulate.temporary.glob("cloudtrain-emulator-*"))):
        assert process.poll() is None
        time.sleep(0.005)
    everything = psutil.Process(process.pid).children(recursive=True)
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 143
    emulate.nothing_is_left(everything)
    assert not started[0].exists()


def test_who_waits_for_a_fault_file_that_nobody_writes_can_be_ended(emulate: Emulate) -> None:
    pipe = emulate.folder / "faults"
    os.mkfifo(pipe)
    process = emulate.start("--provider", "vertex", "--faults", str(pipe), "--", "true")
    writer = -1
    while writer < 0:
        assert process.poll() is None
        with contextlib.suppress(OSError):  # nobody has opened it to read yet
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LIMIT_SECONDS)
    os.close(writer)
    assert process.returncode == 143
    emulate.nothing_is_left([])


def test_when_it_is_killed_the_command_is_told_and_nothing_is_left(emulate: Emulate) -> None:
    process = emulate.start("--provider", "vertex", "--", sys.executable, "-c", WAITS)
    everything = emulate.ready(process)
    assert len(everything) >= 3, "the command, the keeper, fake-gcs-server"
    process.kill()
    out, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert set(out.split()) == {"SIGTERM"}  # the kernel may say it once for each thread of the one that is gone
    emulate.nothing_is_left(everything)


def test_without_a_command_the_variables_are_for_another_shell(emulate: Emulate) -> None:
    """Which may have more than the one that the emulator was started in, under whatever name."""
    process = emulate.start("--provider", "vertex")
    assert process.stdout
    lines = []
    while not lines or not lines[-1].startswith("export STORAGE_EMULATOR_HOST="):
        lines.append(process.stdout.readline())
        assert lines[-1], process.communicate()
    everything = psutil.Process(process.pid).children(recursive=True)
    script = "".join(lines) + f"{shlex.quote(sys.executable)} -c {shlex.quote(SHOW)}"
    env = {**os.environ, **REAL, "HARMLESS": "x", "MY_AWS_PROFILE": "y\nAWS_PROFILE=z"}
    for shell in filter(None, map(shutil.which, ("sh", "bash", "zsh"))):
        shown = subprocess.run([shell, "-c", script], env=env, capture_output=True, text=True, timeout=60, check=True)
        seen = json.loads(shown.stdout)
        assert {name: value for name, value in seen.items() if "real-" in value} == {}
        assert "AWS_PROFILE" not in seen
        assert (seen["HARMLESS"], seen["MY_AWS_PROFILE"]) == ("x", env["MY_AWS_PROFILE"])
        assert seen["AWS_SHARED_CREDENTIALS_FILE"] == "/dev/null"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 0
    emulate.nothing_is_left(everything)


@pytest.mark.parametrize("command", ["no-such-command", "./no/such/file", "/"])
def test_a_command_that_is_not_there(emulate: Emulate, command: str) -> None:
    code, out, err = emulate.run("--", command, "x")
    assert (code, out) == (3, "")
    assert err.startswith(f"cloudtrain: no such command: {command}\n")


def test_a_command_that_cannot_be_run(emulate: Emulate) -> None:
    program = emulate.folder / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    code, _, err = emulate.run("--provider", "vertex", "--", str(program))
    assert (code, f"cloudtrain: cannot run {program}: No such file or directory\n" in err) == (3, True)


def test_a_wrong_fault_file(emulate: Emulate) -> None:
    (emulate.folder / "faults.yaml").write_text("calls: [{fault: throtle}]\njobs: [{fault: lose-node}]\n")
    code, out, err = emulate.run("--faults", "faults.yaml", "--", "sleep", "600")
    assert (code, out) == (2, "")
    assert [line.partition(": ")[0] for line in err.splitlines()] == ["cloudtrain", "faults.yaml:2:16"]
    assert "faults.yaml:1:17: calls[0].fault: must be one of" in err


def test_faults_that_did_not_come_are_told(emulate: Emulate) -> None:
    """One hits the first look at the job; of the others the job knows nothing, or ends before its time."""
    (emulate.folder / "train.py").write_text("print('nothing to do')\n")
    (emulate.folder / "job.yaml").write_text("name: short\nentry: train.py\n")
    (emulate.folder / "faults.yaml").write_text(
        "calls: [{operation: DescribeTrainingJob, fault: throttle}, {operation: StopTrainingJob, fault: throttle}]\n"
        "jobs: [{name: 'short-*', fault: preempt, at: 500s}, {fault: lose-node, node: 1}]\n"
    )
    code, _, err = emulate.run(
        "--provider", "sagemaker", "--faults", "faults.yaml", "--", CLOUDTRAIN, "submit", "job.yaml", "--provider",
        "sagemaker", "--follow", "--quiet",
    )  # fmt: skip
    assert code == 0, err
    assert [line for line in err.splitlines() if "never happened" in line] == [
        "this fault never happened: calls[1] (throttle of StopTrainingJob)",
        "this fault never happened: jobs[0] (preempt of short-*)",
        "this fault never happened: jobs[1] (lose-node of *)",
    ]


@pytest.mark.parametrize(
    "arguments", [["--provider", "aws"], ["--speed", "0"], ["--speed", "fast"], ["--isolation", "vm"]]
)
def test_a_wrong_command_line(emulate: Emulate, arguments: list[str]) -> None:
    code, out, err = emulate.run(*arguments, "--", "true")
    assert (code, out) == (2, "")
    assert arguments[0] in err


def test_what_is_not_installed_is_not_emulated(emulate: Emulate) -> None:
    """A moto that cannot be loaded stands for none."""
    (emulate.folder / "moto.py").write_text("raise ImportError('no moto here')\n")
    env = {"PYTHONPATH": str(emulate.folder)}
    code, _, err = emulate.run("--provider", "sagemaker", "--", "true", env=env)
    assert code == 3
    assert "moto" in err
    assert "pip install 'cloudtrain[emulator" in err
    code, _, err = emulate.run("--", "true", env=env)
    assert code == 0, err
    emulated, *others = err.splitlines()
    assert emulated.startswith("emulated here: vertex")
    assert others[0].startswith("not emulated: sagemaker: ")


def test_clients_find_it_by_its_variables(emulate: Emulate) -> None:
    """And gone with it."""
    program = "import boto3; print(boto3.client('sts').get_caller_identity()['Account'].isdigit())"
    assert emulate.run("--provider", "sagemaker", "--", sys.executable, "-c", program)[:2] == (0, "True\n")
