"""A folder of checkpoints on disk: published whole or not at all, and trusted only after reading every byte.

``step-000000123/`` holds ``state.pt`` and ``manifest.json`` (size and SHA-256 of the former). It is written under
another name, made durable file by file with the manifest last, and renamed. A second save of the same step is
``step-000000123.1``: nothing published is ever replaced. torch.load does not notice a flipped bit, so "it loads" is
no proof of anything.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Callable

from cloudtrain_job.errors import CheckpointError

STATE = "state.pt"
MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d+)(?:\.(\d+))?")
_UNFINISHED = re.compile(r"step-\d+(?:\.\d+)?\.tmp-[0-9a-f]+")


@dataclass(frozen=True, order=True)
class Saved:
    """One published checkpoint; they sort by age."""

    step: int
    revision: int
    path: Path = field(compare=False)


class Damaged(Exception):
    """A checkpoint that does not match its manifest, with the reason."""


class Store:
    """The checkpoints under ``folder``, of which ``keep`` are kept. Used by one process at a time."""

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder = folder
        self.keep = max(keep, 1)

    def saved(self) -> list[Saved]:
        """All published checkpoints, sound or not, newest first."""
        if not self.folder.is_dir():
            return []
        found = ((entry, _NAME.fullmatch(entry.name)) for entry in self.folder.iterdir() if entry.is_dir())
        return sorted((Saved(int(m[1]), int(m[2] or 0), entry) for entry, m in found if m), reverse=True)

    def publish(self, step: int, write: Callable[[Any], None], facts: dict[str, Any]) -> Saved:
        """Save what ``write(file)`` writes as the checkpoint of ``step``, with ``facts`` in its manifest, then prune.

        Raises CheckpointError if the disk does not take it; what was there before is untouched then.
        """
        with _explained(f"step {step} could not be saved in {self.folder}"):
            return self._publish(step, write, facts)

    def _publish(self, step: int, write: Callable[[Any], None], facts: dict[str, Any]) -> Saved:
        made = not self.folder.is_dir()
        self.folder.mkdir(parents=True, exist_ok=True)
        if made:
            sync_folder(self.folder.parent)
        revision = max((saved.revision + 1 for saved in self.saved() if saved.step == step), default=0)
        name = f"step-{step:09d}" + (f".{revision}" if revision else "")
        draft = self.folder / f"{name}.tmp-{secrets.token_hex(4)}"
        draft.mkdir()
        try:
            _write(draft, write, facts)
            os.rename(draft, self.folder / name)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync_folder(self.folder)
        self._prune()
        return Saved(step, revision, self.folder / name)

    def set_aside(self, damaged: Iterable[Saved]) -> None:
        """Rename what is not sound, so that it neither counts as one of those kept nor is removed with them."""
        for saved in damaged:
            with contextlib.suppress(OSError):
                os.rename(saved.path, f"{saved.path}.damaged-{secrets.token_hex(4)}")

    def sweep(self) -> None:
        """Remove what a killed save left behind."""
        if self.folder.is_dir():
            for entry in self.folder.iterdir():
                if _UNFINISHED.fullmatch(entry.name):
                    shutil.rmtree(entry, ignore_errors=True)

    def _prune(self) -> None:
        # The newest is what was just written and made durable, or what this process restored after verifying it.
        for saved in self.saved()[self.keep :]:
            shutil.rmtree(saved.path, ignore_errors=True)


def verify(path: Path) -> dict[str, Any]:
    """The manifest of the checkpoint in ``path``, after reading every byte of it. Raises Damaged with the reason."""
    manifest = _read_manifest(path / MANIFEST)
    for name, entry in manifest["files"].items():
        _verify_file(path / name, entry)
    return manifest


def write_atomically(path: Path, write: Callable[[Any], None]) -> None:
    """Write a single file so that it is either as before or complete, also after a power cut.

    Raises CheckpointError if the disk does not take it.
    """
    with _explained(f"{path} could not be written"):
        _write_atomically(path, write)


def _write_atomically(path: Path, write: Callable[[Any], None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.tmp-{secrets.token_hex(4)}")
    try:
        with durable(draft) as file:
            write(file)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextlib.contextmanager
def durable(path: Path) -> Iterator[IO[bytes]]:
    """A new file that has reached the disk when the block ends."""
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable, where the system can open folders (Windows cannot)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:  # when the disk is full torch.save hides the OSError behind its own
        cause = error.__context__ if isinstance(error.__context__, OSError) else error
        raise CheckpointError(f"{what}: {cause}") from error


class _Hashing:
    """A file to write to that counts and hashes on the way, so that nothing needs to be read back."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._size = 0

    def write(self, data: Any) -> int:
        self._file.write(data)
        self._hash.update(data)
        size = memoryview(data).nbytes
        self._size += size
        return size

    def flush(self) -> None:
        self._file.flush()

    def entry(self) -> dict[str, Any]:
        return {"size": self._size, "sha256": self._hash.hexdigest()}


def _write(draft: Path, write: Callable[[Any], None], facts: dict[str, Any]) -> None:
    with durable(draft / STATE) as file:
        hashing = _Hashing(file)
        write(hashing)
    manifest = {"format": 1, **facts, "files": {STATE: hashing.entry()}}
    with durable(draft / MANIFEST) as file:
        file.write(json.dumps({**manifest, "sha256": _digest(manifest)}, indent=1).encode())
    sync_folder(draft)


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        digest = manifest.pop("sha256")
    except FileNotFoundError:
        raise Damaged("it has no manifest, so it was never completed") from None
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise Damaged(f"its manifest cannot be read ({error})") from None
    if digest != _digest(manifest):
        raise Damaged("its manifest was changed after it was written")
    return manifest


def _verify_file(path: Path, entry: dict[str, Any]) -> None:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != entry["size"]:
                raise Damaged(f"{path.name} has {size} bytes instead of {entry['size']}")
            if _sha256(file) != entry["sha256"]:
                raise Damaged(f"{path.name} has the right size but other content than was saved")
    except OSError as error:
        raise Damaged(f"{path.name} cannot be read ({error.strerror})") from None


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    for block in iter(lambda: file.read(1 << 20), b""):
        digest.update(block)
    return digest.hexdigest()
