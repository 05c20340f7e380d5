"""Lines out of CloudWatch Logs: moto's own, whose tokens stop changing at the end of a stream as AWS's do."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from cloudtrain.providers.port import Client, Cursor, LogLine
from tests.clients.sagemaker.aws import Aws, Trouble
from tests.clients.sagemaker.conftest import REGION

GROUP = "/aws/sagemaker/TrainingJobs"
JOB = "digits-3f9c2b71aa-a1"
T0 = int(time.time() * 1000) - 3_600_000
"""The service takes no line of the far past or future."""


class Log:
    """What the nodes' agents write."""

    def __init__(self, logs: Any) -> None:
        self._logs = logs
        self._made: set[str] = set()
        self._clock = T0

    def write(self, stream: str, lines: Iterable[str], job: str = JOB) -> None:
        name = f"{job}/{stream}"
        if not self._made:
            self._logs.create_log_group(logGroupName=GROUP)
        if name not in self._made:
            self._logs.create_log_stream(logGroupName=GROUP, logStreamName=name)
            self._made.add(name)
        events = []
        for line in lines:
            events.append({"timestamp": self._clock, "message": line})
            self._clock += 1
        for start in range(0, len(events), 10_000):
            self._logs.put_log_events(logGroupName=GROUP, logStreamName=name, logEvents=events[start : start + 10_000])

    def flood(self, stream: str, lines: Iterable[str]) -> None:
        """As ``write``, past the network: moto takes its time for each call."""
        from moto.backends import get_backend
        from moto.core import DEFAULT_ACCOUNT_ID

        self.write(stream, [])
        kept = get_backend("logs")[DEFAULT_ACCOUNT_ID][REGION].groups[GROUP].streams[f"{JOB}/{stream}"]
        kept.put_log_events([{"timestamp": self._clock, "message": line} for line in lines])
        self._clock += 1


@pytest.fixture
def log(boto: dict[str, Any]) -> Log:
    return Log(boto["logs"])


def read(client: Client, cursor: Cursor | None = None) -> tuple[list[LogLine], Cursor]:
    """All that is there now, by as many pages as it takes; every cursor goes through a file on the way."""
    lines: list[LogLine] = []
    cursor = cursor or {}
    for _ in range(1000):
        page = client.logs(JOB, json.loads(json.dumps(cursor)))
        cursor = page.cursor
        lines += page.lines
        if page.caught_up:
            return lines, cursor
    raise AssertionError("it never ends")


def by_rank(lines: Iterable[LogLine]) -> dict[int | None, list[str]]:
    found = defaultdict(list)
    for line in lines:
        found[line.rank].append(line.text)
    return dict(found)


def test_before_the_first_line_of_the_account(aws: Aws, client: Client) -> None:
    page = client.logs(JOB, {})
    assert page.lines == ()
    assert page.caught_up


def test_nodes_and_ranks(client: Client, log: Log) -> None:
    log.write("algo-1-1800000000", ["starting", "[0/-] 2 nodes", "[0/0] loss 1"])
    log.write("algo-2-1800000000", ["[1/2] loss 2", "[1/3] loss 3"])
    log.write("algo-10-1800000000", ["starting"])
    lines, _ = read(client)
    assert lines == [
        LogLine(0, None, "starting", T0 / 1000),
        LogLine(0, None, "2 nodes", (T0 + 1) / 1000),
        LogLine(0, 0, "loss 1", (T0 + 2) / 1000),
        LogLine(1, 2, "loss 2", (T0 + 3) / 1000),
        LogLine(1, 3, "loss 3", (T0 + 4) / 1000),
        LogLine(9, None, "starting", (T0 + 5) / 1000),
    ]


def test_jobs_whose_names_begin_so_are_others(client: Client, log: Log) -> None:
    log.write("algo-1-1800000000", ["mine"])
    log.write("algo-1-1800000000", ["not mine"], job=f"{JOB}0")
    assert [line.text for line in read(client)[0]] == ["mine"]


def test_every_line_once_as_they_come(client: Client, log: Log) -> None:
    cursor: Cursor = {}
    expected, found = [], []
    for part in range(5):
        new = [f"[0/0] {part}.{number}" for number in range(part * 3)]
        if new:
            log.write("algo-1-1800000000", new)
        expected += [line.removeprefix("[0/0] ") for line in new]
        lines, cursor = read(client, cursor)
        found += [line.text for line in lines]
    assert found == expected
    assert read(client, cursor)[0] == []


