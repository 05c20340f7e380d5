"""The metadata server, as a container finds it: a token for the job's service account, worth nothing here."""

from __future__ import annotations

import json
from collections.abc import Mapping

ACCOUNT = "emulated@cloudtrain-emulator.iam.gserviceaccount.com"
PROJECT = "gbd0c1oudtra1n00000000000-tp"
"""Google's own, in which jobs run, and not the user's: real jobs find such a one, too."""
HEADERS = {"Metadata-Flavor": "Google"}
"""By which clients know the server."""

_ROOT = "/computeMetadata/v1"
_OF_ACCOUNT = f"{_ROOT}/instance/service-accounts/default"
_TOKEN = {"access_token": "emulated", "expires_in": 3600, "token_type": "Bearer"}
_KNOWN = {"email": ACCOUNT, "aliases": ["default"], "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}
_ANSWERS: Mapping[str, str] = {
    "": "computeMetadata/\n",
    _OF_ACCOUNT: json.dumps(_KNOWN),
    f"{_OF_ACCOUNT}/token": json.dumps(_TOKEN),
    f"{_OF_ACCOUNT}/email": ACCOUNT,
    f"{_ROOT}/project/project-id": PROJECT,
    f"{_ROOT}/universe/universe-domain": "googleapis.com",
}


def answer(path: str) -> str | None:
    """What there is at a path; None where that is nothing."""
    return _ANSWERS.get(path.rstrip("/"))
