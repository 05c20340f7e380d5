"""What ships, as a value: the files and one digest of them.

The digest, format 1, is the sha256 of this text in UTF-8, a line feed (10) behind every line::

    cloudtrain-bundle 1
    <sha256 of the content, hex> <size in bytes> <x or -> <path>
    ...

with one line per file, ordered by the bytes of the paths, which are relative with ``/`` between the parts; ``x`` stands
for the owner's exec bit. Times, owners, other mode bits, the place of the folder and compression have no part in it.
Empty folders do not ship. Paths hold no control characters, so a line cannot be mistaken for two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

DIGEST_FORMAT = "cloudtrain-bundle 1"


class ShippedFile(NamedTuple):
    """One file: ``path`` in the bundle, ``size`` in bytes, ``sha256`` of the content (hex), ``source`` to read from."""

    path: str
    size: int
    executable: bool
    sha256: str
    source: str

    @property
    def mode(self) -> int:
        """0o755 or 0o644."""
        return 0o755 if self.executable else 0o644


@dataclass(frozen=True)
class Bundle:
    """What ships from ``folder``, ordered as in the digest; ``reread`` counts the files that had to be read for it."""

    folder: Path
    files: tuple[ShippedFile, ...]
    reread: int = 0

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)

    @cached_property
    def digest(self) -> str:
        """sha256 (hex) over names, exec bits and contents; equal for equal content anywhere."""
        return listing_digest(self.files)

    @cached_property
    def paths(self) -> frozenset[str]:
        """The paths of all files."""
        return frozenset(file.path for file in self.files)


def listing_digest(files: Iterable[ShippedFile]) -> str:
    """The digest, format 1, of files in any order."""
    digest = hashlib.sha256(f"{DIGEST_FORMAT}\n".encode())
    for file in sorted(files, key=lambda file: file.path.encode()):
        mark = "x" if file.executable else "-"
        digest.update(f"{file.sha256} {file.size} {mark} {file.path}\n".encode())
    return digest.hexdigest()
