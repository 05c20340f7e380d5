"""Job files as text: what every mistake says and where, and what the text of a value becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloudtrain.job import Job
from cloudtrain.jobfile import JobFileError

HEAD = "name: a\nentry: t.py\n"  # two lines: what follows begins on line 3


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(JobFileError) as caught:
        Job.parse(text, "job.yaml")
    return [line.removeprefix("job.yaml:") for line in str(caught.value).splitlines()]


def argv(args: str) -> list[str]:
    return Job.parse(f"{HEAD}args: {args}\n").argv


def test_the_whole_file_of_the_contract() -> None:
    made = Job.load(Path(__file__).parent / "jobfiles" / "full.yaml")
    assert made.argv == ["--epochs", "5", "--lr", "0.05"]
    assert (made.processes, made.resources.nodes, made.resources.shm_gib) == (8, 2, 16)
    assert made.environment.torch == "2.10"
    assert dict(made.environment.env) == {"TOKENIZERS_PARALLELISM": "false"}
    assert made.environment.secrets_for("local") == {"WANDB_API_KEY": "env:WANDB_API_KEY"}
    assert made.data["train"].uri_for("azureml") == "azureml://datastores/d/paths/train/"
    assert (made.data["train"].mode, made.data["train"].shard) == ("mount", "replicate")
    assert made.checkpoint.every is not None
    assert made.checkpoint.every.seconds == 600
    assert (made.spot.enabled, made.limits.cost_usd) == (True, 120.0)
    assert made.overrides["vertex"] == {"scheduling": {"timeout": "7d", "restartJobOnWorkerRestart": False}}
    assert Job.parse(made.dump()) == made


@pytest.mark.parametrize(
    "text",
    ["007", "1e10", "-0.1", "yes", "no", "on", "0x1F", "0o17", "2026-11-30", "1_000", "12:30:00", ".5", "1.", "+1",
     ".inf", "0.10", "1e-05", "$HOME", "x`y`", "a b", "ümläut", "https://x/y", "=", "TRUe", "nULL", "1.10"],
)  # fmt: skip
def test_arguments_keep_the_text_written(text: str) -> None:
    assert argv(f"{{x: {text}}}") == ["--x", text]
    assert argv(f"\n  x: {text}") == ["--x", text]
    assert argv(f"[{text}]") == [text]


def test_quoted_arguments_are_text_and_unquoted_switches_are_flags() -> None:
    assert argv("{a: true, b: 'true', c: False, d: \"false\", e: ~, f: '~', g: '', h: null, i: }") == [
        "--a", "--b", "true", "--d", "false", "--f", "~", "--g", "",
    ]  # fmt: skip
    assert argv("[true, null, ~, '', 'x']") == ["true", "null", "~", "", "x"]
    assert argv("{x: [true, 007]}") == ["--x", "true", "007"]
    assert argv("\n  text: |\n    two\n    lines\n  folded: >-\n    a\n    b") == [
        "--text", "two\nlines\n", "--folded", "a b",
    ]  # fmt: skip
    assert argv("\n  a: ${{x}}\n  b: '`x`'\n  c: ${x}") == ["--a", "${{x}}", "--b", "`x`", "--c", "${x}"]
    assert argv("{007: 1, true: 2, x=y: 3}") == ["--007", "1", "--true", "2", "--x=y", "3"]
    assert argv("[!!str true, !!str 1, ! null]") == ["true", "1", "null"]


def test_environment_and_tags_keep_the_text_too() -> None:
    made = Job.parse(f"{HEAD}environment:\n  env: {{A: 007, B: yes, C: null, D: '', E: true}}\ntags: {{t: 1.10}}\n")
    assert dict(made.environment.env) == {"A": "007", "B": "yes", "C": "null", "D": "", "E": "true"}
    assert dict(made.tags) == {"t": "1.10"}
    assert problems(f"{HEAD}environment:\n  env: {{A: , B: []}}\n") == [
        "4:9: environment.env.A: is empty; write '' if empty text is meant",
        "4:17: environment.env.B: must be text, not a list",
    ]


@pytest.mark.parametrize("word", ["true", "True", "yes", "on", "YES"])
def test_words_for_yes(word: str) -> None:
    assert Job.parse(f"{HEAD}spot: {{enabled: {word}}}\n").spot.enabled


def test_switches_are_not_text_or_numbers() -> None:
    assert problems(f"{HEAD}spot: {{enabled: 'true'}}\n") == [
        "3:17: spot.enabled: must be true or false, not the text 'true'"
    ]
    assert problems(f"{HEAD}spot: {{enabled: 1}}\n") == ["3:17: spot.enabled: must be true or false, not '1'"]


def test_overrides_are_typed_as_yaml_1_2() -> None:
    made = Job.parse(
        HEAD
        + "overrides:\n  vertex: {a: 1, b: 0x10, c: 0o10, d: 1e3, e: yes, f: true, g: ~, h: '1', i: 010,\n"
        + "    j: [.5, 1:30]}\n"
    )
    assert made.overrides["vertex"] == {
        "a": 1, "b": 16, "c": 8, "d": 1000.0, "e": "yes", "f": True, "g": None, "h": "1", "i": 10, "j": [0.5, "1:30"],
    }  # fmt: skip
    assert problems(f"{HEAD}overrides:\n  vertex:\n    a: .inf\n") == [
        "5:8: overrides.vertex.a: must be a finite number: .inf cannot be sent to a service"
    ]


def test_empty_sections_are_their_defaults() -> None:
    sections = "args code framework resources environment data outputs checkpoint spot retries limits tags overrides"
    empty = "".join(f"{section}:\n" for section in sections.split())
    assert Job.parse(HEAD + empty) == Job(name="a", entry="t.py")
    assert Job.parse(f"{HEAD}resources: {{nodes: }}\nspot: ~\n") == Job(name="a", entry="t.py")


def test_everything_wrong_is_said_at_once_in_the_order_of_the_file() -> None:
    text = """\
