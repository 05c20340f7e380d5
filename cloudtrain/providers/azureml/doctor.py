"""What ``cloudtrain doctor`` asks of Azure: the workspace, its datastore, its compute, the quota."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.errors import CloudtrainError, UnreachableError
from cloudtrain.providers.azureml.credentials import credential_for
from cloudtrain.providers.azureml.endpoints import EMULATOR, Endpoints, endpoints
from cloudtrain.providers.questions import NO_JOB, Check, Question, Signed, Unknown
from cloudtrain.providers.reading import at, entries, section, text
from cloudtrain.settings import Settings

if TYPE_CHECKING:
    from cloudtrain.providers.azureml.workspace import Workspace

_VARIABLES = ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "IDENTITY_ENDPOINT", "MSI_ENDPOINT", EMULATOR)
_LOGINS = ("msal_token_cache.json", "msal_token_cache.bin", "azureProfile.json")
_CONNECT_SECONDS, _READ_SECONDS, _TRIES = 3.0, 8.0, 2
_NAMES = ("upn", "unique_name", "preferred_username", "appid", "oid")
"""Of a token's claims, whose it is, the plainest first."""


class Azure(NamedTuple):
    """Who asks, and where."""

    endpoints: Endpoints
    credential: Any
    account: Mapping[str, str]

    def workspace(self) -> Workspace:
        """For one thread."""
        from cloudtrain.providers.azureml.calls import Caller, Patience
        from cloudtrain.providers.azureml.workspace import Workspace

        def caller(credential: Any = None, scope: str = "") -> Caller:
            return Caller(credential, scope, Patience(_TRIES), (_CONNECT_SECONDS, _READ_SECONDS))

        return Workspace(self.account, self.endpoints, self.credential, caller)


def traces() -> Iterator[str]:
    """See ``check.Doctor``."""
    yield from (name for name in _VARIABLES if os.environ.get(name))
    folder = Path(os.environ.get("AZURE_CONFIG_DIR") or "~/.azure").expanduser()
    yield from (str(folder / name) for name in _LOGINS if (folder / name).is_file())


def load() -> None:
    """azure-ai-ml, with which jobs are made, takes seconds to load; here it is only looked for."""
    for name in ("azure.core.pipeline.transport", "azure.identity", "cloudtrain.providers.azureml.store"):
        import_module(name)
    if find_spec("azure.ai.ml") is None:
        raise ImportError("azure-ai-ml is missing")


def sign_in(settings: Settings) -> Signed:
    """azure-identity's own chain, and one token, of which the name in it is shown and nothing else."""
    where = endpoints(os.environ)
    account = {name: settings[name] for name in ("subscription", "resource_group", "workspace")}
    if where.emulated:
        check = Check("credentials", "ok", f"none are needed: Azure ML is emulated at {where.arm} ({EMULATOR})")
        return Signed((check,), Azure(where, credential_for(where), account))
    from cloudtrain.providers.azureml.errors import translated

    credential = credential_for(where)
    with translated("ask Azure ML anything"):
        token = credential.get_token(where.scope).token
    used = type(getattr(credential, "_successful_credential", None) or credential).__name__
    check = Check("credentials", "ok", f"{_whose(token)}, by azure-identity's {used}")
    return Signed((check,), Azure(where, credential, account))


