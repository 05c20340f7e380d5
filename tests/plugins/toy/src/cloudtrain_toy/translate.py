"""From a job to what the toy's service takes: job.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from cloudtrain.providers.base import Request, Shipped, refuse
from cloudtrain.providers.features import refusals
from cloudtrain.providers.identity import fingerprint, native_name
from cloudtrain.providers.nodes import FINGERPRINT, launch_spec, launcher_channels, node_variables
from cloudtrain.providers.overrides import overridden
from cloudtrain.providers.places import Places, output_places, places_of, unusable_places
from cloudtrain.providers.shipping import ARCHIVE, SPEC
from cloudtrain_toy.account import ACCOUNT
from cloudtrain_toy.capabilities import CAPABILITIES

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.spec.fields import Provider
    from cloudtrain.spec.problems import Path

TOY = cast("Provider", "toy")
_FOLDERS = ("model", "output", "metrics")


def translate(job: Job, context: Context) -> Request:
    """The request for one attempt. Raises JobFileError with all that a toy cannot do."""
    refuse(job, (*refusals(job, TOY, CAPABILITIES), *unusable_places(job, TOY, "file:///data/", _flaw_of)))
    places = places_of(job, context)
    spec = launch_spec(job, context, channels=launcher_channels(job, downloads=True))
    native = overridden(job, TOY, _native(job, context, places), _lost)
    native["variables"][FINGERPRINT] = fingerprint(native, spec)
    return Request(
        provider=TOY,
        name=native_name(context.run_id, context.attempt),
        native=native,
        spec=spec,
        ships=(Shipped("code", places.code), Shipped("spec", places.spec)),
        account={name: context.settings[name] for name in ACCOUNT},
    )


def path_of(uri: str) -> str:
    """The path that a ``file://`` URI names."""
    return uri.removeprefix("file://").rstrip("/")


def _native(job: Job, context: Context, places: Places) -> dict[str, Any]:
    code = path_of(places.code)
    variables = node_variables(
        job,
        context,
        TOY,
        spec=f"{path_of(places.spec)}/{SPEC}",
        code=f"{code}/{ARCHIVE}",
        further=dict(_folders(job, places)),
    )
    return {
        "name": native_name(context.run_id, context.attempt),
        "nodes": job.resources.nodes,
        "code": code,
        "variables": variables,
    }


def _folders(job: Job, places: Places) -> Iterator[tuple[str, str]]:
    for name, channel in job.data.items():
        yield f"CLOUDTRAIN_DATA_{name.upper()}", path_of(channel.uri_for(TOY) or "")
    for name, uri in output_places(job, TOY, places.run).items():
        yield f"CLOUDTRAIN_OUTPUT_{name.upper()}", path_of(uri)
    for name in _FOLDERS:
        yield f"CLOUDTRAIN_{name.upper()}_DIR", path_of(f"{places.run}{name}")
    yield "CLOUDTRAIN_CHECKPOINT_DIR", path_of(places.checkpoints)


def _flaw_of(uri: str, _written: bool) -> str | None:
    return None if uri.startswith("file:///") else f"{uri!r} is no folder of this machine, such as file:///data/"


def _lost(made: Mapping[str, Any], merged: Mapping[str, Any]) -> Iterable[tuple[Path, str]]:
    """What overrides must leave as it is."""
    for name in ("name", "code"):
        if merged.get(name) != made[name]:
            yield ("overrides", "toy", name), "is cloudtrain's own"
