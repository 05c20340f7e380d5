"""The port to local runs, over folders as runs leave them: pages of lines, descriptions, files. No process is started;
tests/local/test_background.py does that."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.errors import RefusedError, SpecError
from cloudtrain.providers import registry
from cloudtrain.providers.port import Artefact, Client, LogLine
from cloudtrain.record.folder import RunFolder
from cloudtrain.record.state import State


def a_run(project: Path, folder_name: str = "digits-20261130-201500-k3f9", **state: Any) -> RunFolder:
    folder = RunFolder.create(project, folder_name)
    folder.write_state(
        {"run_id": folder_name, "name": "digits", "state": "RUNNING", "nodes": 2, "processes": 2, **state}
    )
    return folder


@contextmanager
def going_on(folder: RunFolder) -> Iterator[None]:
    """As its process has it."""
    with folder.followed():
        yield


def port(project: Path) -> Client:
    return registry.connect("local", {"project": str(project)})


def read_all(client: Client, run: RunFolder, cursor: Any = None) -> tuple[list[LogLine], Any]:
    lines: list[LogLine] = []
    while True:
        page = client.logs(str(run.path), cursor or {})
        lines += page.lines
        cursor = json.loads(json.dumps(page.cursor))  # of another process, maybe
        if page.caught_up:
            return lines, cursor


def test_lines_have_their_node_and_come_once(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    client = port(tmp_path)
    with going_on(run):
        (run.logs / "rank-3.log").write_bytes(b"one\ntwo\nthr")
        (run.logs / "node-1.log").write_bytes(b"of the launcher\n")
        first, cursor = read_all(client, run)
        assert first == [LogLine(1, 3, "one"), LogLine(1, 3, "two"), LogLine(1, None, "of the launcher")]
        with (run.logs / "rank-3.log").open("ab") as log:
            log.write(b"ee\n\nlast")
        second, cursor = read_all(port(tmp_path), run, cursor)
        assert second == [LogLine(1, 3, "three"), LogLine(1, 3, "")]
    run.update_state(state="SUCCEEDED")
    assert read_all(client, run, cursor)[0] == [LogLine(1, 3, "last")]


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("träning 训练 🚀\n".encode(), ["träning 训练 🚀"]),
        (b"bad \xff byte\n", ["bad \\xff byte"]),
        (b"10 %\r50 %\r100 %\ndone\r\n", ["100 %", "done"]),
        (b"\n\n", ["", ""]),
        (b"", []),
    ],
)
def test_bytes_are_shown_as_while_the_run_went_on(tmp_path: Path, printed: bytes, shown: list[str]) -> None:
    run = a_run(tmp_path, state="SUCCEEDED")
    (run.logs / "rank-0.log").write_bytes(printed)
    assert [line.text for line in read_all(port(tmp_path), run)[0]] == shown


def test_a_line_without_end_comes_in_pieces_that_cut_no_letter(tmp_path: Path) -> None:
    run = a_run(tmp_path, state="SUCCEEDED")
    text = "ab" + "训练" * 200_000
    (run.logs / "rank-0.log").write_text(text, encoding="utf-8")
    lines = read_all(port(tmp_path), run)[0]
    assert len(lines) > 1
    assert "".join(line.text for line in lines) == text


def test_sixteen_ranks_that_print_while_they_are_read(tmp_path: Path) -> None:
    run = a_run(tmp_path, processes=8)
    client = port(tmp_path)
    source = random.Random(7)
    printed = {rank: [f"rank {rank} line {n} {'x' * source.randrange(200)}" for n in range(5000)] for rank in range(16)}
    left = {rank: "\n".join(lines).encode() + b"\n" for rank, lines in printed.items()}
    read: list[LogLine] = []
    cursor: Any = {}
    with going_on(run):
        while any(left.values()):
            rank = source.choice([rank for rank, data in left.items() if data])
            size = source.randrange(1, 200_000)
            with (run.logs / f"rank-{rank}.log").open("ab") as log:
                log.write(left[rank][:size])
            left[rank] = left[rank][size:]
            page = client.logs(str(run.path), cursor)
            read += page.lines
            cursor = page.cursor
    run.update_state(state="SUCCEEDED")
    read += read_all(client, run, cursor)[0]
    assert len(read) == 80_000
    assert {rank: [line.text for line in read if line.rank == rank] for rank in range(16)} == printed
    assert all(line.node == line.rank // 8 for line in read if line.rank is not None)


@pytest.mark.parametrize(
    ("state", "report", "expected", "cause", "code"),
    [
        ({"state": "SUCCEEDED", "exit_code": 0}, {"root": None}, State.SUCCEEDED, "", 0),
        ({"state": "FAILED"}, {"root": {"kind": "exception"}}, State.FAILED, "user-code", None),
        ({"state": "FAILED"}, {"root": {"kind": "node-lost"}}, State.FAILED, "node-lost", None),
        ({"state": "FAILED", "exit_code": 5}, {"root": {"kind": "fault"}}, State.FAILED, "infrastructure", 5),
        ({"state": "FAILED", "exit_code": 2}, None, State.FAILED, "invalid", 2),
        ({"state": "TIMED_OUT"}, {"root": None}, State.TIMED_OUT, "timeout", None),
        ({"state": "PREEMPTED"}, {"root": None}, State.PREEMPTED, "preempted", None),
        ({"state": "STOPPED"}, {"root": None}, State.STOPPED, "", None),
        ({"state": "Hibernating"}, None, State.UNKNOWN, "", None),
        ({"state": "RUNNING"}, None, State.FAILED, "infrastructure", None),  # nobody has its lock
    ],
)
def test_states_and_causes(
    tmp_path: Path, state: dict[str, Any], report: Any, expected: State, cause: str, code: int | None
) -> None:
    run = a_run(tmp_path, **state)
    if report:
        run.report.write_text(json.dumps(report))
    seen = port(tmp_path).describe(str(run.path))
    assert (seen.state, seen.vendor_state, seen.cause, seen.exit_code) == (expected, state["state"], cause, code)


def test_a_reason_that_a_terminal_would_obey(tmp_path: Path) -> None:
    run = a_run(tmp_path, state="FAILED", reason="boom\n\x1b[2J\x07 end")
    assert port(tmp_path).describe(str(run.path)).reason == "boom \\x1b[2J\\x07 end"


def test_runs_are_listed_the_newest_first(tmp_path: Path) -> None:
    a_run(tmp_path, "b", started=200.0, state="FAILED")
    a_run(tmp_path, "a", started=100.0, state="FAILED")
    a_run(tmp_path, "a-a2", run_id="a", attempt=2, started=300.0, state="FAILED").make_latest()
    RunFolder.create(tmp_path, ".c.123")  # a submit that died
    RunFolder.create(tmp_path, "not-begun")
    client = port(tmp_path)
    assert [(seen.run_id, seen.attempt) for seen in client.list()] == [("a", 2), ("b", 1), ("a", 1)]
    assert [seen.attempt for seen in client.list("a")] == [2, 1]
    assert RunFolder.find(tmp_path, "a").path.name == "a"


def test_run_goes_on_with_the_newest_attempt_of_the_job_however_it_was_made(tmp_path: Path) -> None:
    a_run(tmp_path, "digits-20261130-201500-k3f9", started=300.0)
    a_run(tmp_path, "digits-3f9c2b71aa-a1", run_id="digits-3f9c2b71aa", submitted=100.0)
    a_run(tmp_path, "digits-3f9c2b71aa-a10", run_id="digits-3f9c2b71aa", attempt=10, submitted=400.0)
    a_run(tmp_path, "digits-3f9c2b71aa-a9", run_id="digits-3f9c2b71aa", attempt=9, submitted=390.0)
    a_run(tmp_path, "digits-two-20261130-201500-k3f9", name="digits-two", started=500.0)
    assert RunFolder.find(tmp_path, "latest", "digits").path.name == "digits-3f9c2b71aa-a10"
    assert RunFolder.find(tmp_path, "digits-3f9c2b71aa").path.name == "digits-3f9c2b71aa-a10"
    with pytest.raises(SpecError):
        RunFolder.find(tmp_path, "digits-3f9c")


def test_what_a_run_has_left_is_copied(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run = a_run(tmp_path, state="SUCCEEDED", checkpoints=str(elsewhere), outputs={"extra": str(tmp_path / "extra")})
    for path, text in {"model/a/b.pt": "weights", "metrics/rank-0.jsonl": "{}", "code/train.py": "no result"}.items():
        (run.path / path).parent.mkdir(parents=True, exist_ok=True)
        (run.path / path).write_text(text)
    (elsewhere / "step-1").write_text("kept")
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "big").write_bytes(b"x" * 3_000_000)
    (run.path / "model" / "newest.pt").symlink_to("a/b.pt")
    (run.path / "model" / "host").symlink_to("/etc")
    client = port(tmp_path)
    found = {f"{one.kind}/{one.path}": one for one in client.artefacts(str(run.path))}
    assert {name: one.size for name, one in found.items()} == {
        "model/a/b.pt": 7, "model/newest.pt": 7, "metrics/rank-0.jsonl": 2, "checkpoints/step-1": 4,
        "outputs/extra/big": 3_000_000,
    }  # fmt: skip
    told: list[tuple[int, int]] = []
    client.fetch(found["outputs/extra/big"], tmp_path / "to", lambda done, total: told.append((done, total)))
    assert (tmp_path / "to" / "big").read_bytes() == b"x" * 3_000_000
    assert told[-1] == (3_000_000, 3_000_000) and told == sorted(told)
    client.fetch(found["model/newest.pt"], tmp_path / "to")
    assert not (tmp_path / "to" / "newest.pt").is_symlink()


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../out", ""])
def test_nothing_is_written_outside_the_folder(tmp_path: Path, path: str) -> None:
    (tmp_path / "source").write_text("x")
    with pytest.raises(SpecError):
        port(tmp_path).fetch(Artefact("model", path, 1, str(tmp_path / "source")), tmp_path / "to" / "deep")
    assert [path.name for path in tmp_path.iterdir() if path.name != "to"] == ["source"]


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    client = port(tmp_path)
    for ask in (client.describe, client.stop, lambda native_id: client.logs(native_id, {})):
        with pytest.raises(RefusedError):
            ask(str(tmp_path))
    with pytest.raises(SpecError):
        client.native_id("digits")
    run = a_run(tmp_path, state="FAILED")
    assert client.native_id(run.run_id) == client.native_id(str(run.path)) == str(run.path)
