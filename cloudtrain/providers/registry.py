"""Providers by name. Each is a package with the same modules, loaded only where they are used.

translate.py      translate(job, context) -> Request, pure; raises JobFileError with all that the provider refuses
capabilities.py   CAPABILITIES: what becomes of every field of the job file
check.py          check(native) -> NativeCheck: the vendor's schema, and the rules that no schema holds
export.py         export(request) -> Export: the same job for the vendor's own command line
contract.py       node_contract(request, node) -> NodeContract: what a node finds there
client.py         connect(account) -> Client: the port to the service, see port.py
account.py        STORE and ACCOUNT: what of the settings says where files lie and whom a call is for

Providers of other packages (``cloudtrain.plugins``) have the same modules, and their settings in account.py, KEYS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cloudtrain import plugins
from cloudtrain.catalog.tables import CLOUDS
from cloudtrain.errors import SpecError, did_you_mean
from cloudtrain.providers.base import Capability, Export, NativeCheck, NodeContract, Request
from cloudtrain.providers.features import client_notes, in_order, shared_notes, unbounded_cost
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.providers.port import Client
    from cloudtrain.spec.fields import Provider

T = TypeVar("T")

NAMES = CLOUDS
EXTRAS: Mapping[str, str] = {name: f"pip install 'cloudtrain[{name}]'" for name in NAMES}


LOCAL = "local"
"""This machine, as a provider that runs can be submitted to."""
_MODULES_OF_LOCAL = {"translate": "request", "client": "port"}
"""There the usual names are those of the simulated nodes' own modules."""


def known(name: str, *, local: bool = False, ours: bool = False) -> Provider:
    """``name``, if it is a provider's; ``local`` counts as one if asked, with ``ours`` none of another package does.

    Raises SpecError.
    """
    names = (*NAMES, LOCAL) if local else NAMES
    if name in names or (not ours and isinstance(name, str) and plugins.knows(name)):
        return cast("Provider", name)
    if not ours:
        names = (*names, *plugins.names())
    raise SpecError(f"unknown provider {shown(name)}{did_you_mean(str(name), names) or '; known: ' + ', '.join(names)}")


def every() -> Iterator[str]:
    """The clouds, ours first; looks for those of other packages only when ours have been taken."""
    yield from NAMES
    yield from plugins.names()


def translate(job: Job, context: Context) -> Request:
    """The request for the provider that the settings are of. Raises JobFileError with all that it refuses."""
    provider = known(context.settings.provider, local=True)
    request = _made(Request, provider, "translate", "translate", job, context)
    if provider == LOCAL:
        return request
    if provider not in NAMES:
        _refuse_misnamed(request, context)
    warnings = tuple(unbounded_cost(job))
    notes = (*shared_notes(job, provider), *client_notes(job, provider, capabilities(provider)), *warnings)
    return request._replace(notes=(*request.notes, *notes), warnings=(*request.warnings, *warnings))


def capabilities(provider: str) -> tuple[Capability, ...]:
    """What becomes of every field of the job file, in its order."""
    declared = declared_by(provider, "capabilities", "CAPABILITIES")
    with plugins.guarded(provider, "its CAPABILITIES are none"):
        return in_order(declared)


def check(provider: str, native: Mapping[str, Any]) -> NativeCheck:
    """What the service would refuse in a native request, as far as it can be known offline."""
    if provider == LOCAL:
        return NativeCheck(())
    return _made(NativeCheck, provider, "check", "check", native)


def export(request: Request) -> Export:
    """Files and commands that submit the same job without cloudtrain. Raises SpecError where there is no such way."""
    provider = known(request.provider)
    if provider not in NAMES and not plugins.has(provider, "export", "export"):
        raise SpecError(f"{provider} has no command line of its own that {plugins.package(provider)} knows")
    return _made(Export, provider, "export", "export", request)


def node_contract(request: Request, node: int) -> NodeContract:
    """What node ``node`` finds in its container."""
    return _made(NodeContract, request.provider, "contract", "node_contract", request, node)


def connect(provider: str, account: Mapping[str, str]) -> Client:
    """The port to a provider; ``account`` as in ``Request.account``. Loads the vendor's SDK. Raises MissingError."""
    made = _called(provider, "client", "connect", account)
    if provider in (*NAMES, LOCAL):
        return cast("Client", made)
    from cloudtrain.providers.port import PROMISED

    return cast("Client", plugins.GuardedClient(provider, made, PROMISED))


def declared_by(provider: str, module: str, name: str) -> Any:
    """What the provider's module holds under that name."""
    if known(provider, local=True) not in (*NAMES, LOCAL):
        return plugins.value(provider, module, name)
    if provider == LOCAL:
        module = _MODULES_OF_LOCAL[module]
    return getattr(import_module(f"cloudtrain.providers.{provider}.{module}"), name)


def _called(provider: str, module: str, function: str, *arguments: Any) -> Any:
    if known(provider, local=True) not in (*NAMES, LOCAL):
        return plugins.called(provider, module, function, *arguments)
    return declared_by(provider, module, function)(*arguments)


def _made(kind: type[T], provider: str, module: str, function: str, *arguments: Any) -> T:
    """What the provider's function returns, which must be of that kind."""
    made = _called(provider, module, function, *arguments)
    if not isinstance(made, kind):
        raise plugins.broken(provider, f"{function} returned {shown(made)}, not a {kind.__name__}")
    return made


def _refuse_misnamed(request: Request, context: Context) -> None:
    """The ledger finds the provider and the attempt by these."""
    provider, ending = context.settings.provider, f"-a{context.attempt}"
    if request.provider != provider:
        raise plugins.broken(provider, f"translate made a request for {shown(request.provider)}")
    if not request.name.endswith(ending):
        raise plugins.broken(provider, f"translate named the request {shown(request.name)}, which must end in {ending}")
