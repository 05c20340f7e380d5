"""The code snapshot: launch.py and its modules, and the user's code, as one asset of the workspace.

The vendor's client gives every snapshot a random number and finds it again by a hash of its content. Ours has a number
made from what is in it, and from nothing else that a job says, so that whoever has the request knows it: nothing has
to be built, hashed or kept to see that the code is there already, whatever its arguments are now, or to start a further
attempt from another machine. The hash goes with it as the client
writes it, so that ``az ml job create`` with the exported files finds this snapshot, too.

The files are put there by azure-storage-blob itself. The vendor's own upload shows no progress without printing it,
and waits for ever where a file has failed (read in azure-ai-ml 1.35.2: without its progress bar nobody looks at the
results of the threads, and it waits for a count that they would have reached).
"""

from __future__ import annotations

import hashlib
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.errors import CloudtrainError, MissingError, RefusedError
from cloudtrain.providers.azureml.errors import translated
from cloudtrain.providers.azureml.folders import OURS
from cloudtrain.providers.azureml.sending import File, send
from cloudtrain.providers.azureml.store import container_at
from cloudtrain.providers.azureml.translate import CODE
from cloudtrain.providers.identity import digest
from cloudtrain.providers.port import Progress, Uploaded
from cloudtrain.providers.reading import section, text
from cloudtrain.providers.shipping import write_code

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.azureml.workspace import Workspace
    from cloudtrain.providers.base import Request

HASH_VERSION = "202208"
_SIZE = f"{OURS}bytes"
_DOING = "upload the code"


def snapshot_name(request: Request) -> str:
    """The number of the snapshot that the request needs: equal code, equal number."""
    code = section(request.native, "tags").get(f"{OURS}code")
    return str(uuid.UUID(hex=digest("cloudtrain-snapshot 2", code)[:32]))


class Snapshot(NamedTuple):
    """One that is there."""

    id: str
    """By which a job names it."""
    uploaded: Uploaded


def ship(workspace: Workspace, request: Request, bundle: Bundle | None, progress: Progress) -> Snapshot:
    """See to it that the snapshot is there. Raises MissingError if it is not and there is nothing to make it from."""
    name = snapshot_name(request)
    found = workspace.code(name)
    if found is not None:
        size = text(found, "properties", "properties", _SIZE)
        present = int(size) if size.isdecimal() and size.isascii() else 0
        return Snapshot(text(found, "id"), Uploaded(0, present))
    if bundle is None:
        raise MissingError(
            f"the code of run {request.spec.get('run_id')} is not in workspace {workspace.name} any more",
            hint="Submit the job anew, from the folder with its code.",
        )
    with _staged(bundle) as folder:
        return _put(workspace, name, files_of(folder), progress)


def files_of(folder: Path) -> tuple[File, ...]:
    """All files below a folder, in the order in which they are hashed."""
    found = (path for path in folder.rglob("*") if path.is_file())
    files = [File(path.relative_to(folder).as_posix(), path, path.stat().st_size) for path in found]
    return tuple(sorted(files, key=lambda file: (file.name.lower(), file.name)))


def content_hash(files: Sequence[File]) -> str:
    """The hash that the vendor's client looks for: how many files, their names and sizes, then their contents."""
    found = hashlib.sha256(str(len(files)).encode())
    for file in files:
        found.update(f"#{file.name}#{file.size}".encode())
    for file in files:
        with file.source.open("rb") as content:
            while piece := content.read(1 << 20):
                found.update(piece)
    return found.hexdigest()


@contextmanager
def _staged(bundle: Bundle) -> Iterator[Path]:
    """The snapshot's folder, for as long as it is needed. Raises MissingError where no file can be made."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="cloudtrain-")
        write_code(bundle, Path(folder.name, CODE))
    except OSError as error:
        reason = error.strerror or str(error)
        raise MissingError(
            f"cannot write to {tempfile.gettempdir()}: {reason}", hint="Set TMPDIR to a folder that can be written."
        ) from error
    with folder:
        yield Path(folder.name, CODE)


def _put(workspace: Workspace, name: str, files: Sequence[File], progress: Progress) -> Snapshot:
    place = workspace.begin_code(name)
    address = text(place, "blobReferenceForConsumption", "credential", "sasUri")
    uri = text(place, "blobReferenceForConsumption", "blobUri")
    if not address or not uri:
        raise RefusedError(f"workspace {workspace.name} gives no place for code", cause="permission")
    with translated(_DOING), container_at(address) as container:
        send(container, CODE, files, progress)
    size = sum(file.size for file in files)
    properties = {"hash_sha256": content_hash(files), "hash_version": HASH_VERSION, _SIZE: str(size)}
    made = _registered(workspace, name, {"codeUri": f"{uri.rstrip('/')}/{CODE}", "properties": properties})
    if made is None:
        raise RefusedError(f"there is no workspace {workspace.name}, or it is not shown to you", cause="permission")
    return Snapshot(text(made, "id"), Uploaded(size, 0))


def _registered(workspace: Workspace, name: str, properties: dict[str, Any]) -> Any:
    """The asset, ours or that of another submit of the same code, which was faster. Its files unpack to the same, if
    not by the byte: a name is made from content, and archives depend on the zlib they are packed with."""
    try:
        return workspace.make_code(name, {**properties, "isAnonymous": True})
    except CloudtrainError:
        if (found := workspace.code(name)) is not None:
            return found
        raise
