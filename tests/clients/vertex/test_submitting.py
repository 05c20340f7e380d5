"""Submits at once, of a service that makes a job for every call, whatever its name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import cloudtrain as ct
from cloudtrain.providers.port import Client
from cloudtrain.record.observer import Observer
from tests.clients.sockets import assert_back_to, sockets
from tests.clients.vertex.service import Service
from tests.providers.contexts import ACCOUNTS

LIMIT_SECONDS = 240


class Waiting(Observer):
    """Tells when a submit waits for another one."""

    def __init__(self) -> None:
        self.waits = threading.Event()

    def note(self, text: str) -> None:
        if "waiting" in text:
            self.waits.set()


@pytest.mark.usefixtures("rest", "bucket")
def test_two_submits_at_once_make_one_job(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "job.yaml").write_text("name: digits\nentry: train.py\n")
    observer = Waiting()
    service.before_create = lambda: observer.waits.wait(LIMIT_SECONDS)

    def submit(_: int) -> Any:
        return ct.submit(tmp_path / "job.yaml", "vertex", settings=ACCOUNTS["vertex"], observer=observer)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(submit, range(2))

    assert len(service.jobs) == 1
    assert (first.run_id, first.native_id) == (second.run_id, second.native_id)


@pytest.mark.usefixtures("rest", "bucket")
def test_no_connection_is_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "job.yaml").write_text("name: digits\nentry: train.py\n")
    before = sockets()
    run = ct.submit(tmp_path / "job.yaml", "vertex", settings=ACCOUNTS["vertex"])
    assert list(run.logs()) == list(run.artefacts()) == []
    client = run.client
    assert sockets() > before
    for _ in range(2):
        run.close()
        client.close()
        assert_back_to(before)
    assert list(run.artefacts()) == []  # over other connections
    run.close()


def test_a_client_gives_its_connections_back(either: str, connect: Callable[[], Client]) -> None:
    """By both ways."""
    before, client = sockets(), connect()
    assert list(client.list()) == []
    assert sockets() > before
    client.close()
    assert_back_to(before)
