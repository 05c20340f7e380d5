"""Where the service is: one of Azure's three clouds, or the emulator.

The names of the clouds and their addresses are those of azure-ai-ml 1.35.2, which reads the same variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

CLOUD = "AZUREML_CURRENT_CLOUD"
ARM = "AZUREML_DEV_URL_MFE"
"""Variable of azure-ai-ml's own: another resource manager, https."""
AUTHORITY = "AZURE_AUTHORITY_HOST"
"""Variable of azure-identity's own."""
EMULATOR = "CLOUDTRAIN_ENDPOINT_AZUREML"
"""The same address, and with it: this is no cloud, so no credentials are looked for."""
BLOBS = "CLOUDTRAIN_ENDPOINT_BLOB"
"""Where blobs are instead of at their account's own address; ``{}`` is the account."""


class Cloud(NamedTuple):
    """One of Azure's."""

    manager: str
    authority: str
    """Where logins are made."""


_CLOUDS = {
    "AzureCloud": Cloud("https://management.azure.com", "login.microsoftonline.com"),
    "AzureChinaCloud": Cloud("https://management.chinacloudapi.cn", "login.chinacloudapi.cn"),
    "AzureUSGovernment": Cloud("https://management.usgovcloudapi.net", "login.microsoftonline.us"),
}


class Endpoints(NamedTuple):
    """The addresses of one connection."""

    arm: str
    """Of the resource manager, without a slash at its end."""
    scope: str
    """What its tokens are for."""
    authority: str
    blobs: str
    """Pattern of an account's address, ``{}`` for the account; "" where the datastore says it."""
    emulated: bool


def endpoints(environ: Mapping[str, str]) -> Endpoints:
    """Those that the environment asks for. A cloud of another name is azure-ai-ml's own business: it asks for the
    addresses itself, and whoever names one gives the resource manager as well."""
    cloud = _CLOUDS.get(environ.get(CLOUD, ""), _CLOUDS["AzureCloud"])
    emulator = environ.get(EMULATOR, "")
    arm = emulator or environ.get(ARM, "") or cloud.manager
    authority = environ.get(AUTHORITY, "") or cloud.authority
    return Endpoints(arm.rstrip("/"), f"{cloud.manager}/.default", authority, environ.get(BLOBS, ""), bool(emulator))
