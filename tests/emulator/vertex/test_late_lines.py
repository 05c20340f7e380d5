"""Our reader of logs and the emulated Cloud Logging, on a clock that goes as fast as is wanted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cloudtrain.emulator.base import Clock, Site
from cloudtrain.emulator.faults import Faults
from cloudtrain.emulator.vertex.life import Surroundings
from cloudtrain.emulator.vertex.logs import EntryLog, text_payload
from cloudtrain.emulator.vertex.plane import VertexPlane
from cloudtrain.emulator.vertex.rest import Rest
from cloudtrain.emulator.vertex.service import JobService
from cloudtrain.emulator.vertex.storage import Storage
from cloudtrain.emulator.web import Server
from cloudtrain.providers.port import Cursor
from cloudtrain.providers.vertex.endpoints import LOGGING, Endpoints
from cloudtrain.providers.vertex.logs import Logs, Subject
from cloudtrain.providers.vertex.position import STRETCH
from tests.emulator.vertex.plain_nodes import start_nodes

PROJECT, JOB = "my-project", "4000000000000000000"
START, ORDER, POLL = 1_796_032_800, 5.0, 10.0
LATE = 20 * STRETCH / 1e9


class LogAlone(VertexPlane):
    """The plane of one log, without what jobs need."""

    def __init__(self, folder: Path, log: EntryLog) -> None:
        site = Site(folder, Clock(1.0), Faults.none(), start_nodes)
        around = Surroundings(site, log, Storage(folder / "gcs"), threading.Event(), {})
        self._rest = Rest(JobService(around), log)
        self.app = self._rest.answer


@contextmanager
def served(folder: Path, log: EntryLog) -> Iterator[str]:
    server = Server(LogAlone(folder, log), Faults.none(), "vertex")
    try:
        yield server.url
    finally:
        server.close()


@pytest.mark.parametrize(
    "faults", [{"late"}, {"out-of-order"}, {"late", "empty-pages"}, {"out-of-order", "empty-pages"}]
)
def test_lines_that_come_much_later_than_is_asked_for_again(
    faults: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_LATE_SECONDS", "_OVERTAKEN_SECONDS"):
        monkeypatch.setattr(f"cloudtrain.emulator.vertex.logs.{name}", LATE)
    now = float(START)

    def clock() -> float:
        return now

    log = EntryLog(faults, clock=lambda: round(clock() * 1e9))
    subject = Subject(JOB, START * 10**9, (1, 1), is_over=False)
    found: list[str] = []
    with served(tmp_path, log) as url:
        cursor: Cursor = {}
        for step in range(round(2 * LATE / POLL)):
            now += POLL
            if now < START + LATE:
                for rank in range(3):
                    text = f"[{rank % 2}/{rank}] {step}"
                    log.append(PROJECT, JOB, f"workerpool{rank % 2}-0", text_payload(text))
            logs = Logs(Endpoints(PROJECT, "r", {LOGGING: url}), PROJECT, ORDER, clock)
            page = logs.page(subject, cursor)  # each time another process
            assert page.caught_up
            cursor = json.loads(json.dumps(page.cursor))
            found += map(str, page.lines)
    assert sorted(found) == sorted(f"[{rank % 2}/{rank}] {step}" for step in range(119) for rank in range(3))
