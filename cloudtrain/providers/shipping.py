"""What travels to a cloud beside the request: launch.py and its modules, the user's code, spec.json.

    code/   launch.py  cloudtrain_launch/  cloudtrain_job/  train_ddp.py  code.tar.gz
    spec/   spec.json

Equal content has an equal digest, so what lies in the cloud already need not be sent again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain import shipped
from cloudtrain.errors import SpecError
from cloudtrain.providers.identity import canonical
from cloudtrain.spec.fields import is_local

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.job import Job

ARCHIVE = "code.tar.gz"
SPEC = "spec.json"
_TRAVELS = ("launch.py", "train_ddp.py", "cloudtrain_launch", "cloudtrain_job")


def bundle_of(job: Job) -> Bundle:
    """What ships with the job. Raises JobFileError for files that the job names and that are not there, SpecError for
    what is there and does not ship: a file that is left out would be missing on every node.
    """
    from cloudtrain.bundle import explain, scan
    from cloudtrain.spec.problems import JobFileError

    if problems := job.check_files():
        raise JobFileError(problems)
    left_out = no_code(job)
    bundle = scan(job.code_folder, no_code=left_out)
    for key, name in _needed(job).items():
        if name not in bundle.paths:
            why = explain(job.code_folder, name, no_code=left_out)
            raise SpecError(f"{key}: {name} does not ship with the code: {why.text if why else 'it is not there'}")
    return bundle


def no_code(job: Job) -> dict[str, str]:
    """What does not ship as code unless an ignore file says so: path from the code folder -> the key that names it.

    These are the job's own places here for data, outputs and checkpoints: else every result would make the same job
    another one, and travel with it. Whatever holds a file that the job starts with, or is a Python package, is code.
    """
    root, found = job.code_folder, {}
    for key, path in _places_here(job).items():
        there = os.path.normpath(job.folder.resolve() / path)
        for place in (Path(there), Path(os.path.realpath(there))):  # a link is left out, and what it leads to
            if root in place.parents:
                found[place.relative_to(root).as_posix()] = key
    return {place: key for place, key in found.items() if not _is_code(job, place)}


def _places_here(job: Job) -> dict[str, str]:
    """Key -> the path here, seen from the job's folder, that the job names for data, outputs and checkpoints."""
    named: dict[str, str | None] = {f"data.{name}": channel.uri_for("local") for name, channel in job.data.items()}
    named |= {f"outputs.{name}": uri for name, uri in job.outputs_for("local").items()}
    named["checkpoint.uri"] = job.checkpoint.uri_for("local")
    return {key: uri.removeprefix("file://") for key, uri in named.items() if uri is not None and is_local(uri)}


def _is_code(job: Job, place: str) -> bool:
    names = [*_needed(job).values(), (job.module or "").replace(".", "/")]
    inside = any(f"{name}/".startswith(f"{place}/") for name in names)
    return inside or os.path.lexists(job.code_folder / place / "__init__.py")


def _needed(job: Job) -> dict[str, str]:
    """Key -> the file in the code folder that it names."""
    task = job.task.rpartition(":")[0] if job.task else None
    named = {"entry": job.entry, "task": task, "environment.requirements": job.environment.requirements}
    return {key: os.path.normpath(name).replace(os.sep, "/") for key, name in named.items() if name}


def entrypoints_digest() -> str:
    """sha256 (hex) over the names and contents of what travels with every job."""
    found = hashlib.sha256(b"cloudtrain-entrypoints 1\n")
    for name, file in _entrypoints():
        content = file.read_bytes()
        found.update(f"{hashlib.sha256(content).hexdigest()} {name}\n".encode())
    return found.hexdigest()


def code_names() -> tuple[str, ...]:
    """The names of all that ``write_code`` writes, with forward slashes."""
    return (*(name for name, _ in _entrypoints()), ARCHIVE)


def write_code(bundle: Bundle, folder: Path) -> None:
    """Fill ``folder`` with launch.py & co and the archive of the user's code. Raises MissingError as bundles do."""
    import shutil  # a millisecond, which render does without

    from cloudtrain.bundle import write_archive

    for name, file in _entrypoints():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    write_archive(bundle, folder / ARCHIVE)


def write_spec(spec: Mapping[str, Any], folder: Path) -> None:
    """Write spec.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SPEC).write_bytes(spec_content(spec))


def spec_content(spec: Mapping[str, Any]) -> bytes:
    """spec.json, the same bytes for the same spec."""
    return canonical(spec) + b"\n"


def _entrypoints() -> Iterator[tuple[str, Path]]:
    """Name in the code folder and the file here, in a fixed order."""
    root = shipped.entrypoints()
    files = [file for top in _TRAVELS for file in ([root / top] if top.endswith(".py") else (root / top).rglob("*.py"))]
    yield from sorted((file.relative_to(root).as_posix(), file) for file in files)
