"""What comes before a local run: everything that can be found wrong, then the run's folder filled.

``Ready.of`` looks and makes nothing; ``share_out_objects`` writes into the run's own folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cloudtrain.bundle import Bundle, bytes_text
from cloudtrain.errors import MissingError, SpecError
from cloudtrain.job import Job
from cloudtrain.providers.local.devices import visible_gpus
from cloudtrain.providers.local.links import lay_share, objects_of, too_few
from cloudtrain.providers.local.options import LocalOptions
from cloudtrain.providers.local.translate import Machine, check, data_folder, shared_gpus
from cloudtrain.providers.shipping import bundle_of
from cloudtrain.record.folder import RunFolder
from cloudtrain.spec.fields import is_local


@dataclass(frozen=True)
class Ready:
    """A job that can be run here, and what was found out about it on the way."""

    bundle: Bundle
    secrets: dict[str, str]
    """Variable -> value; never written down."""
    earlier: RunFolder | None
    """The run to continue from."""
    machine: Machine

    @classmethod
    def of(cls, job: Job, options: LocalOptions, bundle: Bundle | None = None) -> Ready:
        """Look at everything; the code is the job's unless ``bundle`` is given. Raises JobFileError, SpecError or
        MissingError; nothing has been made then."""
        check(job, options)
        bundle = bundle or bundle_of(job)
        secrets = check_here(job, options)
        earlier = _earlier(job, options.resume) if options.resume else None
        machine = Machine(len(_affinity()), tuple(visible_gpus(os.environ)))
        shared_gpus(job, options, machine)
        return cls(bundle, secrets, earlier, machine)


def _affinity() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def check_here(job: Job, options: LocalOptions) -> dict[str, str]:
    """Raise SpecError or MissingError for data and secrets that are not here; returns the secrets."""
    for name in job.data:
        path = data_folder(job, name, options.data)
        if not path.exists():
            hint = f"put the data there, or give --data {name}=PATH"
            raise SpecError(f"data.{name}: {path} is not there", hint=hint)
    return _secrets(job)


def _secrets(job: Job) -> dict[str, str]:
    values = {}
    for name, reference in job.environment.secrets_for("local").items():
        if reference is None:
            hint = f"give one, such as  {name}: {{local: env:{name}}}"
            raise SpecError(f"environment.secrets.{name} has no local source", hint=hint)
        variable = reference.removeprefix("env:")
        if variable not in os.environ:
            raise MissingError(f"environment.secrets.{name}: the variable {variable} is not set in this shell")
        values[name] = os.environ[variable]
    return values


def _earlier(job: Job, run_id: str) -> RunFolder:
    folder = RunFolder.find(job.folder, run_id, job.name)
    if folder.is_followed():
        raise SpecError(f"run {folder.run_id} is still going on", hint="stop it, or wait for its end, and resume then")
    return folder


def checkpoint_folder(job: Job, folder: RunFolder, earlier: RunFolder | None) -> Path:
    """Where this run's checkpoints are: those of the run it continues, the job's place (a folder a run), or its own."""
    if earlier is not None:
        return Path(str(earlier.read_state().get("checkpoints") or earlier.path / "checkpoints"))
    uri = job.checkpoint.uri_for("local")
    if uri is None or not is_local(uri):
        return folder.path / "checkpoints"
    return job.folder / uri.removeprefix("file://") / folder.run_id


def share_out_objects(job: Job, options: LocalOptions, folder: RunFolder, nodes: int) -> list[str]:
    """``shard: by-object``: every node gets each N-th file of the channel, as links. Returns what to tell the user."""
    notes: list[str] = []
    for name, channel in job.data.items():
        if channel.shard != "by-object":
            continue
        source = data_folder(job, name, options.data)
        files = objects_of(source)
        notes += too_few(name, len(files), nodes)
        for node in range(nodes):
            lay_share(folder.node(node) / "data" / name, source, files[node::nodes])
    return notes


def channels_in_bundle(job: Job, options: LocalOptions, bundle: Bundle) -> list[str]:
    """What to say of data that ships a second time, as code."""
    notes = []
    for name in job.data:
        path = data_folder(job, name, options.data).resolve()
        inside = [file for file in bundle.files if (bundle.folder / file.path).is_relative_to(path)]
        if inside and path != bundle.folder:
            size = bytes_text(sum(file.size for file in inside))
            where = path.relative_to(bundle.folder).as_posix()
            notes.append(f"data.{name} ({size}) ships as code, too; add /{where} to .cloudtrainignore")
    return notes


def worth_preloading(job: Job) -> list[str]:
    """What every rank would import a moment later: any optimizer of torch pulls in dynamo, a second or two."""
    if job.task:
        return ["torch._dynamo"]
    if job.entry:
        source = (job.code_folder / job.entry).read_bytes()
        return ["torch._dynamo"] if b"optim" in source and b"torch" in source else []
    return []
