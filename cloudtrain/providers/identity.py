"""Names and digests: the same job, settings and code have the same ones everywhere and always.

A name that has to be shortened keeps its head and gets a digest of all of it, so that two long names with one head
stay different.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloudtrain.job import Job

LONGEST_NAME = 63
"""SageMaker's limit for a training job's name, and that of a DNS label; the others allow more."""
_HEX = 10


def canonical(value: object) -> bytes:
    """JSON with sorted keys and no blanks, in UTF-8: equal values, equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(*parts: object) -> str:
    """sha256 (hex) of the canonical form."""
    return hashlib.sha256(canonical(parts)).hexdigest()


def code_digest(entrypoints: str, bundle: str) -> str:
    """Names the folder that holds both: the first 32 hex digits are enough, and keep paths short."""
    return digest("cloudtrain-code 1", entrypoints, bundle)[:32]


def run_id_of(job: Job, provider: str, settings: Mapping[str, str], code: str) -> str:
    """``digits-3f9c2b71aa``: the job's name and a digest of all that it asks for.

    So a request shown today and one sent tomorrow have the same name, and sending twice can be seen. Every setting
    counts, whether it is set or not: one that a later version adds must count only where it is set, or all ids change.
    """
    asked = {**asked_of(job, provider), "args": job.argv}  # the order of a mapping's arguments counts
    return f"{job.name}-{digest('cloudtrain-run 1', asked, provider, dict(settings), code)[:_HEX]}"


_PER_PROVIDER: Mapping[str, Any] = {
    "overrides": None,
    "resources": {"instance": None, "disk_gib": None, "shm_gib": None},
    "environment": {"image": None, "torch": None, "secrets": {"*": None}},
    "data": {"*": {"uri": None}},
    "outputs": {"*": None},
    "checkpoint": {"uri": None},
}
"""Fields of a job that may hold one value for each provider; ``*`` is any name."""


def asked_of(job: Job, provider: str) -> dict[str, Any]:
    """What the job asks of a provider, as plain data: only what differs from the defaults."""
    return _as_asked(job.given(), provider)


def _as_asked(
    section: Mapping[str, Any], provider: str, per_provider: Mapping[str, Any] = _PER_PROVIDER
) -> dict[str, Any]:
    """The job as plain data, less what it says to other providers, and less the sections that say nothing else."""
    asked = {}
    for name, value in section.items():
        if name in per_provider or "*" in per_provider:
            below = per_provider.get(name, per_provider.get("*"))
            value = _as_asked(value, provider, below) if below else _said_to(provider, value)
        if value not in (None, {}):
            asked[name] = value
    return asked


def _said_to(provider: str, value: Any) -> Any:
    return value.get(provider) if isinstance(value, Mapping) else value


def native_name(run_id: str, attempt: int, longest: int = LONGEST_NAME) -> str:
    """The name of one attempt: ``digits-3f9c2b71aa-a1``. Letters, digits and hyphens, at most ``longest`` of them."""
    return shortened(run_id, longest - len(f"-a{attempt}")) + f"-a{attempt}"


def shortened(text: str, longest: int) -> str:
    """``text``, or its head and a digest of all of it."""
    if len(text) <= longest:
        return text
    tail = hashlib.sha256(text.encode()).hexdigest()[:_HEX]
    return f"{text[: longest - _HEX - 1].rstrip('-_.')}-{tail}"


def fingerprint(native: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """sha256 (hex) of a request without its fingerprint, and of its spec: what the service echoes, to be compared."""
    return digest("cloudtrain-request 1", native, spec)
