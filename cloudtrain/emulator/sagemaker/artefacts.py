"""What a job leaves: /opt/ml/model and /opt/ml/output/data of all nodes, merged, at ``<S3OutputPath>/<job>/output/``.

As archives, or, with ``CompressionType: NONE``, file by file. Of files that several nodes have under one name the first
node's is kept: nobody knows which one AWS keeps. What nobody has written is not uploaded.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cloudtrain.emulator.sagemaker.uris import Place
from cloudtrain.providers.reading import text

_FOLDERS = {"model": "opt/ml/model", "output": "opt/ml/output/data"}


class UploadError(Exception):
    """Something cannot be uploaded; the text stands behind ``ClientError: Artifact upload failed:``."""


def upload(native: Mapping[str, Any], s3: Any, roots: Sequence[Path], scratch: Path) -> str:
    """Upload what the nodes below ``roots`` have left. Returns where the model is. Raises UploadError."""
    from boto3.exceptions import S3UploadFailedError
    from botocore.exceptions import BotoCoreError, ClientError

    place = Place.of(text(native, "OutputDataConfig", "S3OutputPath")).folder
    place = place._replace(prefix=f"{place.prefix}{text(native, 'TrainingJobName')}/output/")
    as_files = text(native, "OutputDataConfig", "CompressionType") == "NONE"
    try:
        for kind, below in _FOLDERS.items():
            files = _merged([root / below for root in roots if _is_own(root, below)])
            if as_files:
                _upload_files(s3, place, kind, files)
            elif files:
                _upload_archive(s3, place, kind, files, scratch)
    except (BotoCoreError, ClientError, S3UploadFailedError, OSError, UnicodeError) as error:
        raise UploadError(f"Unable to upload file to {place} ({error})") from error
    return f"{place}model/" if as_files else f"{place}model.tar.gz"


def _is_own(root: Path, below: str) -> bool:
    """Whether the folder is still the node's: a script may have put a link in its place, and that may lead anywhere on
    this machine."""
    return (root / below).resolve() == root.resolve() / below


def _merged(folders: Sequence[Path]) -> dict[str, Path]:
    """Path in the archive -> file, the first node's where there are several."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in _below(folder):
            found.setdefault(path.relative_to(folder).as_posix(), path)
    return dict(sorted(found.items()))


def _below(folder: Path) -> Iterator[Path]:
    """Files and links; no sockets or pipes."""
    for parent, folders, names in os.walk(folder):
        paths = [Path(parent, name) for name in [*folders, *names]]
        yield from (path for path in paths if path.is_symlink() or path.is_file())


def _upload_archive(s3: Any, place: Place, kind: str, files: Mapping[str, Path], scratch: Path) -> None:
    archive = scratch / f"{kind}.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        for name, path in files.items():
            tar.add(path, name, recursive=False)
    s3.upload_file(str(archive), place.bucket, f"{place.prefix}{archive.name}")
    archive.unlink()


def _upload_files(s3: Any, place: Place, kind: str, files: Mapping[str, Path]) -> None:
    for name, path in files.items():
        if path.is_file():
            s3.upload_file(str(path), place.bucket, f"{place.prefix}{kind}/{name}")
