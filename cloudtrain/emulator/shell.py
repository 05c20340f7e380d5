"""The environment of a command that is to talk to the emulator: nothing in it leads to a real account."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

POLL_SECONDS = "0.2"
"""Between two looks at a job: nobody here counts the calls."""

_REAL = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|(SESSION|SECURITY)_TOKEN|(DEFAULT_)?PROFILE|ROLE_\w+|WEB_IDENTITY_\w+|"
    r"CONTAINER_\w+|ENDPOINT_URL\w*|\w*METADATA\w*|CREDENTIAL\w*)|"
    r"GOOGLE_(APPLICATION_CREDENTIALS|API_KEY|OAUTH\w*|IMPERSONATE\w*)|GCLOUD_\w+|CLOUDSDK_AUTH_\w+|"
    r"CLOUDSDK_API_ENDPOINT_\w+|GCE_METADATA_\w+|STORAGE_EMULATOR_HOST|"
    r"AZURE_\w+|ARM_\w+|AZUREML_\w+|(IDENTITY|MSI)_\w+|IMDS_\w+|CLOUDTRAIN_ENDPOINT_\w+"
)
"""By which vendors' clients find credentials, or another end than the usual one."""


def unset_real() -> str:
    """A line for any shell of POSIX's kind: it unsets there what ``is_real`` finds, of which this one knows nothing."""
    pattern = _REAL.pattern.replace(r"\w", "[A-Za-z0-9_]")
    names = f"env | awk -F= '/^({pattern})=/ {{print $1}}'"
    return f'for name in $({names}); do unset "$name"; done'


def closed(folder: Path) -> dict[str, str]:
    """What keeps clients from credentials in files and from metadata services. ``folder`` is empty, and stays so."""
    return {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CLOUDSDK_CONFIG": str(folder / "gcloud"),  # where google.auth looks for its default credentials, too
        "NO_GCE_CHECK": "true",
        "AZURE_CONFIG_DIR": str(folder / "azure"),
    }


def own_home(folder: Path) -> dict[str, str]:
    """A ledger of its own, whatever the user has named: emulated runs go with the emulator, and one of the same job
    would be taken for the real one, whose id it has."""
    return {"CLOUDTRAIN_HOME": str(folder / "home")}


def past_proxies(base: Mapping[str, str]) -> dict[str, str]:
    """Loopback is reached without the proxies that a shell may name."""
    if not any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in base):
        return {}
    given = base.get("no_proxy") or base.get("NO_PROXY") or ""
    hosts = ",".join(filter(None, (given, "127.0.0.1", "localhost")))
    return {"no_proxy": hosts, "NO_PROXY": hosts}


def without_real(base: Mapping[str, str]) -> dict[str, str]:
    """``base`` less what ``is_real`` finds."""
    return {name: value for name, value in base.items() if not is_real(name)}


def is_real(name: str) -> bool:
    """Whether a variable of this name may lead to a real account."""
    return bool(_REAL.fullmatch(name))
