"""Input channels: objects of S3 as files below /opt/ml/input/data on every node.

Objects are fetched once for a start of a job. In File mode every node gets copies; FastFile, which AWS mounts, is links
to what was fetched, which is read-only. ``ShardedByS3Key`` gives node i of n every n-th object, by the order of keys.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from cloudtrain.emulator.sagemaker import uris
from cloudtrain.providers.reading import entries, mappings, text

_AT_ONCE = 8


class DownloadError(Exception):
    """A channel cannot be filled; the text stands behind ``ClientError: Data download failed:``."""


class _File(NamedTuple):
    """An object, and where it lies in the channel's folder."""

    key: str
    path: str


class Channels:
    """All channels of one start of a job."""

    def __init__(self, native: Mapping[str, Any], s3: Any, cache: Path) -> None:
        """``cache``: an empty folder for what is fetched."""
        self._native = native
        self._s3 = s3
        self._cache = cache
        self._files: dict[str, list[_File]] = {}

    def fetch(self) -> None:
        """Bring the objects of all channels here. Raises DownloadError."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _, channel in mappings(self._native, "InputDataConfig"):
                name, place = text(channel, "ChannelName"), _place(channel)
                self._files[name] = list(self._listed(channel, place))
                for file in self._files[name]:
                    _refuse_tangled(file, place)
                # All of them, so that an error is the first one's.
                list(pool.map(lambda file, n=name, b=place.bucket: self._fetch(n, b, file), self._files[name]))

    def lay(self, node: int, groups: Sequence[str], root: Path) -> None:
        """Fill the channels of node ``node`` below ``root``; ``groups`` is every node's group of machines."""
        for _, channel in mappings(self._native, "InputDataConfig"):
            name, source = text(channel, "ChannelName"), channel["DataSource"]["S3DataSource"]
            named = entries(source, "InstanceGroupNames")
            takers = [taker for taker, group in enumerate(groups) if not named or group in named]
            if node not in takers:
                continue
            share = slice(None)
            if text(source, "S3DataDistributionType") == "ShardedByS3Key":
                share = slice(takers.index(node), None, len(takers))
            mode = text(channel, "InputMode") or text(self._native, "AlgorithmSpecification", "TrainingInputMode")
            self._lay(name, self._files[name][share], root / "opt/ml/input/data" / name, linked=mode == "FastFile")

    def _lay(self, name: str, files: list[_File], folder: Path, *, linked: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            source, target = self._cache / name / file.path, folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if linked:
                target.symlink_to(source)
            else:
                shutil.copyfile(source, target)

    def _listed(self, channel: Mapping[str, Any], place: uris.Place) -> Iterator[_File]:
        from botocore.exceptions import ClientError

        try:
            if text(channel, "DataSource", "S3DataSource", "S3DataType") == "ManifestFile":
                yield from self._of_manifest(place)
                return
            found = list(uris.objects(self._s3, place))
        except ClientError as error:
            raise DownloadError(f"Failed to download data. {place}: {_words(error)}") from error
        if not found:
            raise DownloadError(f"No S3 objects found under S3 URL {place}")
        yield from (_File(item.key, _inside(item.key, place)) for item in found if not item.key.endswith("/"))

    def _of_manifest(self, place: uris.Place) -> Iterator[_File]:
        """``[{"prefix": "s3://bucket/folder/"}, "path", ...]``: AWS's reference of S3DataSource."""
        body = self._s3.get_object(Bucket=place.bucket, Key=place.prefix)["Body"].read()
        try:
            first, *paths = json.loads(body)
            prefix = uris.Place.of(first["prefix"])
            if prefix.bucket != place.bucket or not all(isinstance(path, str) for path in paths):
                raise ValueError
        except (ValueError, TypeError, KeyError):
            raise DownloadError(f"{place} is no manifest of objects in its own bucket") from None
        yield from (_File(prefix.prefix + path, path) for path in paths)

    def _fetch(self, name: str, bucket: str, file: _File) -> None:
        from botocore.exceptions import ClientError

        target = self._cache / name / file.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as written:
                shutil.copyfileobj(self._s3.get_object(Bucket=bucket, Key=file.key)["Body"], written)
            target.chmod(0o444)
        except ClientError as error:
            raise DownloadError(f"Failed to download data. s3://{bucket}/{file.key}: {_words(error)}") from error
        except (OSError, ValueError) as error:  # a name that is too long, holds a NUL, or is a file's and a folder's
            raise DownloadError(f"Failed to download data. s3://{bucket}/{file.key}: {error}") from error


def _place(channel: Mapping[str, Any]) -> uris.Place:
    return uris.Place.of(text(channel, "DataSource", "S3DataSource", "S3Uri"))


def _inside(key: str, place: uris.Place) -> str:
    """S3 knows prefixes only: below ``a/b`` lies ``a/b/c`` as ``c``, and ``a/bc`` as ``bc``."""
    folder = place.prefix if place.prefix.endswith("/") else f"{place.prefix}/"
    if place.prefix and key.startswith(folder):
        return key[len(folder) :]
    return key[place.prefix.rfind("/") + 1 :]


def _refuse_tangled(file: _File, place: uris.Place) -> None:
    """Keys that are no paths. The service says so of // (generative-ai-on-amazon-sagemaker pull request 242); how it
    takes the others is not known."""
    steps = file.path.split("/")
    flaw = next((step for step in ("", ".", "..") if step in steps), None)
    if "//" in file.key or flaw is not None:
        sequence = "//" if "//" in file.key else f"/{flaw}"
        raise DownloadError(
            f"Failed to download data. S3 key: s3://{place.bucket}/{file.key} has an illegal char sub-sequence "
            f"'{sequence}' in it"
        )


def _words(error: Any) -> str:
    found = error.response["Error"]
    return f"{found['Code']}: {found['Message']}"
