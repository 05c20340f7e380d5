"""Where the files of a run lie in Cloud Storage, and where the container finds them.

Every bucket that the job's service account can read is mounted on all nodes: ``gs://b/p`` is ``/gcs/b/p`` there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.places import Places, output_places, unusable_places
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import Path

SCHEME = "gs://"
MOUNT = "/gcs/"
FOLDERS = {
    "CLOUDTRAIN_CHECKPOINT_DIR": "checkpoints",
    "CLOUDTRAIN_MODEL_DIR": "model",
    "CLOUDTRAIN_OUTPUT_DIR": "output",
    "CLOUDTRAIN_METRICS_DIR": "metrics",
}
"""Variable -> folder of the run; model/ is also where the service's own AIP_MODEL_DIR points."""

_BUCKET = re.compile(r"[a-z0-9]([a-z0-9._-]{,220}[a-z0-9])?")


def mounted(uri: str) -> str:
    """The path of a gs:// URI on every node."""
    return MOUNT + uri.removeprefix(SCHEME)


def folder_variables(job: Job, places: Places) -> dict[str, str]:
    """The variables that say where data and results lie, as gs:// URIs: the launcher knows where those are mounted."""
    data = {f"CLOUDTRAIN_DATA_{name.upper()}": channel.uri_for("vertex") or "" for name, channel in job.data.items()}
    named = output_places(job, "vertex", places.run)
    outputs = {f"CLOUDTRAIN_OUTPUT_{name.upper()}": uri for name, uri in named.items()}
    ours = {variable: f"{places.run}{folder}/" for variable, folder in FOLDERS.items()}
    return {**data, **outputs, **ours, "CLOUDTRAIN_CHECKPOINT_DIR": places.checkpoints}


def place_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Data, outputs and checkpoints that have no place here, or none that a node could open."""
    return unusable_places(job, "vertex", f"{SCHEME}bucket/folder/", flaw_of)


def flaw_of(uri: str, written: bool) -> str | None:
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
    if written and ":" in path:
        return f"{shown(uri)} must hold no colon: files are written below it, and paths with colons break many tools"
    return None
