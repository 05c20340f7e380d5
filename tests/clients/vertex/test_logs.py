"""Lines of a job, from Cloud Logging's own REST form."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloudtrain.errors import RefusedError
from cloudtrain.providers.port import Client, Cursor, LogLine
from cloudtrain.providers.vertex.endpoints import Endpoints
from cloudtrain.providers.vertex.logs import Logs, Subject
from cloudtrain.providers.vertex.position import MOST_KEPT, STRETCH
from tests.clients.vertex.conftest import PROJECT, REGION
from tests.clients.vertex.service import EntryLog, Service, Trouble
from tests.providers.vertex.jobs import GPU, requested

Connect = Callable[[], Client]
JOB = "4000000000000000000"
START = 1_796_032_800
"""2026-11-30T10:00:00Z, when the job was created."""
SUBJECT = Subject(JOB, START * 10**9, (1, 3), is_over=False)
ORDER = 5.0


def stamp(seconds: float) -> str:
    """A moment of the job, by the microsecond."""
    minutes, rest = divmod(round(seconds * 1e6), 60_000_000)
    return f"2026-11-30T1{minutes // 60}:{minutes % 60:02}:{rest // 1_000_000:02}.{rest % 1_000_000:06}Z"


class Reader:
    """Somebody who reads a job's lines, through JSON as another process would."""

    def __init__(self, *, is_over: bool = False) -> None:
        self.now = float(START)
        self.subject = SUBJECT._replace(is_over=is_over)
        self.cursor: Cursor = {}
        self.lines: list[LogLine] = []
        self.logs = self._connected()

    def _connected(self) -> Logs:
        return Logs(Endpoints(PROJECT, REGION), PROJECT, ORDER, clock=lambda: self.now)

    def reconnect(self) -> None:
        self.logs = self._connected()

    def read(self) -> list[LogLine]:
        """All that there is now."""
        found: list[LogLine] = []
        while True:
            page = self.logs.page(self.subject, self.cursor)
            self.cursor = json.loads(json.dumps(page.cursor))
            found += page.lines
            if page.caught_up:
                self.lines += found
                return found

    def read_to_the_end(self) -> list[str]:
        """As a follower does after the end of a job."""
        for _ in range(4):
            self.now += ORDER
            self.read()
        return [line.text for line in self.lines]


@pytest.fixture
def log(rest: None, service: Service) -> EntryLog:
    return service.log


def numbered(log: EntryLog, count: int, *, task: str = "workerpool0-0", every: float = 0.01) -> list[str]:
    for number in range(count):
        log.add(JOB, task, f"[0/0] {number}", at=stamp(10 + number * every), number=number)
    return [str(number) for number in range(count)]


def test_who_says_what(log: EntryLog) -> None:
    for number, (task, text) in enumerate(
        [
            ("service", "Job is running."),
            ("workerpool0-0", "[0/-] launching"),
            ("workerpool1-2", "[3/7] loss 0.5"),
            ("workerpool1-2", "before launch.py"),
            ("workerpool0-0", "[0/1] two\nlines"),
            ("workerpool0-0", ""),
            ("service", "[0/1] not a rank's"),
            ("somebody-else", "?"),
        ]
    ):
        log.add(JOB, task, text, at=stamp(number), number=number)
    plain = {"jsonPayload": None, "textPayload": "[0/0] plain text"}
    log.add(JOB, "workerpool0-0", "", at="2026-11-30T10:00:20Z", number=20, **plain)
    log.add("4711", "workerpool0-0", "of another job", at=stamp(21), number=21)
    log.add(JOB, "workerpool0-0", "before the job was created", at="2026-11-30T09:00:00Z", number=22)
    log.add(JOB, "workerpool0-0", "", at=stamp(30), number=23, jsonPayload={"loss": 0.5})

    found = Reader(is_over=True).read()

    assert [line[:3] for line in found] == [
        (0, None, "Job is running."),
        (0, None, "launching"),
        (3, 7, "loss 0.5"),
        (3, None, "before launch.py"),
        (0, 1, "two"),
        (0, None, "lines"),
        (0, None, ""),
        (0, None, "[0/1] not a rank's"),
        (0, None, "?"),
        (0, 0, "plain text"),
        (0, None, '{"loss": 0.5}'),
    ]
    assert found[1].time == START + 1
    assert found[9].time == START + 20


def test_a_log_that_is_empty_yet(log: EntryLog) -> None:
    reader = Reader()
    assert reader.read() == []
    reader.now += 60
    assert reader.read() == []
    wanted = numbered(log, 3)
    assert reader.read_to_the_end() == wanted


