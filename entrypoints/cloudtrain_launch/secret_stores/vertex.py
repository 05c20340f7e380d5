"""Google's Secret Manager over REST, with the token that the metadata server gives for the job's service account.

A reference is ``projects/P/secrets/S`` or ``projects/P/secrets/S/versions/V``. GCE_METADATA_HOST is what Google's own
libraries read; CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER is gcloud's name for another end point.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.secret_stores import web

_REFERENCE = re.compile(r"projects/[^/]+/secrets/[\w-]+(/versions/[\w-]+)?")
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"


def read(references: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """Name -> value. Raises LaunchError that names the secret and what Google said."""
    for name, reference in references.items():
        if not _REFERENCE.fullmatch(reference):  # not shown: it may be the secret itself, put there by mistake
            raise LaunchError(f"secret {name}: its reference is not projects/PROJECT/secrets/SECRET[/versions/VERSION]")
    token = _token(env, f"secrets {', '.join(references)}")
    return {
        name: _read(f"secret {name} ({reference})", reference, token, env) for name, reference in references.items()
    }


def _token(env: Mapping[str, str], what: str) -> str:
    host = env.get("GCE_METADATA_HOST") or "metadata.google.internal"
    answer = web.get_json(f"http://{host}{_TOKEN}", {"Metadata-Flavor": "Google"}, f"{what}: no token", by_proxy=False)
    if not isinstance(answer.get("access_token"), str):
        raise LaunchError(f"{what}: the metadata server's answer holds no access_token")
    return str(answer["access_token"])


def _read(what: str, reference: str, token: str, env: Mapping[str, str]) -> str:
    service = env.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER") or "https://secretmanager.googleapis.com/"
    version = reference if "/versions/" in reference else f"{reference}/versions/latest"
    url = f"{service.rstrip('/')}/v1/{version}:access"
    answer = web.get_json(url, {"Authorization": f"Bearer {token}"}, what)
    try:
        return base64.b64decode(answer["payload"]["data"], validate=True).decode()
    except (KeyError, TypeError, ValueError):  # without its text, which may hold the secret
        raise LaunchError(f"{what}: its content is not text") from None
