"""The live view, on a terminal."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess

from tests.local.project import CLOUDTRAIN, Project, Running

LOGS = """
import os, pathlib, time
import cloudtrain_job as ctj
for step in range(1, 1001):
    ctj.log(step=step, total_steps=1000, loss=1.0 / step, samples_per_second=1234.0)
    print("line", step)
    if step == 20:
        pathlib.Path(os.environ["PROJECT"], f"up-{os.environ['RANK']}").touch()
    time.sleep(0.05)
"""

TERMINAL = {"TERM": "xterm", "COLUMNS": "120"}


def test_it_shows_state_step_speed_time_left_and_losses(project: Project) -> None:
    project.job(LOGS)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [CLOUDTRAIN, "run", "job.yaml", "--isolation", "none", "--ranks", "0"],
        cwd=project.folder, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        env={**os.environ, "CT_TEST_MARK": project.mark, "PROJECT": str(project.folder), **TERMINAL},
    )  # fmt: skip
    os.close(slave)
    running = Running(process, project)
    shown = b""

    def read() -> bool:
        nonlocal shown
        shown += os.read(master, 1 << 16)
        return all((project.folder / f"up-{rank}").exists() for rank in range(4)) and b"left" in shown

    running.wait_for(read, "the view")
    running.signal(signal.SIGINT)
    try:
        while data := os.read(master, 1 << 16):
            shown += data
    except OSError:  # the terminal's other end is closed
        pass
    os.close(master)
    assert process.wait() == 130
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert "[0/0] line 1\r\n" in text and "[0/1]" not in text
    assert re.search(r"RUNNING +\d+ s +step \d+ of 1000 +1234 samples/s +about \d+ s left", text)
    assert re.search(r"loss per rank +\[0\] 0\.\d+ +\[1\] 0\.\d+ +\[2\] 0\.\d+ +\[3\] 0\.\d+", text)
    assert "STOPPED after" in text
    assert shown.count(b"\x1b[?25l") == shown.count(b"\x1b[?25h")  # the cursor is shown again
