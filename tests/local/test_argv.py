"""argv reaches the script byte for byte: through the job file, behind `--`, with both engines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cloudtrain import Job
from tests.local.project import CLOUDTRAIN, Project

WORDS = [
    "", " ", "  two  blanks  ", "\ttab", "'", '"', "\"'\"'", "it's", 'say "hi"', "$HOME", "${HOME}", "$(id)", "`id`",
    "*", "[a-z]?", "~", "a\nb", "\n", "a\r\nb", "\\", "\\n", "a\\", "--", "-", "---", "--x=1", "-0.1", "007", "1e10",
    "0x1F", "1_000", "+1", ".5", "yes", "no", "null", "true", "~x", "#x", "a #b", "a: b", "- a", "{a}", "[a]", "!x",
    "&x", "*x", "%x", "@x", "|", ">", "%s", "${{data.train}}", "$${x}", "${data", "<&;|>", "é", "e\u0301", "☃", "𝄞",
    "\U0001f469\u200d\U0001f467", "\u202eabc", "\u2028", "\x85", "\x1b[31m", "\x7f", "\ufeff", "\ufffd",
    "x" * 5000, "'" * 5000, "ü" * 5000,
]  # fmt: skip

SAVES = """
import os, pathlib, sys
words = b"\\0".join(os.fsencode(word) for word in sys.argv[1:])
pathlib.Path(os.environ["PROJECT"], f"argv-{os.environ['RANK']}").write_bytes(words)
"""


def _job(project: Project, args: object, dump: str | None = None) -> None:
    project.job(SAVES, nodes=1, processes=1)
    text = dump or yaml.safe_dump({"args": args}, sort_keys=False)
    with (project.folder / "job.yaml").open("a", encoding="utf-8") as file:
        file.write(text)


def _arrived(project: Project) -> list[bytes]:
    return (project.folder / "argv-0").read_bytes().split(b"\0")


def _bytes(words: list[str]) -> list[bytes]:
    return [word.encode() for word in words]


@pytest.mark.parametrize("engine", ["fork", "agents"])
def test_a_list_in_the_job_file_and_words_behind_the_dashes(project: Project, engine: str) -> None:
    _job(project, WORDS)
    result = project.run("--isolation", "none", "--engine", engine, "--", *reversed(WORDS))
    assert result.code == 0, result.err
    assert _arrived(project) == _bytes([*WORDS, *reversed(WORDS)])
    job = Job.load(project.folder / "job.yaml")
    assert job.argv == WORDS


def test_values_of_a_mapping(project: Project) -> None:
    named = {f"name-{index}": word for index, word in enumerate(WORDS)}
    _job(project, {**named, "list": WORDS})
    result = project.run("--isolation", "none")
    assert result.code == 0, result.err
    expected = [text for name, word in named.items() for text in (f"--{name}", word)]
    assert _arrived(project) == _bytes([*expected, "--list", *WORDS])


def test_quoting_by_hand(project: Project) -> None:
    """The text as written where nothing is quoted, YAML's rules where it is."""
    text = r"""
args:
  a: 007
  b: 1e10
  c: -0.1
  d: 1_000
  e: 0x1F
  f: 2024-01-02
  g: "a\nb\u00e9\U0001D11E\x41"
  h: 'it''s'
  i: |
    two
    lines
  j: >-
    folded
    text
  k: $HOME `id` *.py
  l: ''
  m: true
  n: "true"
  o: false
  p: [1.10, "", '--', 1.]
  q: 1:30
  r: 0o17
  s: .inf
  t: é☃𝄞
  u: 'it is "é"'
"""
    _job(project, None, dump=text)
    assert project.run("--isolation", "none").code == 0
    expected = [
        "--a", "007", "--b", "1e10", "--c", "-0.1", "--d", "1_000", "--e", "0x1F", "--f", "2024-01-02",
        "--g", "a\nbé𝄞A", "--h", "it's", "--i", "two\nlines\n", "--j", "folded text", "--k", "$HOME `id` *.py",
        "--l", "", "--m", "--n", "true", "--p", "1.10", "", "--", "1.", "--q", "1:30", "--r", "0o17", "--s", ".inf",
        "--t", "é☃𝄞", "--u", 'it is "é"',
    ]  # fmt: skip
    assert _arrived(project) == _bytes(expected)


@pytest.mark.parametrize("engine", ["fork", "agents"])
def test_bytes_that_are_no_utf_8(project: Project, engine: str) -> None:
    _job(project, ["x"])
    words = [b"a\xff\xfeb", b"\x80", b"\xed\xa0\x80", b"\xf0\x9f", "é".encode()]
    ended = subprocess.run(
        [CLOUDTRAIN, "run", "job.yaml", "--plain", "--isolation", "none", "--engine", engine, "--", *words],
        cwd=project.folder, env={**os.environ, "CT_TEST_MARK": project.mark, "PROJECT": str(project.folder)},
        capture_output=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert _arrived(project) == [b"x", *words]


def test_a_module_gets_them_as_well(project: Project) -> None:
    project.write("pkg/__init__.py", "")
    project.write("pkg/train.py", SAVES)
    project.write("job.yaml", yaml.safe_dump({"name": "m", "module": "pkg.train", "args": WORDS}))
    assert project.run("--isolation", "none").code == 0
    assert _arrived(project) == _bytes(WORDS)


# Whatever an argument can be: any text but NUL, which no argument of a process can hold, and lone surrogates, which
# neither UTF-8 nor a YAML file can.
WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=3, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(words=st.lists(WORD, min_size=200, max_size=200))
def test_two_hundred_generated_words_a_run(project: Project, words: list[str]) -> None:
    _job(project, words[:100])
    result = project.run("--isolation", "none", "--", *words[100:])
    assert result.code == 0, result.err
    assert _arrived(project) == _bytes(words)


@given(words=st.lists(WORD, max_size=8))
def test_generated_lists_keep_their_text(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert _loaded(tmp_path_factory, {"args": words}).argv == words


@given(words=st.dictionaries(st.from_regex(r"[a-z][a-z0-9_-]{0,5}", fullmatch=True), WORD, max_size=8))
def test_generated_mappings_keep_their_text(words: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    expected = [text for name, word in words.items() for text in (f"--{name}", word)]
    assert _loaded(tmp_path_factory, {"args": words}).argv == expected


def _loaded(factory: pytest.TempPathFactory, args: dict[str, object]) -> Job:
    path: Path = factory.mktemp("job") / "job.yaml"
    path.write_bytes(yaml.safe_dump({"name": "a", "entry": "a.py", **args}, sort_keys=False, encoding="utf-8"))
    job = Job.load(path)
    path.write_text(job.dump(), encoding="utf-8")
    assert Job.load(path).argv == job.argv
    return job
