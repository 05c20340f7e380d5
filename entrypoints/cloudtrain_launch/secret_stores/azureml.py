"""Azure Key Vault over REST, with a token of the managed identity that the job runs as.

A reference is ``https://VAULT.vault.azure.net/secrets/NAME`` or the same with ``/VERSION``. Where the token comes from
is decided as azure-identity 1.27 does (``_credentials/managed_identity.py``):

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
        if not vault:
            raise LaunchError(
                f"secret {name}: {reference!r} is not https://VAULT.vault.azure.net/secrets/NAME[/VERSION]"
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
    identity = env.get("DEFAULT_IDENTITY_CLIENT_ID", "")
    if env.get("IDENTITY_ENDPOINT") and env.get("IDENTITY_HEADER"):
        url, version, client = env["IDENTITY_ENDPOINT"], "2019-08-01", "client_id"
        headers = {"X-IDENTITY-HEADER": env["IDENTITY_HEADER"]}
    elif env.get("MSI_ENDPOINT") and env.get("MSI_SECRET"):
        url, version, client = env["MSI_ENDPOINT"], "2017-09-01", "clientid"
        headers = {"secret": env["MSI_SECRET"]}
    else:
        machine = env.get("AZURE_POD_IDENTITY_AUTHORITY_HOST") or "http://169.254.169.254"
        url, version, client = machine.rstrip("/") + "/metadata/identity/oauth2/token", "2018-02-01", "client_id"
        headers = {"Metadata": "true"}
    asked = {"api-version": version, "resource": resource, **({client: identity} if identity else {})}
    answer = web.get_json(
        f"{url}?{urllib.parse.urlencode(asked)}", headers, f"{what}: no token of the managed identity", by_proxy=False
    )
    if not isinstance(answer.get("access_token"), str):
        raise LaunchError(f"{what}: the managed identity's answer holds no access_token")
    return str(answer["access_token"])
