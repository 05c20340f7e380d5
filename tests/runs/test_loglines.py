"""Lines of a cloud's log: the launcher's own sink writes them, the parser reads them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cloudtrain.providers.loglines import parse
from cloudtrain.providers.port import LogLine

ENTRYPOINTS = Path(__file__).parents[2] / "entrypoints"
TEXTS = ["loss 0.5", "", "  indented", "[7/8] printed by the user", "10%\r20%", "tab\there", "\x1b[31mred\x1b[0m", "ä"]


def test_what_the_launcher_writes_is_read_back() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ENTRYPOINTS)!r})\n"
        "from cloudtrain_launch.sink import TextSink\n"
        f"for text in {TEXTS!r}:\n    TextSink(3).line(12, text); TextSink(3).line(None, text)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    read = [parse(line, 99, 1.5) for line in done.stdout.decode().split("\n")[:-1]]
    assert read == [LogLine(3, rank, text, 1.5) for text in TEXTS for rank in (12, None)]


@pytest.mark.parametrize(
    "text",
    ["", "Traceback", "[1/2", "[1/2]x", "[a/2] x", "[1/] x", "[-1/2] x", "[1/-2] x", " [1/2] x", "[٣/2] x"],
)
def test_other_lines_are_of_the_node_whose_stream_they_are_in(text: str) -> None:
    assert parse(text, 4, None) == LogLine(4, None, text, None)


def test_an_empty_line_whose_blank_was_cut() -> None:
    assert parse("[0/1]", 9, None) == LogLine(0, 1, "", None)


def test_one_newline_is_no_part_of_the_line() -> None:
    assert parse("[0/1] a\n", 0, None).text == "a"
    assert parse("plain\n", 2, None) == LogLine(2, None, "plain", None)


def test_numbers_beyond_any_cluster_are_text() -> None:
    text = f"[{'9' * 5000}/0] x"
    assert parse(text, 1, None) == LogLine(1, None, text, None)
