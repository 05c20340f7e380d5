"""What ranks print: kept byte for byte in files, shown as `[node/rank] text`, whatever it is and however it ends."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudtrain_launch.output import MAX_SHOWN, Lines, Stream
from tests.local.project import Project, Result

# Each rank writes its list of pieces; each piece only once the one before has arrived in the rank's file.
IN_PIECES = """
import os, pathlib, time
rank = int(os.environ["RANK"])
log = pathlib.Path(os.environ["PROJECT"], ".cloudtrain/runs/latest/logs", f"rank-{rank}.log")
written = 0
for piece in PIECES[rank]:
    while log.stat().st_size < written:
        time.sleep(0.01)
    written += os.write(1, piece)
"""

PIECES: list[tuple[list[bytes], list[str]]] = [
    # multibyte characters cut in every way
    ([b"caf\xc3", b"\xa9 \xf0", b"\x9d\x84", b"\x9e\n"], ["café 𝄞"]),
    # no UTF-8: a wrong byte, a character cut by a newline, and one cut by the end
    (
        [b"bad \xff\xfe \xc3(\n", b"cut \xe2\x82\n", b"tail \xe2\x82"],
        ["bad \\xff\\xfe \\xc3(", "cut \\xe2\\x82", "tail \\xe2\\x82"],
    ),
    # what is no end of a line: NUL, form feed, vertical tab, NEL, LINE SEPARATOR; an empty line; CR LF
    (
        [b"nul \x00 ff \x0c vt \x0b nel \xc2\x85 ls \xe2\x80\xa8.\n\ncrlf\r\n"],
        ["nul \0 ff \x0c vt \x0b nel \x85 ls \u2028.", "", "crlf"],
    ),
    # progress bars that end their line, drawn with the carriage return first, last, or both
    (
        [b"\r  0%", b"\r 50%", b"\r100%", b"\nthen\n 1/2\r", b" 2/2\r", b"\n\r9\r", b"\r\nend\n"],
        ["100%", "then", " 2/2", "9", "end"],
    ),
    # bars that never end their line
    ([b"\r10%", b"\r20%\r30%", b"\r40%"], ["40%"]),
    ([b"10%\r", b"20%\r"], ["20%"]),
]


def _shown(result: Result, rank: int, processes: int = 2) -> list[str]:
    prefix = f"[{rank // processes}/{rank}] "
    return [line.removeprefix(prefix) for line in result.out.split("\n") if line.startswith(prefix)]


def test_bytes_of_every_kind(project: Project) -> None:
    project.job(f"PIECES = {[pieces for pieces, _ in PIECES]!r}\n{IN_PIECES}", nodes=2, processes=3)
    result = project.run("--isolation", "none")
    assert result.code == 0, result.err
    for rank, (pieces, shown) in enumerate(PIECES):
        assert result.log(rank) == b"".join(pieces)
        assert _shown(result, rank, processes=3) == shown


def test_all_ways_to_print_keep_their_order(project: Project) -> None:
    script = """
import logging, os, subprocess, sys
print("print")
os.write(1, b"fd 1\\n")
print("stderr", file=sys.stderr)
subprocess.run(["echo", "child"])
os.write(2, b"fd 2\\n")
sys.stdout.write("text")
sys.stdout.buffer.write(b" and bytes\\n")
subprocess.run([sys.executable, "-c", "import sys; print('grandchild', file=sys.stderr)"])
logging.warning("logged")
os.system("echo shell >&2")
print("lone surrogate \\udc80", file=sys.stderr)
print("raw byte \\udc80")
print("end", end="")
"""
    project.job(script)
    expected = (
        b"print\nfd 1\nstderr\nchild\nfd 2\ntext and bytes\ngrandchild\nWARNING:root:logged\nshell\n"
        b"lone surrogate \\udc80\nraw byte \x80\nend"
    )
    for engine in ("fork", "agents"):
        result = project.run("--isolation", "none", "--engine", engine)
        for rank in range(4):
            assert result.log(rank) == expected
            assert _shown(result, rank) == expected.decode("utf-8", "backslashreplace").split("\n")


@pytest.mark.parametrize(("end", "status"), [("os._exit(0)", 0), ("os.kill(os.getpid(), 9)", -9), ("os.abort()", -6)])
def test_what_was_printed_just_before_a_sudden_end(project: Project, end: str, status: int) -> None:
    script = (
        f"import os, sys\nprint('out', end='')\nprint(' err', end='', file=sys.stderr)\nprint(' last', end='')\n{end}\n"
    )
    project.job(script, nodes=1, processes=1)
    result = project.run("--isolation", "none")
    assert [rank["status"] for rank in result.report["ranks"]] == [status]
    assert result.log(0).startswith(b"out err last")
    assert _shown(result, 0)[0].startswith("out err last")


def test_very_long_lines(project: Project) -> None:
    """Several MiB without an end, by one write and by many."""
    script = """
import os
text = b"".join(b"%07d " % i for i in range(500_000))
if os.environ["RANK"] == "0":
    view = memoryview(text)
    while view:
        view = view[os.write(1, view):]
