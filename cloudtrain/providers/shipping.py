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
    bundle = scan(job.code_folder)
    needed = {
        "entry": job.entry,
        "task": job.task.partition(":")[0] if job.task else None,
        "environment.requirements": job.environment.requirements,
    }
    for key, name in needed.items():
        if name and os.path.normpath(name).replace(os.sep, "/") not in bundle.paths:
            why = explain(job.code_folder, name)
            raise SpecError(f"{key}: {name} does not ship with the code: {why.text if why else 'it is not there'}")
    return bundle


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
