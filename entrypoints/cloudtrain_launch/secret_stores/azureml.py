"""Azure Key Vault over REST, with a token of the identity that the job runs as.

A reference is ``https://VAULT.vault.azure.net/secrets/NAME`` or the same with ``/VERSION``. Where the token comes from
is decided as azure-ai-ml 1.35 (``identity/_credentials/aml_on_behalf_of.py``, for jobs that run as the user) and
azure-identity 1.27 (``_credentials/managed_identity.py``) do it:

- AZUREML_OBO_ENABLED and OBO_ENDPOINT: no more than the resource is asked
- IDENTITY_ENDPOINT and IDENTITY_HEADER: api-version 2019-08-01, header X-IDENTITY-HEADER (``app_service.py``)
- MSI_ENDPOINT and MSI_SECRET, which Azure ML compute sets: api-version 2017-09-01, header ``secret``, and ``clientid``
  for an identity of the user's (``azure_ml.py``)
- else the metadata service of the machine, AZURE_POD_IDENTITY_AUTHORITY_HOST or 169.254.169.254: api-version
  2018-02-01, header Metadata (``imds.py``)

DEFAULT_IDENTITY_CLIENT_ID, which Azure ML sets to the identity of the compute cluster, names the identity.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping

from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.secret_stores import web

# Nobody else gets the token. Plain HTTP is for an emulator on this machine.
_VAULT = re.compile(
    r"(https://[\w-]+\.(?P<cloud>vault\.azure\.net|vault\.azure\.cn|vault\.usgovcloudapi\.net)(:443)?"
    r"|http://(127\.0\.0\.1|localhost)(:\d+)?)/secrets/[\w-]+(/\w+)?"
)


def read(references: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """Name -> value. Raises LaunchError that names the secret and what Azure said."""
    tokens: dict[str, str] = {}
    values = {}
    for name, reference in references.items():
        vault = _VAULT.fullmatch(reference.rstrip("/"))
        if not vault:  # not shown: it may be the secret itself, put there by mistake
            raise LaunchError(
                f"secret {name}: its reference is not https://VAULT.vault.azure.net/secrets/NAME[/VERSION]"
            )
        what = f"secret {name} ({reference})"
        resource = f"https://{vault['cloud'] or 'vault.azure.net'}"
        if resource not in tokens:
            tokens[resource] = _token(resource, env, what)
        url = f"{reference.rstrip('/')}?api-version=7.4"
        value = web.get_json(url, {"Authorization": f"Bearer {tokens[resource]}"}, what).get("value")
        if not isinstance(value, str):
            raise LaunchError(f"{what}: the vault's answer holds no value")
        values[name] = value
    return values


def _token(resource: str, env: Mapping[str, str], what: str) -> str:
    url, headers, asked = _source(env)
    answer = web.get_json(
        f"{url}?{urllib.parse.urlencode({**asked, 'resource': resource})}", headers, f"{what}: no token", by_proxy=False
    )
    token = answer.get("access_token") or answer.get("token")
    if not isinstance(token, str):
        raise LaunchError(f"{what}: the answer of the job's identity holds no token")
    return token


def _source(env: Mapping[str, str]) -> tuple[str, dict[str, str], dict[str, str]]:
    """Where tokens come from: an address, headers, and what is asked beside the resource."""
    identity = env.get("DEFAULT_IDENTITY_CLIENT_ID", "")
    if env.get("AZUREML_OBO_ENABLED") and env.get("OBO_ENDPOINT"):
        return env["OBO_ENDPOINT"], {}, {}
    if env.get("IDENTITY_ENDPOINT") and env.get("IDENTITY_HEADER"):
        headers = {"X-IDENTITY-HEADER": env["IDENTITY_HEADER"]}
        return env["IDENTITY_ENDPOINT"], headers, _asked("2019-08-01", client_id=identity)
    if env.get("MSI_ENDPOINT") and env.get("MSI_SECRET"):
        return env["MSI_ENDPOINT"], {"secret": env["MSI_SECRET"]}, _asked("2017-09-01", clientid=identity)
    machine = env.get("AZURE_POD_IDENTITY_AUTHORITY_HOST") or "http://169.254.169.254"
    url = machine.rstrip("/") + "/metadata/identity/oauth2/token"
    return url, {"Metadata": "true"}, _asked("2018-02-01", client_id=identity)


def _asked(version: str, **identity: str) -> dict[str, str]:
    return {"api-version": version, **{name: value for name, value in identity.items() if value}}