def test_all_of_a_job_that_is_over_at_once(log: EntryLog) -> None:
    wanted = numbered(log, 3456)
    assert [line.text for line in Reader(is_over=True).read()] == wanted
    assert {asked.get("pageSize") for asked in log.asked} == {1, 1000}


def test_what_is_new_waits_for_what_is_late(log: EntryLog) -> None:
    reader = Reader()
    reader.read()
    log.add(JOB, "workerpool0-0", "[0/0] second", at=stamp(2), number=2)
    reader.now += 3
    assert reader.read() == []
    log.add(JOB, "workerpool0-0", "[0/0] first", at=stamp(1), number=1)
    reader.now += ORDER - 0.1
    asked = len(log.asked)
    assert reader.read() == []
    assert len(log.asked) == asked  # there is nothing that could be told
    reader.now += 0.2
    assert [line.text for line in reader.read()] == ["first", "second"]


@pytest.mark.parametrize("late", [10, 1200])
def test_what_comes_later_still_is_not_lost(late: float, log: EntryLog) -> None:
    """However much later: the lines that come meanwhile are not told twice, nor are they all asked for again."""
    reader = Reader()
    wanted = numbered(log, 100, every=0.5)
    hidden = log.take(JOB, 30)
    assert reader.read_to_the_end() == [text for text in wanted if text != "30"]
    reader.now = START + 60 + late
    wanted.append("meanwhile")
    log.add(JOB, "workerpool0-0", "[0/0] meanwhile", at=stamp(60 + late), number=100)
    assert reader.read_to_the_end()[-1] == "meanwhile"
    reader.now = START + 90 + late
    log.show({**hidden, "receiveTimestamp": stamp(90 + late)})
    assert [line.text for line in reader.read()] == ["30"]
    assert sorted(reader.read_to_the_end()) == sorted(wanted)
    assert late < STRETCH / 1e9 or len(reader.cursor["kept"]) == 2


def test_a_node_that_was_cut_off_sends_everything_at_once(log: EntryLog) -> None:
    """More lines than are known again, of old times, while the other node goes on."""
    reader, count = Reader(), MOST_KEPT + 4000
    for number in range(count):
        written, other = stamp(10 + number * 0.05), stamp(1000 + number * 0.001)
        log.add(JOB, "workerpool0-0", f"[0/0] {number}", at=written, number=number)
        log.add(JOB, "workerpool1-0", f"[1/1] {number}", at=written, number=count + number, receiveTimestamp=other)
    hidden = [log.take(JOB, place) for place in range(2 * count - 1, 0, -2)]
    assert {entry["resource"]["labels"]["task_name"] for entry in hidden} == {"workerpool1-0"}
    reader.now = START + 900
    assert len(reader.read_to_the_end()) == count
    for entry in hidden:
        log.show(entry)
    for number in range(100):
        log.add(JOB, "workerpool0-0", f"[0/0] {count + number}", at=stamp(1000 + number), number=2 * count + number)
    reader.now = START + 1100
    reader.read_to_the_end()

    for rank, wanted in ((0, count + 100), (1, count)):
        assert [line.text for line in reader.lines if line.rank == rank] == [str(number) for number in range(wanted)]
    assert len(reader.cursor["kept"]) <= MOST_KEPT


def test_pages_are_empty_and_others_follow(log: EntryLog) -> None:
    log.empty_pages = True
    wanted = numbered(log, 2500)
    assert [line.text for line in Reader(is_over=True).read()] == wanted


def test_pages_are_out_of_order(log: EntryLog) -> None:
    log.shuffled = True
    wanted = numbered(log, 2500)
    assert [line.text for line in Reader(is_over=True).read()] == wanted


def test_lines_of_one_moment_keep_their_order(log: EntryLog) -> None:
    for number in range(7000):  # more than one reading takes
        log.add(JOB, "workerpool0-0", f"[0/0] {number}", at="2026-11-30T10:00:01.000000007Z", number=number)
    assert [line.text for line in Reader(is_over=True).read()] == [str(number) for number in range(7000)]


def test_a_read_that_is_troubled_loses_nothing(log: EntryLog, service: Service) -> None:
    wanted = numbered(log, 2100)
    service.troubles += [
        Trouble("ListLogEntries", 429),
        Trouble("ListLogEntries", half=True),
        Trouble("ListLogEntries"),
    ]
    assert [line.text for line in Reader(is_over=True).read()] == wanted


