"""Readers of a run's output that pause, stop or go away."""

from __future__ import annotations

import fcntl
import signal
import struct
import termios

import pytest

from tests.local.project import LIMIT_SECONDS, Project

FLOOD = """
import os, pathlib
pathlib.Path(os.environ["PROJECT"], f"up-{os.environ['RANK']}").touch()
while True:
    print("x" * 200)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_reader_that_has_stopped_reading_does_not_keep_the_run_from_being_stopped(
    project: Project, number: int, code: int
) -> None:
    project.job(FLOOD, nodes=1, processes=1)
    running = project.start("--isolation", "none", "--grace", "1s")
    assert running.process.stdout is not None and running.process.stderr is not None
    pipe = running.process.stdout.fileno()

    def filled() -> bool:  # all but what is left of its last pages
        waiting: int = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]
        return waiting > fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) * 3 // 4

    with running.process:
        running.wait_for(filled, "full pipe")
        running.signal(number)
        try:
            assert running.process.wait(timeout=LIMIT_SECONDS) == code
        finally:
            running.process.kill()


def test_output_and_a_signal_handler(project: Project) -> None:
    """A signal in the middle of a long write makes the kernel take a part of it; the rest must follow."""
    script = """
import signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for i in range(100):
    print(f"{i:06d}" + "x" * 500_000)
"""
    project.job(script, nodes=1, processes=1)
    result = project.run("--isolation", "none", "--quiet")
    assert result.code == 0
    assert result.log(0) == b"".join(b"%06d" % i + b"x" * 500_000 + b"\n" for i in range(100))


@pytest.mark.parametrize("view", ["--plain", "--live"])
def test_a_reader_that_leaves_before_the_curve_is_drawn(project: Project, view: str) -> None:
    script = """
import cloudtrain_job as ctj
for step in range(50):
    ctj.log(step=step, loss=1 / (step + 1))
    print("step", step)
print("done" * 50_000)
"""
    project.job(script, nodes=1, processes=1)
    with project.start("--isolation", "none", view).process as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 0, err
    assert project.result(0, "", err).report["state"] == "SUCCEEDED"


def test_standard_output_that_is_full_does_not_end_the_run(project: Project) -> None:
    project.job("print('x' * 100_000)\n", nodes=1, processes=1)
    result = project.run("--isolation", "none", prefix=("sh", "-c", 'exec "$@" > /dev/full', "sh"))
    assert result.code == 0, result.err
    assert result.report["state"] == "SUCCEEDED"


def test_no_standard_output_at_all(project: Project) -> None:
    project.job("print('x')\n", nodes=1, processes=1)
    result = project.run("--isolation", "none", prefix=("sh", "-c", 'exec "$@" >&-', "sh"))
    assert result.code == 0, result.err
