"""What a run has left in Cloud Storage: all below the folders that the job's variables name, and how a file is fetched.

The job itself lists nothing. What its nodes write below ``/gcs`` is an object once the file is closed.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from cloudtrain.errors import RefusedError, UnreachableError
from cloudtrain.providers.landing import landing
from cloudtrain.providers.port import Artefact, Progress
from cloudtrain.providers.vertex.places import FOLDERS, SCHEME
from cloudtrain.providers.vertex.states import our_variables
from cloudtrain.providers.vertex.store import TIMEOUT, Store, patience
from cloudtrain.record.folder import cannot_write

_OUTPUT = "CLOUDTRAIN_OUTPUT_"
_TRIES = 3
_PATIENCE_SECONDS = 120.0
"""After which no new try is made to fetch a file, and more for a large one."""
_SLOW = 1 << 20
"""Bytes a second, at which a large file is still waited for."""


def artefacts(store: Store, job: Mapping[str, Any]) -> Iterator[Artefact]:
    """All files of one job; none where it has named no folders."""
    for kind, folder in _folders(job):
        for found in store.below(folder):
            source = json.dumps([found.bucket, found.name, found.generation])
            yield Artefact(kind, found.path, found.size, source)


def fetch(store: Store, artefact: Artefact, into: Path, progress: Progress) -> None:
    """See ``Client.fetch``. What arrives is compared with the checksum that the store keeps."""
    bucket, name, generation = json.loads(artefact.source)
    try:
        for _ in range(_TRIES):
            try:
                with landing(into, artefact.path) as file:
                    _Download(store, bucket, name, artefact.size, progress).into(file, generation)
                return
            except _Differs:
                continue
    except OSError as error:
        raise cannot_write(error, into / artefact.path) from error
    raise UnreachableError(f"{SCHEME}{bucket}/{name} does not arrive as it is kept: its checksum differs")


class _Differs(Exception):
    """What has arrived is not what is kept."""


class _Download:
    """One object on its way into a file. After a lost connection Google's client asks for the rest alone."""

    def __init__(self, store: Store, bucket: str, name: str, size: int, progress: Progress) -> None:
        self._store, self._bucket, self._name = store, bucket, name
        self._size, self._progress = size, progress

    def into(self, file: IO[bytes], generation: int) -> None:
        """``generation``: the object as it was listed. One that has been replaced since is taken as it is now."""
        from google.api_core.exceptions import NotFound

        with self._store.told(self._bucket):
            try:
                matches = self._fetched(file, generation)
            except NotFound:
                file.seek(0)
                file.truncate()
                try:
                    matches = self._fetched(file, None)
                except NotFound:
                    raise RefusedError(f"{SCHEME}{self._bucket}/{self._name} is not there any more") from None
        if not matches:
            raise _Differs

    def _fetched(self, file: IO[bytes], generation: int | None) -> bool:
        """Whether what has arrived is what is kept. Google's client notices an answer that ends too early, and compares
        what came at once; only what it fetched in several goes is for us to compare."""
        from google.cloud.storage.exceptions import DataCorruption

        blob = self._store.client.bucket(self._bucket).blob(self._name, generation=generation)
        checked = _Checked(file, self._size, self._progress)
        how = {"raw_download": True, "checksum": "crc32c", "timeout": TIMEOUT}
        try:
            blob.download_to_file(checked, retry=patience(_PATIENCE_SECONDS + self._size / _SLOW), **how)
        except DataCorruption:
            return False
        if blob.crc32c is None:
            blob.reload(timeout=TIMEOUT, retry=patience())
        return bool(blob.crc32c == checked.crc32c)


class _Checked:
    """Passes on what is written, counts it, and knows its checksum."""

    def __init__(self, file: IO[bytes], size: int, progress: Progress) -> None:
        self._file, self._size, self._progress = file, size, progress
        self._sum: Any = import_module("google_crc32c").Checksum()
        self._done = 0

    def write(self, data: bytes) -> int:
        self._file.write(data)
        self._sum.update(data)
        self._done += len(data)
        self._progress(self._done, max(self._done, self._size))
        return len(data)

    @property
    def crc32c(self) -> str:
        """In base 64, as Cloud Storage tells it."""
        return b64encode(self._sum.digest()).decode()


def _folders(job: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and URI of each folder that the nodes write to."""
    for variable, uri in our_variables(job).items():
        folder = f"{uri.rstrip('/')}/"
        if not uri.startswith(SCHEME):
            continue
        if variable in FOLDERS:
            yield FOLDERS[variable], folder
        elif variable.startswith(_OUTPUT):
            yield f"outputs/{_name(variable.removeprefix(_OUTPUT), folder)}", folder


def _name(variable: str, uri: str) -> str:
    """The output's name. The variable has it in capitals; the folder beside the run is called by it."""
    last = uri.rstrip("/").rpartition("/")[2]
    return last if last.upper() == variable else variable.lower()
