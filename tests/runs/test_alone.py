"""Submits of one job wait for each other, whoever makes them and however they end."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cloudtrain.record.observer import Observer
from cloudtrain.runs.alone import alone

LIMIT_SECONDS = 240
HOLDER = """
import sys
from cloudtrain.runs.alone import alone
from cloudtrain.record.observer import Observer
with alone("digits", Observer()):
    print("held", flush=True)
    sys.stdin.read()
"""


class Waiting(Observer):
    def __init__(self) -> None:
        self.told = threading.Event()

    def note(self, text: str) -> None:
        assert "waiting" in text
        self.told.set()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("killed", [False, True])
def test_the_second_one_waits_for_the_first(killed: bool) -> None:
    entered, waiting = threading.Event(), Waiting()

    def second() -> None:
        with alone("digits", waiting):
            entered.set()

    thread = threading.Thread(target=second)
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout
        assert first.stdout.readline() == b"held\n"
        thread.start()
        assert waiting.told.wait(LIMIT_SECONDS)
        assert not entered.is_set()
        if killed:
            first.kill()
        else:
            first.communicate(timeout=LIMIT_SECONDS)
    thread.join(LIMIT_SECONDS)
    assert entered.is_set()


def test_other_jobs_do_not_wait() -> None:
    with alone("digits", Observer()), alone("words", Observer()):
        pass
    with alone("digits", Observer()):
        pass