def test_who_may_not_read(log: EntryLog, service: Service) -> None:
    service.troubles.append(Trouble("ListLogEntries", 403, "Permission 'logging.logEntries.list' denied"))
    with pytest.raises(RefusedError, match=r"Cloud Logging refuses: Permission 'logging\.logEntries") as error:
        Reader().read()
    assert error.value.cause == "permission" and "Logs Viewer" in str(error.value)


def test_a_flood_is_read_with_a_small_cursor(log: EntryLog) -> None:
    """16 ranks on 4 nodes, 2,000 lines each, as fast as they can, read while it goes on."""
    reader, lines = Reader(), defaultdict[tuple[int, int], list[str]](list)
    number = 0
    for part in range(4):
        for line in range(500):
            for rank in range(16):
                task = "workerpool0-0" if rank < 4 else f"workerpool1-{rank // 4 - 1}"
                at = stamp(1 + number * 0.0002)
                log.add(JOB, task, f"[{rank // 4}/{rank}] {part * 500 + line}", at=at, number=number)
                number += 1
        reader.now = START + 1 + number * 0.0002
        reader.read()
        assert len(json.dumps(reader.cursor)) < 400_000
    reader.read_to_the_end()

    for read in reader.lines:
        assert read.rank is not None
        lines[read.node, read.rank].append(read.text)
    assert len(lines) == 16
    assert set(map(tuple, lines.values())) == {tuple(map(str, range(2000)))}
    assert len(reader.cursor["kept"]) <= MOST_KEPT
    assert len(log.asked) < 150


class Written:
    """A line of one of two tasks, when it is received and when it can be seen; all in seconds."""

    def __init__(self, number: int, at: float, received: float, seen: float) -> None:
        self.number, self.at, self.received, self.seen = number, at, received, seen
        self.task = f"workerpool1-{number % 2}"


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize(("sent", "shown"), [(2.0, ORDER - 2.5), (20.0, STRETCH / 1e9 - 15), (2000.0, 30.0)])
def test_no_line_is_lost_or_read_twice(
    sent: float, shown: float, data: st.DataObject, rest: None, service: Service
) -> None:
    """However late lines are sent and shown, whenever the log is read, and by whichever process. Those that are not too
    late are in their place."""
    service.log = log = EntryLog()
    log.empty_pages = data.draw(st.booleans())
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    waiting = []
    for number, at in enumerate(sorted(rng.uniform(1, 60) for _ in range(rng.randint(0, 60)))):
        received = at + rng.choice([0.1, rng.uniform(0, sent)])
        waiting.append(Written(number, at, received, received + rng.uniform(0, shown)))
    count = len(waiting)
    reader = Reader()
    while waiting or reader.now < START + 60:
        reader.now += rng.choice([0.2, 1.0, ORDER, 10.0, sent / 10])
        for one in [one for one in waiting if START + one.seen <= reader.now]:
            waiting.remove(one)
            log.add(
                JOB,
                one.task,
                f"[{1 + one.number % 2}/{one.number % 2}] {one.number}",
                at=stamp(one.at),
                number=one.number,
                receiveTimestamp=stamp(one.received),
            )
        if rng.random() < 0.2:
            reader.reconnect()
        reader.read()
    found = [int(text) for text in reader.read_to_the_end()]

    assert sorted(found) == list(range(count))
    if sent + shown < ORDER:
        for rank in (0, 1):
            assert (own := [number for number in found if number % 2 == rank]) == sorted(own)


def test_through_the_port(rest: None, service: Service, connect: Connect) -> None:
    client = connect()
    made = client.create(requested(GPU))
    service.jobs[JOB].update(state="JOB_STATE_SUCCEEDED", endTime="2026-11-30T10:06:00Z")
    wanted = numbered(service.log, 1500)
    cursor: Cursor = {}
    lines: list[str] = []
    for _ in range(3):
        page = connect().logs(made.native_id, cursor)
        cursor = page.cursor
        lines += [line.text for line in page.lines]
    assert lines == wanted
    assert page.caught_up


@pytest.mark.parametrize(
    "cursor", [{"x": 1}, {"floor": "y"}, {"floor": 1, "released": 2, "hold": 3, "at": 4, "kept": 5}]
)
def test_a_cursor_that_is_none_is_the_beginning(cursor: dict[str, Any], log: EntryLog) -> None:
    wanted = numbered(log, 3)
    reader = Reader(is_over=True)
    reader.cursor = cursor
    assert [line.text for line in reader.read()] == wanted
