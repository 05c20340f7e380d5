"""Providers by name. Each is a package with the same modules, loaded only where they are used.

translate.py      translate(job, context) -> Request, pure; raises JobFileError with all that the provider refuses
capabilities.py   CAPABILITIES: what becomes of every field of the job file
check.py          check(native) -> NativeCheck: the vendor's schema, and the rules that no schema holds
export.py         export(request) -> Export: the same job for the vendor's own command line
contract.py       node_contract(request, node) -> NodeContract: what a node finds there
client.py         connect(account) -> Client: the port to the service, see port.py
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from cloudtrain.catalog.tables import CLOUDS
from cloudtrain.errors import SpecError, did_you_mean
from cloudtrain.providers.base import NativeCheck
from cloudtrain.providers.features import client_notes, in_order, shared_notes
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Capability, Context, Export, NodeContract, Request
    from cloudtrain.providers.port import Client
    from cloudtrain.spec.fields import Provider

NAMES = CLOUDS
EXTRAS: Mapping[str, str] = {name: f"pip install 'cloudtrain[{name}]'" for name in NAMES}


LOCAL = "local"
"""This machine, as a provider that runs can be submitted to."""
_MODULES_OF_LOCAL = {"translate": "request", "client": "port"}
"""There the usual names are those of the simulated nodes' own modules."""


def known(name: str, *, local: bool = False) -> Provider:
    """``name``, if it is a provider's; ``local`` counts as one if asked. Raises SpecError."""
    names = (*NAMES, LOCAL) if local else NAMES
    if name not in names:
        raise SpecError(
            f"unknown provider {shown(name)}{did_you_mean(str(name), names) or '; known: ' + ', '.join(names)}"
        )
    return cast("Provider", name)


def translate(job: Job, context: Context) -> Request:
    """The request for the provider that the settings are of. Raises JobFileError with all that it refuses."""
    provider = known(context.settings.provider, local=True)
    request = cast("Request", _module(provider, "translate").translate(job, context))
    if provider == LOCAL:
        return request
    notes = (*shared_notes(job, provider), *client_notes(job, provider, capabilities(provider)))
    return request._replace(notes=(*request.notes, *notes))


def capabilities(provider: str) -> tuple[Capability, ...]:
    """What becomes of every field of the job file, in its order."""
    return in_order(_module(provider, "capabilities").CAPABILITIES)


def check(provider: str, native: Mapping[str, Any]) -> NativeCheck:
    """What the service would refuse in a native request, as far as it can be known offline."""
    if provider == LOCAL:
        return NativeCheck(())
    return cast("NativeCheck", _module(provider, "check").check(native))


def export(request: Request) -> Export:
    """Files and commands that submit the same job without cloudtrain."""
    return cast("Export", _module(request.provider, "export").export(request))


def node_contract(request: Request, node: int) -> NodeContract:
    """What node ``node`` finds in its container."""
    return cast("NodeContract", _module(request.provider, "contract").node_contract(request, node))


def connect(provider: str, account: Mapping[str, str]) -> Client:
    """The port to a provider; ``account`` as in ``Request.account``. Loads the vendor's SDK. Raises MissingError."""
    return cast("Client", _module(provider, "client").connect(account))


def _module(provider: str, name: str) -> Any:
    if provider == LOCAL:
        name = _MODULES_OF_LOCAL[name]
    return import_module(f"cloudtrain.providers.{known(provider, local=True)}.{name}")
