"""Where the files of a run lie in Cloud Storage, and where the container finds them.

Every bucket that the job's service account can read is mounted on all nodes: ``gs://b/p`` is ``/gcs/b/p`` there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from cloudtrain.providers.places import unusable_places
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.spec.problems import Path

SCHEME = "gs://"
MOUNT = "/gcs/"

_BUCKET = re.compile(r"[a-z0-9]([a-z0-9._-]{,220}[a-z0-9])?")


class Places(NamedTuple):
    """Folders as gs:// URIs, each with a slash at its end."""

    code: str
    """Shared by all runs with equal code."""
    run: str
    """All that the run writes; also the request's baseOutputDirectory, so that AIP_MODEL_DIR is our model folder."""
    checkpoints: str

    @property
    def spec(self) -> str:
        return f"{self.run}spec/"


def places_of(job: Job, context: Context) -> Places:
    """Where this run's files lie. The job has been checked."""
    root = f"{SCHEME}{context.settings['bucket']}/{context.settings['prefix']}"
    run = f"{root}/runs/{context.run_id}/"
    kept = job.checkpoint.uri_for("vertex")
    checkpoints = f"{kept.rstrip('/')}/{context.run_id}/" if kept else f"{run}checkpoints/"
    return Places(f"{root}/code/{context.code}/", run, checkpoints)


def mounted(uri: str) -> str:
    """The path of a gs:// URI on every node."""
    return MOUNT + uri.removeprefix(SCHEME)


def folder_variables(job: Job, places: Places) -> dict[str, str]:
    """The variables that say where data and results lie, as gs:// URIs: the launcher knows where those are mounted."""
    data = {f"CLOUDTRAIN_DATA_{name.upper()}": channel.uri_for("vertex") or "" for name, channel in job.data.items()}
    outputs = {f"CLOUDTRAIN_OUTPUT_{name.upper()}": uri or "" for name, uri in job.outputs_for("vertex").items()}
    return {
        **data,
        **outputs,
        "CLOUDTRAIN_CHECKPOINT_DIR": places.checkpoints,
        "CLOUDTRAIN_MODEL_DIR": f"{places.run}model/",
        "CLOUDTRAIN_OUTPUT_DIR": f"{places.run}output/",
        "CLOUDTRAIN_METRICS_DIR": f"{places.run}metrics/",
    }


def place_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Data, outputs and checkpoints that have no place here, or none that a node could open."""
    example = f"{SCHEME}bucket/folder/"
    return unusable_places(job, "vertex", example, lambda uri, writes: flaw_of(uri, writes=writes))


def flaw_of(uri: str, *, writes: bool = False) -> str | None:
    """Why a node could not open ``uri`` as a folder; None if it could."""
    if not uri.startswith(SCHEME):
        mounted_form = f", such as {SCHEME}{uri[len(MOUNT) :]}" if uri.startswith(MOUNT) else ""
        return f"must be a gs:// URI{mounted_form}, not {shown(uri)}: Vertex AI mounts Cloud Storage buckets alone"
    bucket, _, path = uri.removeprefix(SCHEME).partition("/")
    if not _BUCKET.fullmatch(bucket):
        return f"{shown(bucket)} is no bucket: up to 222 of a-z 0-9 . _ -, a letter or digit first and last"
    steps = path.removesuffix("/").split("/") if path else []
    if any(step in ("", ".", "..") for step in steps):
        return f"{shown(uri)} has an empty, . or .. step, which a mounted bucket cannot show"
    if "*" in path:
        return f"{shown(uri)} must name one folder: * is not expanded"
    if writes and ":" in path:
        return f"{shown(uri)} must hold no colon: files are written below it, and paths with colons break many tools"
    return None