else:
    for start in range(0, len(text), 1000):
        os.write(1, text[start:start + 1000])
print()
print("short")
"""
    project.job(script, nodes=1)
    result = project.run("--isolation", "none")
    text = b"".join(b"%07d " % i for i in range(500_000))
    for rank in range(2):
        assert result.log(rank) == text + b"\nshort\n"
        *pieces, last = _shown(result, rank)
        assert last == "short"
        assert "".join(pieces) == text.decode()
        assert max(map(len, pieces)) <= 2 * MAX_SHOWN


def test_a_line_without_end_takes_no_more_memory_the_longer_it_is() -> None:
    shown = 0

    def show(text: str) -> None:
        nonlocal shown
        shown += len(text)

    lines = Lines(show)
    chunk = b"x" * 4096
    tracemalloc.start()
    try:
        for _ in range(8192):  # 32 MiB
            lines.feed(chunk)
        lines.feed(b"", final=True)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert shown == 32 << 20


def test_a_bar_without_end_takes_no_more_memory_the_longer_it_runs() -> None:
    shown: list[str] = []
    lines = Lines(shown.append)
    tracemalloc.start()
    try:
        for step in range(100_000):
            lines.feed(b"\r%d of 100000 steps" % step)
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
    finally:
        tracemalloc.stop()
    lines.feed(b"", final=True)
    assert shown == ["99999 of 100000 steps"]


def _expected(data: bytes) -> list[str]:
    """The rule for what is shown, applied to everything at once."""
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    if not lines[-1]:
        lines.pop()
    return [next((state for state in reversed(line.split("\r")) if state), "") for line in lines]


CUTS = [b"\n", b"\r", b"\r\n", b"\xe2\x82", b"\xac", b"\xf0\x9d\x84\x9e", b"\xed\xa0\x80", b"\x00"]
OUTPUT = st.lists(
    st.one_of(st.sampled_from(CUTS), st.text(max_size=4).map(str.encode), st.binary(max_size=8)), max_size=20
)


@given(pieces=OUTPUT)
def test_what_is_shown_does_not_depend_on_how_it_was_written(pieces: list[bytes]) -> None:
    shown: list[str] = []
    lines = Lines(shown.append)
    for piece in pieces:
        lines.feed(piece)
    lines.feed(b"", final=True)
    assert shown == _expected(b"".join(pieces))


def test_much_output_of_all_ranks(project: Project) -> None:
    script = "import os\nfor i in range(50_000):\n    print(os.environ['RANK'], i)\n"
    project.job(script)
    result = project.run("--isolation", "none")
    assert result.code == 0
    for rank in range(4):
        expected = [f"{rank} {i}" for i in range(50_000)]
        assert result.log(rank).decode().split("\n") == [*expected, ""]
        assert _shown(result, rank) == expected


def test_a_reader_that_leaves(project: Project) -> None:
    """`cloudtrain run job.yaml | head -1`: the training goes on to its end."""
    project.job("import os\nfor i in range(20_000):\n    print(os.environ['RANK'], i)\n")
    with project.start("--isolation", "none").process as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("[")
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 0, err
    assert "SUCCEEDED" in err and "Traceback" not in err and "BrokenPipe" not in err
    result = project.result(0, "", err)
    assert all(result.log(rank).count(b"\n") == 20_000 for rank in range(4))


def test_a_child_that_keeps_the_pipe_open(project: Project) -> None:
    """The script has ended, what it started holds its output: nobody waits for that, and nothing before is lost."""
    script = """
import subprocess, sys
subprocess.Popen(["sleep", "1000"])
subprocess.Popen(["sh", "-c", "trap '' TERM HUP; while :; do sleep 1; done"], start_new_session=True)
sys.stdout.write("x" * 300_000 + "\\nlast words")
"""
    project.job(script)
    result = project.run("--isolation", "none")
    assert result.code == 0
    assert all(result.log(rank) == b"x" * 300_000 + b"\nlast words" for rank in range(4))


@pytest.mark.parametrize(
    "locale",
    [{"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}],
)
@pytest.mark.parametrize("view", ["--plain", "--live"])
def test_a_terminal_that_knows_ascii_only(project: Project, locale: dict[str, str], view: str) -> None:
    project.job("print('é ☃ 𝄞')\n", nodes=1, processes=1)
    result = project.run("--isolation", "none", view, env=locale)
    assert result.code == 0, result.err
    assert _shown(result, 0) == ["\\xe9 \\u2603 \\U0001d11e"]
    assert result.log(0).decode() == "é ☃ 𝄞\n"


def test_a_file_that_cannot_be_written_is_said_and_all_is_shown(tmp_path: Path) -> None:
    shown: list[str] = []
    complaints: list[str] = []
    reading, writing = os.pipe()
    os.write(writing, b"hello")
    os.close(writing)
    Stream(reading, str(tmp_path / "no" / "log"), shown.append, complaints.append).finish()
    assert shown == ["hello"]
    assert len(complaints) == 1 and complaints[0].startswith("output is shown but not kept: ")