def test_streams_of_later_starts_follow_those_of_earlier_ones(client: Client, log: Log) -> None:
    """By their times as numbers: a stream of 999 comes before that of 1000, whatever their names say."""
    log.write("algo-1-999", ["[0/0] first"])
    _, cursor = read(client)
    log.write("algo-1-1000", ["[0/0] second"])
    log.write("algo-1-999", ["[0/0] late, of the first start"])
    log.write("algo-2-1000", ["[1/1] second"])
    later, _ = read(client, cursor)
    assert by_rank(later) == {0: ["late, of the first start", "second"], 1: ["second"]}
    assert by_rank(read(client)[0])[0] == ["first", "late, of the first start", "second"]


def test_more_streams_than_a_page_of_their_list_holds(client: Client, log: Log) -> None:
    for node in range(1, 52):
        log.write(f"algo-{node}-1800000000", [f"[{node - 1}/{node - 1}] here"])
    lines, _ = read(client)
    assert sorted(line.rank for line in lines if line.rank is not None) == list(range(51))


def test_events_that_are_none(aws: Aws, client: Client, log: Log) -> None:
    log.write("algo-1-1800000000", ["[0/0] here"])
    aws.odd = [None, {}, {"timestamp": "soon", "message": None}, {"timestamp": None, "message": ["x"]}]
    lines, _ = read(client)
    assert [line.text for line in lines if line.text] == ["here"]


def test_empty_pages_with_more_behind_them(aws: Aws, client: Client, log: Log) -> None:
    log.write("algo-1-1800000000", [f"[0/0] {number}" for number in range(20)])
    aws.empty_pages = 3
    lines, cursor = read(client)
    assert [line.text for line in lines] == [str(number) for number in range(20)]
    assert read(client, cursor)[0] == []


def test_a_token_that_is_too_old(aws: Aws, client: Client, log: Log) -> None:
    """Several lines of the same millisecond, some of them read before: none twice, none lost."""
    log.write("algo-1-1800000000", ["[0/0] 1", "[0/0] 2"])
    log._clock -= 1
    log.write("algo-1-1800000000", ["[0/0] 3"])
    _, cursor = read(client)
    log._clock -= 1
    log.write("algo-1-1800000000", ["[0/0] 4", "[0/0] 5"])
    aws.troubles = [Trouble("GetLogEvents", code="InvalidParameterException", message="The token is expired")]
    assert [line.text for line in read(client, cursor)[0]] == ["4", "5"]


def test_a_cut_answer_takes_nothing_with_it(aws: Aws, client: Client, log: Log) -> None:
    log.write("algo-1-1800000000", [f"[0/0] {number}" for number in range(20)])
    log.write("algo-2-1800000000", [f"[1/1] {number}" for number in range(20)])
    expected = {rank: [str(number) for number in range(20)] for rank in (0, 1)}
    for troubles in (
        [Trouble("GetLogEvents", done=True), Trouble("GetLogEvents", code="ServiceUnavailable", status=503)],
        [Trouble("GetLogEvents", 2, half=True), Trouble("DescribeLogStreams", half=True)],
    ):
        aws.troubles = troubles
        assert by_rank(read(client)[0]) == expected


def test_out_of_order_within_an_answer(aws: Aws, client: Client, log: Log) -> None:
    log.write("algo-1-1800000000", [f"[0/0] {number}" for number in range(50)])
    aws.shuffled = True
    assert [line.text for line in read(client)[0]] == [str(number) for number in range(50)]


def test_what_is_no_line_of_ours(client: Client, log: Log) -> None:
    log.write("algo-1-1800000000", ["two\nlines", "\x1b[31mred\x1b[0m", "[9/9 not", " "])
    log.write("something-else", ["of the platform"])
    assert [(line.node, line.rank, line.text) for line in read(client)[0]] == [
        (0, None, "two"),
        (0, None, "lines"),
        (0, None, "\x1b[31mred\x1b[0m"),
        (0, None, "[9/9 not"),
        (0, None, " "),
        (0, None, "of the platform"),
    ]


def test_eighty_thousand_lines(aws: Aws, client: Client, log: Log) -> None:
    """16 ranks of 5,000 lines on 4 nodes: none lost, none twice, and few calls."""
    expected = {rank: [f"step {number} loss 0.12345" for number in range(5000)] for rank in range(16)}
    for node in range(4):
        ranks = range(node * 4, node * 4 + 4)
        log.flood(
            f"algo-{node + 1}-1800000000",
            (f"[{node}/{rank}] {expected[rank][number]}" for number in range(5000) for rank in ranks),
        )
    aws.calls.clear()
    assert by_rank(read(client)[0]) == expected
    assert len(aws.operations("GetLogEvents")) <= 4 * 5