def _whose(token: str) -> str:
    """A token is header.claims.signature. What cannot be read says nothing."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, LookupError):
        return "somebody whom the token does not name"
    return next((name for key in _NAMES if (name := text(claims, key))), "somebody whom the token does not name")


def questions(settings: Settings, caller: Any, native: Mapping[str, Any] | None) -> Sequence[Question]:
    """See ``check.Doctor``."""
    azure: Azure = caller
    needed = ("subscription", "resource_group", "workspace")
    return (
        Question("workspace", lambda: _workspace(azure), needed),
        Question("jobs", lambda: _jobs(azure), needed),
        Question("datastore", lambda: _datastore(azure, settings["datastore"]), needed),
        Question("files", lambda: _files(azure, settings["datastore"]), needed),
        Question("compute", lambda: _compute(azure, settings["compute"]), needed),
        Question("image", lambda: _image(native)),
        Question("quota", lambda: _quota(azure), needed),
    )


def _workspace(azure: Azure) -> Check:
    found = azure.workspace().about()
    name = azure.account["workspace"]
    if found is None:
        text_ = (
            f"there is no workspace {name} in resource group {azure.account['resource_group']}, or you may not see it"
        )
        how = "set azureml.subscription, azureml.resource_group and azureml.workspace; `az ml workspace list` shows all"
        return Check("workspace", "problem", text_, how)
    if not text(found, "id"):
        raise UnreachableError(f"the answer about workspace {name} makes no sense", hint="check the network")
    state = text(found, "properties", "provisioningState")
    if state and state != "Succeeded":
        return Check("workspace", "warning", f"{name} is in state {state}", "wait until Azure is done with it")
    return Check("workspace", "ok", f"{name}, in {text(found, 'location') or 'a region that is not said'}")


def _jobs(azure: Azure) -> Check:
    next(iter(azure.workspace().jobs("cloudtrain_run")), None)
    return Check("jobs", "ok", "the workspace lists them")


def _datastore(azure: Azure, name: str) -> Check:
    from cloudtrain.providers.azureml.store import KINDS

    found = azure.workspace().datastore(name)
    if found is None:
        how = "set azureml.datastore; `az ml datastore list` shows all"
        return Check("datastore", "problem", f"there is no datastore {name} in the workspace", how)
    kind = text(found, "properties", "datastoreType")
    if kind not in KINDS:
        how = "name one of blobs: azureml.datastore"
        return Check(
            "datastore", "problem", f"{name} is of the kind {kind or 'none'}, which cloudtrain cannot read", how
        )
    return Check("datastore", "ok", f"{name}, {kind} {text(found, 'properties', 'accountName')}")


def _files(azure: Azure, name: str) -> Check:
    """Lists, and says by which right: who has the account's key may write as well."""
    from cloudtrain.providers.azureml.store import Place, Store

    workspace = azure.workspace()
    store = Store(workspace, azure.endpoints, azure.credential)
    try:
        next(store.blobs(Place(name, "cloudtrain-doctor/")), None)
        kind = text(workspace.datastore(name), "properties", "credentials", "credentialsType")
    finally:
        store.close()
    if kind == "AccountKey":
        return Check("files", "ok", f"{name} lists them, by the account's key, with which they can be written, too")
    how = "writing is not tried: it needs the role Storage Blob Data Contributor, unless a SAS allows it"
    return Check("files", "ok", f"{name} lists them, by {kind if kind not in ('', 'None') else 'your own login'}", how)


def _compute(azure: Azure, name: str) -> Check:
    if not name:
        return Check("compute", "ok", "none is set: serverless compute")
    found = azure.workspace().compute(name)
    if found is None:
        how = "set azureml.compute, or leave it out for serverless; `az ml compute list` shows all"
        return Check("compute", "problem", f"there is no compute {name} in the workspace", how)
    state = text(found, "properties", "provisioningState")
    machine = section(found, "properties", "properties")
    most = at(machine, "scaleSettings", "maxNodeCount")
    about = f"{name}, {text(machine, 'vmSize') or 'of unknown size'}, at most {most} nodes"
    if state != "Succeeded":
        return Check("compute", "warning", f"{about}, in state {state or 'unknown'}", "look at it in the studio")
    return Check("compute", "ok", about)


def _image(native: Mapping[str, Any] | None) -> Check:
    environment = at(native, "environment")
    uri = environment if isinstance(environment, str) else text(environment, "image")
    if not uri:
        raise Unknown(NO_JOB)
    raise Unknown(f"{uri}: the workspace's own identity reads it, when a job starts")


def _quota(azure: Azure) -> Check:
    """Cores by family of machines, in the workspace's region."""
    workspace = azure.workspace()
    try:
        location = text(workspace.about(), "location")
        found = workspace.usages(location) if location else None
    except CloudtrainError as error:
        raise Unknown(error.message) from None
    if not location:
        raise Unknown("the workspace does not say its region")
    families = [usage for usage in entries(found, "value") if isinstance(at(usage, "limit"), int)]
    if not families:
        raise Unknown(f"the resource manager does not tell of quotas in {location}")
    some = [usage for usage in families if usage["limit"] > 0]
    how = "" if some else "ask for quota of a VM family: ml.azure.com, Quota"
    text_ = f"{len(some)} of {len(families)} kinds of cores and clusters may be used in {location}"
    return Check("quota", "ok" if some else "warning", text_, how)
