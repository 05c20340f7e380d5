"""Where the service is: one of Azure's three clouds, or the emulator.

The names of the clouds and their addresses are those of azure-ai-ml 1.35.2, which reads the same variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

CLOUD = "AZUREML_CURRENT_CLOUD"
ARM = "AZUREML_DEV_URL_MFE"
"""Variable of azure-ai-ml's own: another resource manager, https."""
EMULATOR = "CLOUDTRAIN_ENDPOINT_AZUREML"
"""The same address, and with it: this is no cloud, so no credentials are looked for."""
BLOBS = "CLOUDTRAIN_ENDPOINT_BLOB"
"""Where blobs are instead of at their account's own address; ``{}`` is the account."""

_CLOUDS = {
    "AzureCloud": "https://management.azure.com",
    "AzureChinaCloud": "https://management.chinacloudapi.cn",
    "AzureUSGovernment": "https://management.usgovcloudapi.net",
}


class Endpoints(NamedTuple):
    """The addresses of one connection."""

    arm: str
    """Of the resource manager, without a slash at its end."""
    scope: str
    """What its tokens are for."""
    blobs: str
    """Pattern of an account's address, ``{}`` for the account; "" where the datastore says it."""
    emulated: bool


def endpoints(environ: Mapping[str, str]) -> Endpoints:
    """Those that the environment asks for."""
    manager = _CLOUDS.get(environ.get(CLOUD, ""), _CLOUDS["AzureCloud"])
    emulator = environ.get(EMULATOR, "")
    arm = emulator or environ.get(ARM, "") or manager
    return Endpoints(arm.rstrip("/"), f"{manager}/.default", environ.get(BLOBS, ""), bool(emulator))
