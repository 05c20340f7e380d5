"""Log lines of all nodes: each once, in order, whatever happens to the files. They lie in Azurite, as append blobs."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from cloudtrain.providers import registry
from cloudtrain.providers.port import LogLine
from tests.clients.azureml.answers import fault
from tests.clients.azureml.service import Service
from tests.clients.azureml.storage import Storage

STD = "user_logs/std_log"


class Job:
    """A job whose log files are written by the test, and a reader that keeps nothing but its cursor."""

    def __init__(self, service: Service, client: Any, blobs: Storage) -> None:
        self._service, self._client, self._blobs = service, client, blobs
        self._container = blobs.container()
        self._files: dict[str, str] = {}
        self.cursor: Mapping[str, Any] = {}
        service.has_job("job", "Running")
        self.state("Running")

    def state(self, word: str) -> None:
        self._service.set("job", word, logFiles=dict(self._files))

    def write(self, file: str, text: str | bytes) -> None:
        content = text.encode() if isinstance(text, str) else text
        self._blobs.append(self._container, file, content)
        self.listed(file)

    def listed(self, file: str) -> None:
        self._files[file] = self._blobs.signed(self._container, file)
        self._service.details["job"]["logFiles"] = dict(self._files)

    def remove(self, file: str) -> None:
        self._blobs.remove(self._container, file)

    def page(self) -> list[LogLine]:
        """All there is now."""
        found: list[LogLine] = []
        for _ in range(100):
            page = self._client.logs("job", self.cursor)
            self.cursor = json.loads(json.dumps(page.cursor))
            found += page.lines
            if page.caught_up:
                return found
        raise AssertionError("never caught up")

    def texts(self) -> list[str]:
        return [line.text for line in self.page()]


@pytest.fixture
def job(workspace: Service, client: Any, blobs: Storage) -> Job:
    return Job(workspace, client, blobs)


def test_before_there_are_files(job: Job, workspace: Service) -> None:
    assert job.page() == []
    workspace.details.clear()
    assert job.page() == []


def test_all_nodes_and_ranks(job: Job) -> None:
    job.write(f"{STD}_process_0.txt", "Pulling the image\n[0/-] starting\n[0/0] one\n[0/1] two\n[0/0]\n")
    job.write(f"{STD}_process_1.txt", "[1/2] three\n")
    job.write("system_logs/lifecycler/lifecycler.log", "noise\n")
    job.write("user_logs/mpi_log.txt", "noise\n")
    assert job.page() == [
        LogLine(0, None, "Pulling the image"),
        LogLine(0, None, "starting"),
        LogLine(0, 0, "one"),
        LogLine(0, 1, "two"),
        LogLine(0, 0, ""),
        LogLine(1, 2, "three"),
    ]
    assert job.page() == []


@pytest.mark.parametrize(
    "file, node", [(f"{STD}.txt", 0), (f"{STD}_process_3.txt", 3), (f"{STD}_process_03.txt", 3), (f"{STD}_12.txt", 12)]
)
def test_the_node_is_in_the_files_name(job: Job, file: str, node: int) -> None:
    job.write(file, "text without a prefix\n")
    assert job.page() == [LogLine(node, None, "text without a prefix")]


def test_files_that_grow_and_come_late(job: Job) -> None:
    job.write(f"{STD}_process_1.txt", "[1/1] a\n")
    assert job.texts() == ["a"]
    job.write(f"{STD}_process_0.txt", "[0/0] late 1\n[0/0] late 2\n")
    job.write(f"{STD}_process_1.txt", "[1/1] b\n")
    assert job.texts() == ["late 1", "late 2", "b"]


def test_a_file_that_is_listed_before_it_is_there(job: Job) -> None:
    job.listed(f"{STD}_process_0.txt")
    assert job.page() == []
    job.write(f"{STD}_process_0.txt", "")
    assert job.page() == []
    job.write(f"{STD}_process_0.txt", "[0/0] a\n")
    assert job.texts() == ["a"]


def test_lines_are_given_whole(job: Job) -> None:
    job.write(f"{STD}.txt", "[0/0] fir")
    assert job.page() == []
    job.write(f"{STD}.txt", "st\n[0/0] sec\xfcnd".encode("latin-1"))
    assert job.texts() == ["first"]
    job.write(f"{STD}.txt", "\r 50%\r100%\n")
    assert job.texts() == ["sec\\xfcnd\r 50%\r100%"]


def test_the_last_line_may_lack_its_end(job: Job) -> None:
    job.write(f"{STD}.txt", "[0/0] first\n[0/0] Killed")
    assert job.texts() == ["first"]
    job.state("Failed")
    assert job.texts() == ["Killed"]
    assert job.page() == []


def test_what_comes_after_the_end(job: Job) -> None:
    job.write(f"{STD}.txt", "[0/0] first\n")
    job.state("Completed")
    assert job.texts() == ["first"]
    job.write(f"{STD}.txt", "[0/0] late\n")
    job.write(f"{STD}_process_1.txt", "[1/1] later\n")
    assert job.texts() == ["late", "later"]


def test_whatever_bytes_a_program_prints(job: Job) -> None:
    job.write(f"{STD}.txt", b"[0/0] \x00\x1b[31m\xff\xfe\xe2\x82\n[0/0] \xe2\x82\xac\n")
    assert job.texts() == ["\x00\x1b[31m\\xff\\xfe\\xe2\\x82", "€"]


@pytest.mark.parametrize("again", ["[0/0] new 1\n", "[0/0] new 1\n" * 40], ids=["shorter", "longer"])
def test_a_file_that_was_begun_anew_is_read_from_its_beginning(job: Job, again: str) -> None:
    job.write(f"{STD}.txt", "".join(f"[0/0] old {number}\n" for number in range(20)))
    assert len(job.page()) == 20
    job.remove(f"{STD}.txt")
    assert job.page() == []
    job.write(f"{STD}.txt", again)
    assert job.texts() == ["new 1"] * again.count("\n")
    assert job.page() == []


def test_a_later_start_has_files_of_its_own(job: Job) -> None:
    job.write(f"{STD}_process_0.txt", "[0/0] first start\n")
    assert job.texts() == ["first start"]
    job.write("user_logs/retry_001/std_log_process_0.txt", "[0/0] second start\n")
    job.write(f"{STD}_process_0.txt", "[0/0] killed\n")
    assert job.texts() == ["killed", "second start"]


def test_long_files_come_in_pages(job: Job, client: Any) -> None:
    lines = [f"line {number} " + "x" * 90 for number in range(25_000)]
    for start in range(0, 25_000, 5_000):
        job.write(f"{STD}.txt", "".join(f"[0/0] {line}\n" for line in lines[start : start + 5_000]))
    first = client.logs("job", {})
    assert 0 < len(first.lines) < 25_000
    assert not first.caught_up
    assert job.texts() == lines


def test_a_line_without_an_end_does_not_stop_the_reader(job: Job) -> None:
    for _ in range(3):
        job.write(f"{STD}.txt", b"x" * (1 << 20))
    job.write(f"{STD}.txt", b"\n[0/0] next\n")
    assert "".join(texts := job.texts()) == "x" * (3 << 20) + "next"
    assert texts[-1] == "next"


def test_any_other_reader_goes_on_from_a_cursor(job: Job, account: dict[str, str]) -> None:
    job.write(f"{STD}.txt", "[0/0] a\n")
    job.page()
    job.write(f"{STD}.txt", "[0/0] b\n")
    other: Any = registry.connect("azureml", account)
    assert [line.text for line in other.logs("job", job.cursor).lines] == ["b"]
    other.close()


def test_an_address_that_is_refused(job: Job, workspace: Service) -> None:
    from cloudtrain.errors import RefusedError

    job.write(f"{STD}.txt", "[0/0] a\n")
    workspace.details["job"]["logFiles"] = {f"{STD}.txt": workspace.details["job"]["logFiles"][f"{STD}.txt"] + "x"}
    with pytest.raises(RefusedError, match="read user_logs/std_log") as raised:
        job.page()
    assert "sig=" not in str(raised.value)


def test_nothing_is_lost_over_faults(job: Job, workspace: Service) -> None:
    job.write(f"{STD}.txt", "[0/0] a\n")
    workspace.will("GetDetails", fault(503))
    assert job.texts() == ["a"]


@pytest.mark.parametrize("seed", range(2))
def test_any_mixture_of_writes_and_reads(job: Job, seed: int) -> None:
    chance = random.Random(seed)
    wanted: dict[int, list[str]] = {node: [] for node in range(3)}
    found: dict[int, list[str]] = {node: [] for node in range(3)}
    for step in range(16):
        node = chance.randrange(3)
        texts = [f"{step}.{number} " + "é" * chance.randrange(40) for number in range(chance.randrange(5))]
        wanted[node] += texts
        content = "".join(f"[{node}/{node}] {text}\n" for text in texts).encode()
        cut = chance.randrange(len(content) + 1)
        for part in (content[:cut], content[cut:]):
            if part:
                job.write(f"{STD}_process_{node}.txt", part)
            if chance.random() < 0.3:
                for line in job.page():
                    found[line.node].append(line.text)
    for line in job.page():
        found[line.node].append(line.text)
    assert found == wanted
