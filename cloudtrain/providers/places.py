"""Places: those that a job names for data, outputs and checkpoints, and those of a run's own files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from cloudtrain import plugins
from cloudtrain.providers import registry
from cloudtrain.providers.base import at_value
from cloudtrain.spec.fields import for_provider, is_local
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.settings import Settings
    from cloudtrain.spec.fields import PerProvider, Provider
    from cloudtrain.spec.problems import Path


class Places(NamedTuple):
    """Where the files of a run lie in a store: URIs of folders, each with a slash at its end."""

    code: str
    """Shared by all runs with equal code."""
    run: str
    """All that the run writes: a folder for each attempt, or for each kind of result."""
    checkpoints: str

    @property
    def spec(self) -> str:
        return f"{self.run}spec/"


def store_of(settings: Settings) -> str:
    """URI of the folder under which cloudtrain keeps all in an account, with no slash at its end."""
    store: str = registry.declared_by(settings.provider, "account", "STORE")
    with plugins.guarded(settings.provider, "account.STORE"):
        return store.format_map(settings)


def places_of(job: Job, context: Context) -> Places:
    """Those of ``job``, which has been checked."""
    provider = cast("Provider", context.settings.provider)
    root = store_of(context.settings)
    run = f"{root}/runs/{context.run_id}/"
    kept = job.checkpoint.uri_for(provider)
    # Whatever lies in the folder is what a job goes on from, wanted or not: so every run has one of its own.
    checkpoints = f"{kept.rstrip('/')}/{context.run_id}/" if kept else f"{run}checkpoints/"
    return Places(f"{root}/code/{context.code}/", run, checkpoints)


def lying_here(job: Job, provider: str) -> dict[str, str]:
    """Channels that name a place for this machine and none for the provider -> that place. One place for all is none
    of this machine's."""
    name = cast("Provider", provider)
    found = {
        channel: given.uri_for("local")
        for channel, given in job.data.items()
        if isinstance(given.uri, Mapping) and given.uri_for(name) is None
    }
    return {channel: uri for channel, uri in found.items() if uri is not None}


def output_places(job: Job, provider: Provider, run: str) -> dict[str, str]:
    """Output -> its place: the one that the job names, or a folder beside the run. ``run`` ends with a slash."""
    return {name: uri or f"{run}outputs/{name}/" for name, uri in job.outputs_for(provider).items()}


FlawOf = Callable[[str, bool], "str | None"]
"""Why a place cannot be read, or with True written to; None if it can."""


def unusable_places(job: Job, provider: Provider, example: str, flaw_of: FlawOf) -> Iterator[tuple[Path, str]]:
    """Data, outputs and checkpoints that have no place with the provider, or one that it cannot use.

    Only data need one: what a job writes lies beside the run where it names none.
    """
    named: list[tuple[tuple[str, ...], PerProvider[str], bool]] = [
        *((("data", name, "uri"), channel.uri, False) for name, channel in job.data.items()),
        *((("outputs", name), place, True) for name, place in job.outputs.items()),
    ]
    if job.checkpoint.uri is not None:
        named.append((("checkpoint", "uri"), job.checkpoint.uri, True))
    for path, given, written in named:
        uri = for_provider(given, provider)
        if uri is None and not written:
            yield path, _homeless(path, given, provider, example)
        elif uri is not None and (flaw := flaw_of(uri, written) or _odd(uri)):
            yield at_value(path, given, provider), flaw


def _homeless(path: tuple[str, ...], given: PerProvider[str], provider: Provider, example: str) -> str:
    """Of a channel; one that lies on this machine has been given a place before (``localdata``)."""
    local = given.get("local") if isinstance(given, Mapping) else None
    hint = f"; or put the data at {shown(local)} here, to be sent with the job" if local and is_local(local) else ""
    return f"names no place for {provider}; give {'.'.join(path)}.{provider}, such as {example}{hint}"


_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"
_DOTS = r"://[^/]*/(?:.*/)?\.{1,2}(?:/|$)"
_LONGEST = 1000
"""Of the path in a bucket or container, in bytes: the names of objects have 1024 at most with all providers."""


def _odd(uri: str) -> str | None:
    """What names an object in a store, but no folder that all tools on the way and a node's file system would find."""
    if not uri.isprintable() and re.search(_CONTROL, uri):
        return f"{shown(uri)} holds a control character"
    if "/." in uri and re.search(_DOTS, uri):
        return f"{shown(uri)} has a . or .. step, which no store follows and every file system does"
    size = len(uri.partition("://")[2].partition("/")[2].encode())
    if size > _LONGEST:
        return f"has {size} bytes behind the bucket, at most {_LONGEST}: the names of the files below it count, too"
    return None
