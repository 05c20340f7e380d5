"""Ten thousand generated job files, valid and broken: never anything but a Job or problems that name a line.

The examples are the same on every run (derandomized), so that a failure here is a change in the code.
"""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloudtrain.job import Job
from cloudtrain.jobfile import JobFileError
from cloudtrain.spec.fields import CLOUDS, PROVIDERS

PROBLEM = re.compile(r"job\.yaml:(\d+):(\d+): \S")


def steady(examples: int) -> settings:
    return settings(
        max_examples=examples, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )


def read(text: str | bytes) -> Job | None:
    """The job, or None after checking that every problem is one line that names a line of the file and a column."""
    try:
        return Job.parse(text, "job.yaml")
    except JobFileError as error:
        lines = str(error).splitlines()
        assert len(lines) == len(error.problems) > 0
        last = (text if isinstance(text, str) else text.decode("utf-8", "replace")).count("\n") + 1
        last += text.count("\r") if isinstance(text, str) else text.count(b"\r")
        for line in lines:
            place = PROBLEM.match(line)
            assert place is not None, line
            assert 1 <= int(place[1]) <= last + 1, line
            assert int(place[2]) >= 1, line
            assert "Input should" not in line, line
        return None


# Valid jobs -----------------------------------------------------------------------------------------------------------

text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12) | st.sampled_from(
    ["", "007", "1e10", "-0.1", "yes", "true", "null", "~", "<<", "a: b", "# x", "- x", "'", '"', "%", "@", "`x`",
     "$HOME", "${{x}}", "two\nlines", " lead", "trail ", "\t", "=", "2026-11-30", "1:30", "0x1F", ".inf", "&a", "*a",
     "!x", "|", ">", "\x85", "\u2028", "\ufeff", "\x7f", "[", "{", "}", ",", "?", ":", "---", "..."]
)  # fmt: skip
given_text = text.filter(bool)
identifier = st.from_regex(r"\A[a-z_][a-z0-9_]{0,8}\Z")
variable = st.from_regex(r"\AMY_[A-Z0-9_]{0,8}\Z")
duration = st.from_regex(r"\A[1-9][0-9]{0,3}[smhd]\Z")
count = st.integers(1, 1000)


