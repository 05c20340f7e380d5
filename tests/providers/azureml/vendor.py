"""The vendor's own client, without its account and its remarks."""

from __future__ import annotations

import importlib
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.local.project import require


def needed() -> None:
    """Skip where the client is not installed; fail where all is to be tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on what it imports
        try:
            importlib.import_module("azure.ai.ml")
        except ModuleNotFoundError:
            require(False, "azure-ai-ml is not installed")


def load(file: Path) -> Any:
    """The job object that the vendor's client makes of a form."""
    from azure.ai.ml import load_job

    with _quiet():
        return load_job(file)


def wire(file: Path) -> dict[str, Any]:
    """The body that the client would send for a form, but for what it would upload first."""
    with _quiet():
        body = load(file)._to_job()._to_rest_object().as_dict()
    made: dict[str, Any] = json.loads(json.dumps(body, default=str))
    return made


def fields(kind: Any) -> tuple[set[str], set[str]]:
    """The names that a schema of the vendor's takes, and those that it only writes."""
    from azure.ai.ml._schema.core.schema import PathAwareSchema

    with _quiet():
        made = kind(context={"base_path": "."}) if issubclass(kind, PathAwareSchema) else kind()
    names = {field.data_key or name: field.dump_only for name, field in made.fields.items()}
    written = {name for name, only in names.items() if only}
    return set(names) - written, written


@contextmanager
def _quiet() -> Iterator[None]:
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