naem: x
entry: train.py
module: a b
args: {lr: {}, --x: 1}
resources:
  node: 2
  nodes: two
  accelerator: A100
  disk_gib: "200"
environment: {env: {RANK: 1}, torch: two, nothing: 1}
data:
  train: {mode: mont}
  Train: x
  a-b: {uri: y}
checkpoint: {every: 90}
framework: torch
spot: true
overrides: {sagmaker: {}}
"""
    assert problems(text) == [
        "1:1: naem: unknown key, did you mean 'name'?",
        "1:1: name: is missing: what people call the job",
        "3:1: module: cannot stand beside entry: give exactly one of entry, module, task",
        "3:9: module: must be a module's dotted name, such as pkg.train, not 'a b'",
        "4:12: args.lr: must be text, a number, true, false or a list of these, not a mapping",
        "4:16: args.--x: the -- is put in front by cloudtrain, write 'x'; or use a list for full control",
        "6:3: resources.node: unknown key, did you mean 'nodes'?",
        "7:10: resources.nodes: must be a whole number of at least 1, not 'two'",
        "8:16: resources.accelerator: 'A100' comes in more than one size, write A100-40GB or A100-80GB",
        "9:13: resources.disk_gib: must be a whole number of at least 1, not the text '200'",
        "10:21: environment.env.RANK: is set by the launcher on every process and cannot be given here",
        "10:38: environment.torch: must be a version such as 2.8, not 'two'",
        "10:43: environment.nothing: unknown key; known here: image, torch, requirements, env, secrets",
        "12:10: data.train.uri: is missing: where the data lies: one place, or one per provider; for local a path seen "
        "from the job file",
        "12:17: data.train.mode: must be one of mount, download, stream; 'mont' is not, did you mean 'mount'?",
        "13:3: data.Train: differs from 'train' only in case; both would be TRAIN in the environment",
        "13:10: data.Train: must be a mapping with the keys uri, mode, shard, not 'x'",
        "14:3: data.a-b: a channel name must be an identifier such as train",
        "15:21: checkpoint.every: must be a duration such as 90s, 10m, 6h or 2d, not '90' "
        "(write 90s if seconds are meant)",
        "16:12: framework: must be one of pytorch, accelerate, lightning, deepspeed, tensorflow, jax, dataparallel; "
        "'torch' is not, did you mean 'pytorch'?",
        "17:7: spot: must be a mapping with the keys enabled, max_wait, not 'true'",
        "18:13: overrides.sagmaker: unknown provider, did you mean 'sagemaker'?",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            HEAD + "resources: [1]\n",
            "3:12: resources: must be a mapping with the keys nodes, accelerator, accelerators_per",
        ),
        (HEAD + "data: [train]\n", "3:7: data: must be a mapping from a channel name to its value, not a list"),
        (HEAD + "data:\n  train:\n", "4:3: data.train: must be a mapping with the keys uri, mode, shard, not ''"),
        (
            HEAD + "outputs: {m: [x]}\n",
            "3:14: outputs.m: must be one value, or a mapping with the keys sagemaker, vertex",
        ),
        (HEAD + "outputs: {m: {local: }}\n", "3:15: outputs.m.local: is empty; give it a value or leave it out"),
        (HEAD + "limits: {cost_usd: -1}\n", "3:20: limits.cost_usd: must be a number above 0, not '-1'"),
        (HEAD + "version: 2\n", "3:10: version: must be 1, the only format that this cloudtrain reads, not '2'"),
        (
            HEAD + "args: [1, [2]]\n",
            "3:11: args[1]: must be text, a number, true, false or a list of these, not a list",
        ),
        (HEAD + "args: ['${data.x}']\n", "3:8: args[0]: ${data.x} names nothing in data: no data are declared"),
        ('name: a\nentry: "t\\0.py"\n', "2:8: entry: must not hold a NUL character"),
        ("name:\nentry: t.py\n", "1:1: name: is missing: what people call the job"),
        ("name: a\nentry:\n", "1:1: says not what to run: give one of entry, module, task"),
        ("", "1:1: must be a mapping with the keys version, name, entry"),
        ("# nothing\n", "1:1: must be a mapping with the keys version, name, entry"),
        ("- a\n", "1:1: must be a mapping with the keys version, name, entry"),
        ("\n\njust text\n", "3:1: must be a mapping with the keys version, name, entry"),
    ],
)
def test_wrong_shapes(text: str, line: str) -> None:
    (found,) = problems(text)
    assert found.startswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name: a\n\tentry: t.py\n", "2:1: a tab cannot stand here; indent with spaces"),
        ("name: a: b\n", "1:8: a ': ' cannot stand here; quote the text, or mend the indentation"),
        ("name: a\n---\nname: b\n", "2:1: a second document begins here; keep one job in a file"),
        ("name: 'a\nentry: t.py\n", "3:1: a quote is not closed before the file ends"),
        ("args: [1, 2\nname: a\n", "2:5: a ',' or a closing bracket is missing before this"),
        ("name: a\n  entry: t.py\n", "2:8: a ': ' cannot stand here; quote the text, or mend the indentation"),
        ("name: *x\n", "1:7: the alias names no anchor above it"),
        ("name: a\x07b\n", "1:8: the character '\\x07' cannot stand in YAML"),
        ("ok: 1\nname: \ud800\n", "2:7: the character '\\ud800' cannot stand in YAML"),
        (b"name: a\nx: \xc3\xa4\xff\n", "2:5: the byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"\xff\xfen\0a\0", "1:1: the byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"a: 1\r\nb: \x00\r\n", "2:4: the character '\\x00' cannot stand in YAML"),
        ('name: "\\U00110000"\n', "1:10: not YAML: "),
        ("a: " + "[" * 500, "1:68: more than 64 levels deep"),
        ("a: " + "{a: " * 100_000, "1:257: more than 64 levels deep"),
        ("x" * (1 << 20) + "x", "1:1: more than 1048576 bytes"),
        ("%YAML 3.0\n---\na: 1\n", "1:1: not YAML: found incompatible YAML document"),
        ("? [a]\n: 1\nname: a\nentry: t.py\n", "1:3: a key must be text"),
        ("name: a\nentry: !!python/object:os.x t.py\n", "2:8: entry: the tag '!!python/object:os.x' is not read here"),
        (HEAD + "data: !x {a: 1}\n", "3:7: data: the tag '!x' is not read here; leave it out"),
    ],
)  # fmt: skip
def test_what_is_not_yaml(text: str | bytes, line: str) -> None:
    (found,) = problems(text)
    assert found.startswith(line)


def test_keys_given_twice() -> None:
    assert problems("name: a\nentry: t.py\nname: b\nspot: {enabled: true, 'enabled': false}\n") == [
        "3:1: name: is given twice, first on line 1; keep one",
        "4:23: spot.enabled: is given twice, first on line 4; keep one",
    ]


def test_a_byte_order_mark_and_any_line_ends() -> None:
    assert Job.parse(b"\xef\xbb\xbfname: a\r\nentry: t.py\r\n") == Job(name="a", entry="t.py")
    assert problems(b"\xef\xbb\xbfname: A\r\nentry: /x\r\nspot: 1\r\n")[0].startswith("1:7: name")
    assert problems("name: a\rentry: /t.py\r")[0].startswith("2:8: entry")
    assert problems("a: 1\n# one\u2028line\n")[0].startswith(
        "2:6: the character '\\u2028' cannot stand in YAML as it is; in double quotes"
    )


def test_anchors_aliases_and_merge_keys() -> None:
    made = Job.parse(
        HEAD
        + "data:\n  train: &base {uri: a, mode: stream, shard: by-object}\n"
        + "  test: {<<: *base, uri: b}\n  same: *base\n  both: {<<: [{mode: mount}, *base]}\n"
    )
    assert [(channel.uri, channel.mode) for channel in made.data.values()] == [
        ("a", "stream"), ("b", "stream"), ("a", "stream"), ("a", "mount"),
    ]  # fmt: skip
    assert Job.parse(made.dump()) == made
    assert problems(HEAD + "data:\n  a: &x {uri: x, mod: y}\n  b: *x\n") == [
        "4:18: data.a.mod: unknown key, did you mean 'mode'?",
        "4:18: data.b.mod: unknown key, did you mean 'mode'?",
    ]
    assert problems(HEAD + "args: {<<: 5}\n") == [
        "3:8: args.'<<': merges a mapping or a list of mappings, and never itself"
    ]


def test_aliases_cannot_blow_up_or_go_round() -> None:
    laughs = "overrides:\n  vertex:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"    a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
    )
    (line,) = problems(HEAD + laughs)
    assert "holds more than 50000 values, aliases counted" in line
    merges = "overrides:\n  vertex:\n    a0: &a0 {x: 1}\n" + "".join(
        f"    a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 10)
    )
    (line,) = problems(HEAD + merges)
    assert "holds more than 50000 values, aliases counted" in line
    chain = "overrides:\n  vertex:\n    a0: &a0 {x: 1}\n" + "".join(
        f"    a{n}: &a{n} {{<<: *a{n - 1}}}\n" for n in range(1, 2000)
    )
    (line,) = problems(HEAD + chain)
    assert "levels deep" in line
    assert problems(HEAD + "overrides: {vertex: &v {x: [*v]}}\n") == [
        "3:21: overrides.vertex.x[0]: an alias stands inside its own anchor"
    ]
    assert problems(HEAD + "overrides: {vertex: &v {<<: *v}}\n") == [
        "3:25: overrides.vertex.'<<': merges a mapping or a list of mappings, and never itself"
    ]
    assert problems("&a [*a]\n") == ["1:1: [0]: an alias stands inside its own anchor", *problems("[]")]


def test_a_key_of_any_text_stays_on_one_line() -> None:
    assert problems(HEAD + '"two\\nlines": 1\n')[0].startswith("3:1: 'two\\nlines': unknown key")
    assert problems(HEAD + f"{'k' * 200}: 1\n")[0].startswith(f"3:1: '{'k' * 49}...")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: None, "there is no such file"),
        (lambda path: path.mkdir(), "this is a folder; name the job file in it"),
        (lambda path: path.write_bytes(b"#" * ((1 << 20) + 1)), "more than 1048576 bytes"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, make: object, message: str) -> None:
    path = tmp_path / "job.yaml"
    make(path)  # type: ignore[operator]
    with pytest.raises(JobFileError) as caught:
        Job.load(path)
    assert str(caught.value).startswith(f"{path}:1:1: {message}")


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000, "a/" * 5000])
def test_a_name_that_no_file_can_have(name: str) -> None:
    with pytest.raises(JobFileError, match="cannot be read"):
        Job.load(name)


def test_a_dump_says_only_what_differs() -> None:
    made = Job(name="a", entry="t.py", args={"x": "true", "y": True, "z": ["1e10", ""]}, resources={"nodes": 2})
    assert made.dump() == (
        "name: a\nentry: t.py\nargs:\n  x: 'true'\n  y: true\n  z:\n  - '1e10'\n  - ''\nresources:\n  nodes: 2\n"
    )
    assert Job(name="7", entry="t.py").dump() == "name: '7'\nentry: t.py\n"
