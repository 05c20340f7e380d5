"""A node's results where the provider does not take them itself: copied to their place when the workers have ended.

After a failure and a preemption, too, as far as the time goes: what was measured until then is worth having. A job that
was preempted goes on in the same folders, so what it then measures is put behind that.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Mapping
from typing import Any, Callable

from cloudtrain_launch import aws, objects
from cloudtrain_launch.cluster import Cluster
from cloudtrain_launch.errors import LaunchError

_METRICS = "CLOUDTRAIN_METRICS_DIR"


def check(cluster: Cluster, env: Mapping[str, str]) -> None:
    """Before the training: whether every target can be delivered to at all."""
    for variable, target in cluster.deliveries.items():
        _copier(variable, cluster.folders[variable], target, env)


def run(env: Mapping[str, str], cluster: Cluster) -> dict[str, Any]:
    """Deliver everything, and what can be delivered if something cannot. Returns ``{"error": text}`` then."""
    errors = []
    for variable, target in cluster.deliveries.items():
        folder = cluster.folders[variable]
        if not os.path.isdir(folder):  # the script's own doing, and no reason to call a training failed
            print(f"{_name(variable)}: nothing is delivered to {target}, its folder is gone", flush=True)
            continue
        try:
            keys = objects.keys(folder, _name(variable))
            objects.for_each(keys, _copier(variable, folder, target, env))
        except Exception as error:  # noqa: BLE001 - the client's own errors are many, and the other results are to go
            errors.append(f"{_name(variable)} could not be delivered to {target}: {error}")
            continue
        if keys:
            print(f"{_name(variable)}: {len(keys)} files delivered to {target}", flush=True)
    return {"error": "; ".join(errors)} if errors else {}


def _name(variable: str) -> str:
    """As the job file has it."""
    if variable == _METRICS:
        return "metrics"
    return "outputs." + variable[len("CLOUDTRAIN_OUTPUT_") :].lower()


def _copier(variable: str, source: str, target: str, env: Mapping[str, str]) -> Callable[[str], None]:
    """A function that takes the file with a key in ``source`` to ``target``."""
    scheme, _, rest = target.partition("://")
    if scheme == "s3" and rest:
        return _to_s3(source, rest, aws.client("s3", _name(variable), env))
    folder = rest if scheme == "file" else target
    if not os.path.isabs(folder):
        raise LaunchError(f"{variable} is {target!r}; results are delivered to s3://bucket/path, file:// or a path")

    def to_folder(key: str) -> None:
        here, place = os.path.join(source, key), os.path.join(folder, key)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if not os.path.exists(place):
            shutil.copyfile(here, place)
            return
        if variable == _METRICS and key.endswith(".jsonl"):
            _put_before(place, here)
        _replace(here, place)

    return to_folder


def _replace(here: str, place: str) -> None:
    """What is at ``place`` stays whole until the new file is: a full disk, or the end of the time, may come between."""
    new = os.path.join(os.path.dirname(place), f".cloudtrain-{uuid.uuid4().hex}")
    try:
        shutil.copyfile(here, new)
        os.replace(new, place)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


def _put_before(earlier: str, path: str) -> None:
    """Here and not where ``earlier`` lies: object stores take no appending."""
    joined = path + ".joined"
    shutil.copyfile(earlier, joined)
    with open(joined, "ab") as file, open(path, "rb") as new:
        shutil.copyfileobj(new, file)
    os.replace(joined, path)


def _to_s3(source: str, target: str, client: Any) -> Callable[[str], None]:
    bucket, _, prefix = target.partition("/")
    prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""

    def to_s3(key: str) -> None:
        client.upload_file(os.path.join(source, key), bucket, prefix + key)

    return to_s3
