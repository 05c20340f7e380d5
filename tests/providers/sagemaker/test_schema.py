"""The check against botocore's model: every limit in it is kept, and whatever botocore itself finds is found, too."""

from __future__ import annotations

import copy
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.session import Session
from botocore.validate import ParamValidator

from cloudtrain.providers import registry
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.sagemaker import schema
from cloudtrain.providers.sagemaker.patterns import python_pattern
from cloudtrain.spec.problems import Path
from tests.providers.sagemaker.jobs import CPU, GPU, found, native_of

SHAPES: Mapping[str, Any] = Loader().load_service_model("sagemaker", "service-2")["shapes"]


def limits(name: str, path: Path = ()) -> Iterator[tuple[Path, str, Mapping[str, Any]]]:
    """Every place below a shape, its shape's name and the shape."""
    shape = SHAPES[name]
    yield path, name, shape
    if shape["type"] == "structure":
        for member, below in shape["members"].items():
            yield from limits(below["shape"], (*path, member))
    elif shape["type"] == "list":
        yield from limits(shape["member"]["shape"], (*path, 0))
    elif shape["type"] == "map":
        yield from limits(shape["value"]["shape"], (*path, "k"))


PLACES = [(path, shape) for path, _, shape in limits("CreateTrainingJobRequest") if path]


