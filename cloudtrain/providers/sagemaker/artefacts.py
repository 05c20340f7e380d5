"""What a job has left in S3: two archives that the service makes, the checkpoints, and the outputs that have names.

The service puts ``model.tar.gz`` and ``output.tar.gz`` below ``<S3OutputPath>/<job>/output/``; with CompressionType
NONE the files themselves lie there, in ``model/`` and ``output/``. launch.py leaves the metrics in the output folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from cloudtrain.providers.landing import landing
from cloudtrain.providers.port import Artefact, Progress
from cloudtrain.providers.reading import section, text
from cloudtrain.providers.sagemaker.archive import unpack
from cloudtrain.providers.sagemaker.download import download
from cloudtrain.providers.sagemaker.environment import OUTPUT
from cloudtrain.providers.sagemaker.places import SCHEME, folder
from cloudtrain.providers.sagemaker.s3 import Stored, stored
from cloudtrain.record.folder import cannot_write

METRICS = "metrics/"
"""Folder of the metrics in that of the output."""
_FILE, _ARCHIVE = "file", "archive"
"""How a source begins: the object is the artefact, or an archive that holds it."""


def artefacts(s3: Any, found: Mapping[str, Any], region: str) -> Iterator[Artefact]:
    """All of one job; ``found`` is the answer to DescribeTrainingJob."""
    results = text(found, "OutputDataConfig", "S3OutputPath")
    if results.startswith(SCHEME):
        own = f"{folder(results)}{text(found, 'TrainingJobName')}/output/"
        for there in stored(s3, own, region):
            yield from _result(there)
        yield from _model_elsewhere(s3, text(found, "ModelArtifacts", "S3ModelArtifacts"), own, region)
    for kind, uri in _folders(found):
        for there in stored(s3, uri, region):
            yield _file(kind, there.path, there)


def fetch(s3: Any, artefact: Artefact, into: Path, region: str, progress: Progress) -> None:
    """See ``Client.fetch``."""
    how, _, uri = artefact.source.partition(" ")
    try:
        into.mkdir(parents=True, exist_ok=True)
        if how == _FILE:
            with landing(into, artefact.path) as file:
                download(s3, uri, file, region, progress)
        else:
            with tempfile.TemporaryFile(dir=into, prefix=".cloudtrain-") as archive:
                download(s3, uri, archive, region, progress)
                _unpack(archive, artefact.kind, into, uri)
    except OSError as error:
        raise cannot_write(error, into) from error


def _unpack(archive: IO[bytes], kind: str, into: Path, uri: str) -> None:
    """The part of an archive that is of this kind."""

    def renamed(name: str) -> str | None:
        of_metrics = f"{name}/".startswith(METRICS)
        if kind == "metrics":
            return name.removeprefix(METRICS.rstrip("/")).removeprefix("/") or None if of_metrics else None
        return None if kind == "output" and of_metrics else name

    archive.seek(0)
    unpack(archive, into, renamed, uri)


def _result(there: Stored) -> Iterator[Artefact]:
    """What the service has put below the job's own folder."""
    top, _, rest = there.path.partition("/")
    if there.path == "model.tar.gz":
        yield Artefact("model", there.path, there.size, f"{_ARCHIVE} {there.uri}")
    elif there.path == "output.tar.gz":
        yield Artefact("output", there.path, there.size, f"{_ARCHIVE} {there.uri}")
        # Whether there are any is not known before; the archive has been counted already.
        yield Artefact("metrics", there.path, -1, f"{_ARCHIVE} {there.uri}")
    elif top == "output" and rest.startswith(METRICS):
        yield _file("metrics", rest.removeprefix(METRICS), there)
    elif top in ("model", "output") and rest:
        yield _file(top, rest, there)


def _model_elsewhere(s3: Any, uri: str, own: str, region: str) -> Iterator[Artefact]:
    """The model where the service says that it is, if that is not below the job's own folder."""
    if not uri.startswith(SCHEME) or uri.startswith(own):
        return
    parent, _, name = uri.rstrip("/").rpartition("/")
    for there in stored(s3, uri if uri.endswith("/") else parent, region):
        if uri.endswith("/"):
            yield _file("model", there.path, there)
        elif there.path == name:
            yield Artefact("model", name, there.size, f"{_ARCHIVE} {there.uri}")


def _folders(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and URI of what is written as it is: while the job runs, too."""
    if (checkpoints := text(found, "CheckpointConfig", "S3Uri")).startswith(SCHEME):
        yield "checkpoints", checkpoints
    for name, uri in section(found, "Environment").items():
        if name.startswith(OUTPUT) and isinstance(uri, str) and uri.startswith(SCHEME):
            yield f"outputs/{_name(name.removeprefix(OUTPUT), uri)}", uri


def _name(variable: str, uri: str) -> str:
    """The output's name. The variable has it in capitals; the folder beside the run is called by it."""
    last = uri.rstrip("/").rpartition("/")[2]
    return last if last.upper() == variable else variable.lower()


def _file(kind: str, path: str, there: Stored) -> Artefact:
    return Artefact(kind, path, there.size, f"{_FILE} {there.uri}")
