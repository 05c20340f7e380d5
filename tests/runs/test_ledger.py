"""The ledger through its public door, from several processes, and where its file is not what it should be."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cloudtrain.errors import MissingError
from cloudtrain.providers.port import Description
from cloudtrain.record.state import State
from cloudtrain.runs.ledger import Entry, Ledger


def entry(number: int, **changes: object) -> Entry:
    given = {
        "run_id": f"digits-{number:010x}",
        "provider": "sagemaker",
        "name": "digits",
        "family": f"digits-{number:010x}",
        "project": "/home/me/digits",
        "attempt": 1,
        "native_name": f"digits-{number:010x}-a1",
        "native_id": "",
        "account": {"region": "eu-west-1"},
        "created": 1000.0 + number,
    }
    return Entry(**{**given, **changes})  # type: ignore[arg-type]


def seen(number: int, state: State, **changes: object) -> Description:
    name = f"digits-{number:010x}-a1"
    given = {"provider": "sagemaker", "native_id": name, "name": name, "state": state, "vendor_state": "InProgress"}
    return Description(**{**given, **changes})  # type: ignore[arg-type]


def test_what_is_begun_is_found_and_what_is_seen_is_kept(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "runs") as ledger:
        ledger.begin(entry(1), {"native": {"A": [1]}}, {"job": "name: digits\n"})
    with Ledger.open(tmp_path / "runs") as ledger:
        assert ledger.entry("digits-0000000001") == entry(1)
        assert ledger.plan("digits-0000000001") == {"job": "name: digits\n"}
        assert ledger.request("digits-0000000001", 1) == {"native": {"A": [1]}}
        ledger.record("digits-0000000001", seen(1, State.FAILED, reason="no", cause="quota", started=5.0, ended=9.0))
        found = ledger.entry("digits-0000000001")
        assert found
        assert (found.state, found.reason, found.cause, found.started, found.ended) == (
            State.FAILED, "no", "quota", 5.0, 9.0,
        )  # fmt: skip
        assert ledger.by_native("sagemaker", "digits-0000000001-a1") == found
        assert ledger.by_native("vertex", "digits-0000000001-a1") is None


def test_a_further_attempt_leaves_the_first_one_findable(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "runs") as ledger:
        ledger.begin(entry(1), {}, {"job": "name: digits\n"})
        ledger.record("digits-0000000001", seen(1, State.PREEMPTED))
        first = ledger.entry("digits-0000000001")
        second = entry(1, attempt=2, native_name="digits-0000000001-a2")
        ledger.begin(second, {"native": "second"})
        assert ledger.entry("digits-0000000001") == second
        ledger.record("digits-0000000001", seen(1, State.PREEMPTED))  # somebody looked at the first one late
        assert ledger.entry("digits-0000000001") == second
        assert ledger.by_native("sagemaker", "digits-0000000001-a1") == first
        assert ledger.by_native("sagemaker", "digits-0000000001-a2") == second
        assert ledger.newest_created("digits-0000000001") == first  # of the second one nothing has been heard
        assert ledger.request("digits-0000000001", 1) == {}
        assert ledger.request("digits-0000000001", 2) == {"native": "second"}
        assert ledger.plan("digits-0000000001") == {"job": "name: digits\n"}


def test_an_end_that_was_seen_stays(tmp_path: Path) -> None:
    """Two look at a run: the answer that was asked for first may be kept last."""
    with Ledger.open(tmp_path / "runs") as ledger:
        ledger.begin(entry(1), {})
        ledger.fail("digits-0000000001", 1, "no quota", "quota")
        for state, kept in ((State.RUNNING, "RUNNING"), (State.SUCCEEDED, "SUCCEEDED"), (State.RUNNING, "SUCCEEDED")):
            ledger.record("digits-0000000001", seen(1, state))  # what was refused, and was there all the same, goes on
            found = ledger.entry("digits-0000000001")
            assert found
            assert found.state.value == kept
            assert ledger.by_native("sagemaker", "digits-0000000001-a1") == found
        ledger.record("digits-0000000001", seen(1, State.SUCCEEDED, ended=9.0))
        found = ledger.entry("digits-0000000001")
        assert found
        assert found.ended == 9.0


def test_listing(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "runs") as ledger:
        for number in range(5):
            ledger.begin(entry(number, provider="vertex" if number == 2 else "sagemaker"), {})
        ledger.record("digits-0000000003", seen(3, State.RUNNING))
        assert [found.created for found in ledger.runs(3)] == [1004.0, 1003.0, 1002.0]
        assert [found.created for found in ledger.runs(provider="vertex")] == [1002.0]
        assert [found.created for found in ledger.runs(state=State.RUNNING)] == [1003.0]
        assert ledger.runs(name="mnist") == []
        assert len(ledger.beginning_with("digits-00")) == 5
        assert [found.run_id for found in ledger.beginning_with("digits-0000000004")] == ["digits-0000000004"]
        assert ledger.beginning_with("digits-0000000004x") == []


WRITES = """
import sys
from pathlib import Path
from cloudtrain.runs.ledger import Ledger
from cloudtrain.record.state import State
from tests.runs.test_ledger import entry, seen
first = int(sys.argv[2])
for number in range(first, first + 50):
    with Ledger.open(Path(sys.argv[1])) as ledger:
        ledger.begin(entry(number), {})
        ledger.record(f"digits-{number:010x}", seen(number, State.RUNNING))