def put(native: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """A copy with a value at a path, made where there is none."""
    changed = copy.deepcopy(native)
    holder: Any = changed
    for step, following in pairwise(path):
        if isinstance(step, int):
            if not holder:
                holder.append([] if isinstance(following, int) else {})
            holder = holder[0]
        else:
            holder = holder.setdefault(step, [] if isinstance(following, int) else {})
    if isinstance(path[-1], int):
        holder[:1] = [value]
    else:
        holder[path[-1]] = value
    return changed


def messages(native: Mapping[str, Any], path: Path) -> list[str]:
    return [problem.message for problem in schema.problems(native) if problem.path == path]


@pytest.mark.parametrize(("path", "shape"), PLACES, ids=[".".join(map(str, path)) for path, _ in PLACES])
def test_every_limit_of_the_model_is_kept(path: Path, shape: Mapping[str, Any]) -> None:
    native = native_of(GPU, data={"t": {"uri": "s3://bucket/x/"}})
    for value, limit in beyond(shape):
        told = messages(put(native, path, value), path)
        assert len(told) == 1, (value, told)
        assert limit in told[0]


def beyond(shape: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Values that a shape does not allow, and what the message must say."""
    kind, least, most = shape["type"], shape.get("min", 0), shape.get("max")
    if kind == "string":
        yield 7, "must be text"
        if most is not None:
            yield "x" * (most + 1), f"{most + 1} characters, at most {most}"
        if "enum" in shape:
            yield shape["enum"][0] + "X", f"did you mean {shape['enum'][0]!r}"
        elif least == 1:
            yield "", "at least 1"
    elif kind == "list":
        yield {}, "must be a list"
        if least:
            yield [], f"0 entries, at least {least}"
    elif kind in ("integer", "long"):
        yield "7", "must be a whole number"
        yield True, "must be a whole number"
        yield 1.5, "must be a whole number"
        if "min" in shape:
            yield least - 1, f"at least {least}"
        if most is not None:
            yield most + 1, f"at most {most}"
    elif kind == "boolean":
        yield "true", "must be true or false"
    else:
        yield [], "must be a mapping"
    yield None, "is null"


@pytest.mark.parametrize(
    ("path", "most"),
    [(path, shape["max"]) for path, shape in PLACES if shape["type"] == "list" and "max" in shape and 0 not in path],
)
def test_lists_have_an_end(path: Path, most: int) -> None:
    native = put(native_of(GPU), path, [{} for _ in range(most + 1)])
    assert f"{most + 1} entries, at most {most}" in messages(native, path)


@pytest.mark.parametrize(("name", "most_key"), [("Environment", 512), ("HyperParameters", 256)])
def test_mappings_have_an_end_and_so_have_their_keys(name: str, most_key: int) -> None:
    full = {f"k{number}": "v" for number in range(101)}
    assert messages({**native_of(GPU), name: full}, (name,)) == ["101 entries, at most 100"]
    key = "k" * (most_key + 1)
    told = messages({**native_of(GPU), name: {key: "v"}}, (name, key))
    assert told == [f"the key has {most_key + 1} characters, at most {most_key}"]


@pytest.mark.parametrize(
    "change",
    [
        lambda native: native.pop("RoleArn"),
        lambda native: native["OutputDataConfig"].pop("S3OutputPath"),
        lambda native: native["InputDataConfig"][0].pop("DataSource"),
        lambda native: native["InputDataConfig"][0]["DataSource"]["S3DataSource"].pop("S3DataType"),
        lambda native: native.update(Role="x"),
        lambda native: native["ResourceConfig"].update(InstanceTyp="x"),
        lambda native: native["InputDataConfig"].clear(),
        lambda native: native["ResourceConfig"].update(InstanceCount="2"),
        lambda native: native["ResourceConfig"].update(InstanceCount=-1),
        lambda native: native["StoppingCondition"].update(MaxRuntimeInSeconds=0),
        lambda native: native["Environment"].update(N=5),
        lambda native: native.update(Tags={"a": "b"}),
        lambda native: native.update(EnableManagedSpotTraining="yes"),
        lambda native: native["AlgorithmSpecification"].update(ContainerEntrypoint=[1]),
    ],
)
def test_what_botocore_itself_refuses_is_refused(change: Any) -> None:
    native = native_of(GPU)
    shape = Session().get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape
    assert not ParamValidator().validate(native, shape).has_errors()
    assert not list(schema.problems(native))
    change(native)
    assert ParamValidator().validate(native, shape).has_errors()
    assert list(schema.problems(native))


@pytest.mark.parametrize(
    ("path", "value", "near"),
    [
        (("StopingCondition",), {}, "StoppingCondition"),
        (("ResourceConfig", "VolumeSize"), 5, "VolumeSizeInGB"),
        (("InputDataConfig", 0, "DataSource", "S3DataSource", "S3URI"), "s3://b/", "S3Uri"),
        (("ResourceConfig", "InstanceType"), "ml.p4d.24xlrge", "ml.p4d.24xlarge"),
        (("InputDataConfig", 0, "InputMode"), "Fast", "FastFile"),
    ],
)
def test_the_nearest_name_is_told(path: Path, value: Any, near: str) -> None:
    (told,) = messages(put(native_of(GPU), path, value), path)
    assert f"did you mean {near!r}" in told


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("TrainingJobName",), "under_score"),
        (("TrainingJobName",), "dot.ted"),
        (("TrainingJobName",), "ends-"),
        (("TrainingJobName",), "-begins"),
        (("TrainingJobName",), "line\n"),
        (("RoleArn",), "arn:aws:iam::12:role/something"),
        (("OutputDataConfig", "S3OutputPath"), "bucket/x"),
        (("AlgorithmSpecification", "ContainerEntrypoint", 0), "two\nlines"),
        (("HyperParameters", "k"), "two\u2028lines"),
        (("Tags", 0, "Key"), "a;b"),
        (("Tags", 0, "Value"), "a\tb"),
        (("VpcConfig", "Subnets", 0), "sub_net"),
        (("InputDataConfig", 0, "ChannelName"), "a b"),
    ],
)
def test_patterns_are_kept(path: Path, value: str) -> None:
    (told,) = messages(put(native_of(GPU, tags={"a": "b"}), path, value), path)
    assert "must match" in told


@pytest.mark.parametrize("value", ["Größe", "10 m²", "漢字", "a\u00a0b", "_.:/=+-@ ", ""])
def test_tags_may_have_letters_and_blanks_of_any_script(value: str) -> None:
    assert not list(schema.problems(put(native_of(GPU, tags={"a": "b"}), ("Tags", 0, "Value"), value)))


def test_the_tag_pattern_is_javas_to_the_letter() -> None:
    r"""``\p{L} \p{Z} \p{N}`` are Unicode's general categories; every character there is has been asked."""
    pattern = python_pattern(SHAPES["TagValue"]["pattern"])
    assert pattern is not None
    for number in range(0x110000):
        letter = chr(number)
        allowed = unicodedata.category(letter)[0] in "LZN" or letter in "_.:/=+-@"
        assert (pattern.fullmatch(letter) is not None) == allowed, hex(number)


def test_every_pattern_of_a_request_is_understood() -> None:
    patterns = {shape["pattern"] for _, shape in PLACES if "pattern" in shape}
    assert len(patterns) > 20
    assert not [pattern for pattern in patterns if python_pattern(pattern) is None]


def test_what_cannot_be_said_is_not_guessed() -> None:
    assert python_pattern(r"\p{Lu}+") is None
    assert python_pattern(r"[\p{L}]+") is None  # Python's \w would let _ through
    assert python_pattern(r"(?<open") is None


@pytest.mark.parametrize(("java", "yes", "no"), [(r"\d+", "12", "١٢"), (r"\w", "a", "ä"), (".", "a", "\u2029")])
def test_shorthands_are_ascii_and_a_dot_is_no_line_end(java: str, yes: str, no: str) -> None:
    pattern = python_pattern(java)
    assert pattern is not None and pattern.fullmatch(yes) and not pattern.fullmatch(no)
    assert re.compile(java).fullmatch(no)  # Python's own meaning differs


def test_without_botocore_our_own_rules_remain_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "botocore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "botocore", None)
    monkeypatch.setattr(schema, "shapes", schema.shapes.__wrapped__)
    native = native_of(CPU)
    native["Environment"]["LONG"] = "v" * 513
    native["StoppingCondition"]["MaxWaitTimeInSeconds"] = 5
    checked = registry.check("sagemaker", native)
    assert "pip install 'cloudtrain[sagemaker]'" in checked.skipped
    assert NativeProblem(("Environment", "LONG"), "513 characters, at most 512") in checked.problems
    assert [problem.path[-1] for problem in checked.problems] == ["LONG", "MaxWaitTimeInSeconds"]


def test_what_both_find_is_told_once() -> None:
    native = native_of(CPU)
    native["Environment"]["LONG"] = "v" * 513
    assert [str(problem) for problem in registry.check("sagemaker", native).problems] == [
        "Environment.LONG: 513 characters, at most 512"
    ]
    assert found(native_of(CPU)) == {}
