"""What the code imports of Azure's packages is named by the extra: nothing comes along by chance."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def _named() -> set[str]:
    """Top modules of the extra's packages: azure-storage-blob has azure.storage.blob."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    return {re.split("[<>=]", needed)[0].replace("-", ".") for needed in extras["azureml"]}


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("folder", ["cloudtrain/providers/azureml", "cloudtrain/emulator/azureml"])
def test_every_package_that_is_imported_is_named(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    found = {name for file in files for name in _imported(file) if name.split(".")[0] in ("azure", "marshmallow")}
    assert found
    named = tuple(f"{name}." for name in _named())
    assert not [name for name in found if not f"{name}.".startswith(named)]