"""


def test_many_writers_at_once(tmp_path: Path) -> None:
    """None of them has made the file before: they also race for that."""
    file = tmp_path / "runs"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITES, str(file), str(first)], cwd=Path(__file__).parents[2])
        for first in (0, 1000, 2000, 3000)
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    with Ledger.open(file) as ledger:
        assert len(ledger.runs(1000, state=State.RUNNING)) == 200


OPENS = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from cloudtrain.runs.ledger import Ledger

barrier = threading.Barrier(8)

def opened(file):
    barrier.wait()
    Ledger.open(Path(file)).close()

with ThreadPoolExecutor(8) as pool:
    for number in range(300):
        list(pool.map(opened, [f"{sys.argv[1]}/{number}"] * 8))
"""


def test_many_make_the_file_at_once(tmp_path: Path) -> None:
    """SQLite refuses all but one of them the write-ahead log, in about one of 30 rounds, and does not wait."""
    made = subprocess.run([sys.executable, "-c", OPENS, str(tmp_path)], cwd=Path(__file__).parents[2], check=False)
    assert made.returncode == 0
    # Of two that close a file at the same moment neither may remove its log; the next one does.
    assert len({path.name.partition("-")[0] for path in tmp_path.iterdir()}) == 300


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "runs").close()
    assert stat.S_IMODE((tmp_path / "runs").stat().st_mode) == 0o600


def test_what_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "runs").write_bytes(b"not a database" * 1000)
    with pytest.raises(MissingError, match="cannot be used"):
        Ledger.open(tmp_path / "runs")


def test_a_ledger_of_a_later_version(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "runs")
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(MissingError, match="newer cloudtrain"):
        Ledger.open(tmp_path / "runs")


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with pytest.raises(MissingError, match="cannot be used"):
        Ledger.open(tmp_path / "runs")


def test_a_state_of_a_later_version_is_unknown(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "runs") as ledger:
        ledger.begin(entry(1), {})
    db = sqlite3.connect(tmp_path / "runs")
    db.execute("UPDATE runs SET state='HIBERNATING'")
    db.commit()
    db.close()
    with Ledger.open(tmp_path / "runs") as ledger:
        assert ledger.runs()[0].state is State.UNKNOWN


def test_a_writer_that_is_killed_leaves_whole_entries(tmp_path: Path) -> None:
    script = WRITES.replace("range(first, first + 50)", "range(10**6)").replace(
        "ledger.begin", "print(number, flush=True); ledger.begin"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "runs"), "0"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        for _ in range(20):
            writer.stdout.readline()
        os.kill(writer.pid, 9)
    with Ledger.open(tmp_path / "runs") as ledger:
        assert len(ledger.runs(1000)) >= 19
        ledger.begin(entry(10**6), {})


@pytest.mark.parametrize(
    "damage",
    ["DROP TABLE plans", "DROP TABLE attempts", "UPDATE plans SET plan='{'", "UPDATE runs SET account='{'"],
)
def test_a_damaged_ledger_says_so(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "runs"
    with Ledger.open(file) as ledger:
        ledger.begin(entry(1), {}, {"job": {}})
    db = sqlite3.connect(file)
    db.execute(damage)
    db.commit()
    db.close()
    with Ledger.open(file) as ledger, pytest.raises(MissingError) as told:
        run_id = ledger.runs()[0].run_id
        ledger.request(run_id, 1)
        ledger.plan(run_id)
    assert "move it away" in (told.value.hint or "")


def test_a_ledger_that_another_process_holds(tmp_path: Path) -> None:
    file = tmp_path / "runs"
    Ledger.open(file).close()
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with Ledger.open(file, patience=0.05) as ledger, pytest.raises(MissingError) as told:
        ledger.begin(entry(1), {})
    holder.close()
    assert "another process" in (told.value.hint or "")


FULL = """
import resource, sys
from pathlib import Path
from cloudtrain.errors import MissingError
from cloudtrain.runs.ledger import Ledger
from tests.runs.test_ledger import entry

_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
with Ledger.open(Path(sys.argv[1])) as ledger:
    for number in range(3):
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, most))  # no file may get longer
        try:
            ledger.begin(entry(number), {}, {"job": "x" * (4 << 20)})
        except MissingError as error:
            print(error.message.rpartition(": ")[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    ledger.begin(entry(7), {})
    print([found.run_id for found in ledger.runs()])
"""


def test_what_cannot_be_written_leaves_a_ledger_that_can(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "runs")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "transaction" not in done.stdout  # the reason is the disk's, each time
    assert done.stdout.splitlines()[-1] == "['digits-0000000007']"