def names(keys: st.SearchStrategy[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(keys, values, max_size=3)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


place = given_text | st.dictionaries(st.sampled_from(PROVIDERS), given_text, min_size=1)
word = text | st.integers() | st.floats(allow_nan=False)
option = text.filter(lambda key: bool(key) and not key.startswith("-"))
arguments = names(option, word | st.booleans() | st.none() | st.lists(word, min_size=1, max_size=3)) | st.lists(word)
native = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(text, below, max_size=3),
    max_leaves=6,
)
start = st.sampled_from([{"entry": "src/train.py"}, {"module": "pkg.train"}, {"task": "t.py:T"}, {"entry": "ü x.py"}])
sections = some(
    args=arguments,
    code=st.sampled_from([".", "src", "/a b/ü"]),
    framework=st.sampled_from(["pytorch", "accelerate", "lightning", "deepspeed"]),
    resources=some(nodes=count, processes_per_node=count, instance=place, disk_gib=count, shm_gib=count,
                   accelerator=st.sampled_from(["T4", "A100-80GB", "NVIDIA_L4"])),
    environment=some(image=place, torch=st.sampled_from(["2.8", "2.10", "2.1.0rc1", "2.13.0+cpu"]),
                     requirements=st.just("req.txt"), env=names(variable, text),
                     secrets=names(st.just("SECRET"), st.just({"local": "env:X"}) | given_text)),
    data=names(identifier, st.fixed_dictionaries({"uri": place}, optional={
        "mode": st.sampled_from(["mount", "download", "stream"]), "shard": st.just("by-object")})),
    outputs=names(identifier, place),
    checkpoint=some(uri=place, keep=count, every=duration),
    spot=some(enabled=st.booleans(), max_wait=duration),
    retries=some(preemption=count, capacity=count, failure=st.just(0)),
    limits=some(runtime=duration, pending=duration, cost_usd=st.floats(0.01, 1e6)),
    tags=names(given_text.filter(lambda key: key.isprintable()), text),
    overrides=names(st.sampled_from(CLOUDS), st.dictionaries(text, native, max_size=3)),
)  # fmt: skip
name = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?\Z")
fields = st.tuples(name, start, sections).map(lambda parts: {"name": parts[0], **parts[1], **parts[2]})


@steady(1500)
@given(fields)
def test_a_valid_job_round_trips_through_its_dump(values: dict[str, Any]) -> None:
    job = Job(**values)
    assert read(job.dump()) == job
    assert Job(**job.given()) == job
    assert job.with_() == job


@steady(200)
@given(fields)
def test_a_dump_means_the_same_to_another_yaml_reader(values: dict[str, Any]) -> None:
    plain = yaml.safe_load(Job(**values).dump())
    assert plain["name"] == values["name"]
    args = plain.get("args", {})
    for item in args.values() if isinstance(args, dict) else args:
        assert item is None or isinstance(item, (str, bool, list)), item


# Broken files ---------------------------------------------------------------------------------------------------------

FULL = (Path(__file__).parent / "jobfiles" / "full.yaml").read_text(encoding="utf-8")
written = st.sampled_from(
    [
        FULL,
        *FULL.partition("environment:")[::2],
        "name: a\nentry: t.py\nargs: [--x, 007, '${data.train}']\ndata:\n  train: &t {uri: a}\n  test: *t\n",
        "name: a\nmodule: a.b\nresources:\n  nodes: 2\n  processes_per_node: 2\nargs:\n  a: |\n    two\n    lines\n",
        "name: a\ntask: t.py:T\nenvironment:\n  env:\n    A: 'x'\n    B: ${outputs.m}\noutputs: {m: {local: m}}\n",
    ]
)
fragments = st.sampled_from(
    ["nodes: two", "name: [", "- x", "? {a: 1}", "<<: *a", "&a", "*a", "a: &a {<<: *a}", "!!python/object:os.x {}",
     "\t", "---", "...", "%YAML 1.2", "%TAG ! x", '"\\U00110000"', '"\\ud800"', '"\\0"', "resources:", "data: {}",
     "args: ", "x: y: z", "true: 1", "1: 1", "~: ~", "'", '"', "[[[[", "{{{{", "| ", "key: |2\n a", "\x85", "\u2028",
     "\ufeff", "\r", "\r\n", "env: {RANK: 1}", "spot: 5", "args: ['${data.x}', '${outputs}']",
     "overrides: {vertex: {a: .nan, b: 1e999}}"]
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A job file after up to four mutations of its text."""
    lines = draw(written).split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        lines = _mutate(draw, lines, at)
    return "\n".join(lines)


def _mutate(draw: st.DrawFn, lines: list[str], at: int) -> list[str]:
    kind = draw(
        st.sampled_from(["delete", "double", "indent", "dedent", "insert", "value", "key", "cut", "noise", "swap"])
    )
    line, before, after = lines[at], lines[:at], lines[at + 1 :]
    key, colon, value = line.partition(":")
    column = draw(st.integers(0, len(line)))
    changed: list[str] = {
        "delete": [],
        "double": [line, line],
        "indent": [f"{' ' * draw(st.integers(1, 3))}{line}"],
        "dedent": [line.lstrip()],
        "insert": [line, draw(fragments)],
        "value": [f"{key}: {draw(fragments | text | st.sampled_from(['[1]', '{a: 1}', '5', 'true', '']))}"],
        "key": [f"{draw(text | st.sampled_from(['node', 'nmae', 'args', 'Data']))}{colon}{value}"],
        "noise": [line[:column] + draw(st.text(max_size=3)) + line[column:]],
        "swap": [*lines[at + 1 : at + 2], line],
        "cut": [line[:column]],
    }[kind]
    if kind == "cut":
        return [*before, *changed]
    return [*before, *changed, *(after[1:] if kind == "swap" else after)] or [""]


@steady(4800)
@given(mutated())
def test_broken_files_give_problems_with_places(broken: str) -> None:
    job = read(broken)
    if job is not None:
        assert Job.parse(job.dump()) == job


@steady(1000)
@given(st.lists(fragments | text, max_size=6).map("\n".join))
def test_scraps_give_problems_with_places(broken: str) -> None:
    read(broken)


@steady(1000)
@given(written, st.binary(max_size=6), st.integers(0, 200))
def test_bytes_give_problems_with_places(good: str, noise: bytes, at: int) -> None:
    content = good.encode()
    read(content[:at] + noise + content[at:])


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=5,
)


@steady(1500)
@given(fields, st.lists(st.tuples(st.integers(0, 99), anything), min_size=1, max_size=3))
def test_wrong_shapes_give_problems_with_places(values: dict[str, Any], swaps: list[tuple[int, Any]]) -> None:
    for at, wrong in swaps:
        _swap(values, at, wrong)
    read(yaml.safe_dump(values, allow_unicode=True, default_flow_style=None))
    try:
        Job(**values)
    except JobFileError as error:
        assert "Input should" not in str(error)


def _swap(values: dict[str, Any], at: int, wrong: Any) -> None:
    """Replaces the at-th value, in a section where there is one, by anything."""
    key = list(values)[at % len(values)]
    below = values[key]
    if isinstance(below, dict) and below and at % 3:
        values[key] = {**below, list(below)[at % len(below)]: wrong}
    else:
        values[key] = wrong
