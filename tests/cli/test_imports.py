"""What a command may load and what the public surface is, as literal lists: growing either takes an edit here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

import cloudtrain
from cloudtrain.cli import VERBS, cli

# Modules besides the standard library. A standard library module that costs much is in NEVER.
HELP_MAY_LOAD = {"click", "cloudtrain", "cloudtrain.cli", "cloudtrain.errors"}
NEVER = {
    "asyncio", "ctypes", "http", "importlib.metadata", "multiprocessing", "numpy", "pathspec", "platformdirs",
    "pydantic", "rich", "ssl", "subprocess", "torch", "urllib.request", "xml", "yaml",
}  # fmt: skip
VENDOR_SDKS = {"azure", "boto3", "botocore", "google", "sagemaker"}
"""None of these, and neither torch, for the help of a verb."""

PUBLIC_NAMES = {
    "CloudtrainError", "Job", "JobFailed", "MissingError", "Observer", "Request", "Run", "RunStatus", "SpecError",
    "render", "run", "submit",
}  # fmt: skip

OPTIONS = {
    "init": {"folder", "--template", "--list", "--json"},
    "validate": {"files", "--provider", "--set", "--json"},
    "schema": set[str](),
    "render": {"job", "--provider", "--all", "--output", "--out", "--set", "--attempt", "--quiet", "--json"},
    "bundle": {"job", "--list", "--output", "--why", "--json"},
    "catalog": set[str](),
    "catalog accelerators": {"--json"},
    "catalog features": {"--provider", "--markdown", "--json"},
    "catalog images": {"--provider", "--region", "--json"},
    "catalog instances": {"--accelerator", "--provider", "--min-accelerators", "--region", "--json"},
    "run": {
        "job", "args", "--nodes", "--processes", "--isolation", "--engine", "--device", "--data", "--ranks", "--grace",
        "--start-timeout", "--resume", "--as", "--live", "--plain", "--quiet", "--json",
    },
    "submit": {"job", "--provider", "--follow", "--ranks", "--new", "--dry-run", "--set", "--quiet", "--json"},
    "runs": {"--provider", "--name", "--state", "--limit", "--json"},
    "status": {"run", "--attempt", "--json"},
    "logs": {"run", "--attempt", "--follow", "--rank", "--node", "--since", "--json"},
    "stop": {"run", "--wait", "--json"},
    "resume": {"run", "--follow", "--ranks", "--quiet", "--json"},
    "doctor": {"--provider", "--set", "--json"},
    "emulate": {"cmd", "--provider", "--speed", "--faults", "--isolation"},
    "download": {"run", "--to", "--only", "--force", "--json"},
}  # fmt: skip

PROGRAM = """
import json, sys
before = set(sys.modules)
sys.argv = ["cloudtrain", *json.loads(sys.argv[1])]
try:
    {statement}
except SystemExit as end:
    assert not end.code, end.code
finally:
    sys.stderr.write(json.dumps(sorted(set(sys.modules) - before)))
"""


def _loaded(statement: str, *args: str) -> set[str]:
    """Modules that a new interpreter has loaded after ``statement``, less those it starts with."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(statement=statement), json.dumps(args)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return set(json.loads(result.stderr))


def _top(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def _foreign(modules: set[str]) -> set[str]:
    """What is not the standard library's: our modules in full, of others the package."""
    kept = {name if name.startswith("cloudtrain") else name.partition(".")[0] for name in modules}
    return kept - set(sys.stdlib_module_names)


@pytest.mark.parametrize("args", [["--help"], ["-h"]])
def test_help_loads_click_and_little_else(args: list[str]) -> None:
    loaded = _loaded("from cloudtrain.cli import main; main()", *args)
    assert _foreign(loaded) <= HELP_MAY_LOAD
    # Less what click itself needs, which may change with its version.
    assert not (loaded - _loaded("import click")) & NEVER


@pytest.mark.parametrize("verb", list(VERBS))
def test_the_help_of_a_verb_loads_no_torch_and_no_vendor_sdk(verb: str) -> None:
    loaded = _loaded("from cloudtrain.cli import main; main()", verb, "--help")
    assert not _top(loaded) & ({"torch", "numpy"} | VENDOR_SDKS)


def test_import_cloudtrain_loads_nothing_but_itself() -> None:
    assert _foreign(_loaded("import cloudtrain")) == {"cloudtrain"}


def test_public_names() -> None:
    assert set(cloudtrain.__all__) == PUBLIC_NAMES
    assert set(dir(cloudtrain)) == PUBLIC_NAMES | {"__version__"}
    assert all(getattr(cloudtrain, name).__doc__ for name in PUBLIC_NAMES)


def test_verbs_and_their_options() -> None:
    found = {}
    for verb, command in _commands(cli, ""):
        assert command.help, verb
        found[verb] = {
            name for p in command.params for name in [*p.opts, *p.secondary_opts] if len(name) != 2
        }  # less short spellings such as -o
    assert found == OPTIONS


def _commands(group: click.Group, above: str) -> Iterator[tuple[str, click.Command]]:
    """Every command, those of a verb that is a group by both names."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield above + name, command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{above}{name} ")
