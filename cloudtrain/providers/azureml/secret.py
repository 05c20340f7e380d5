"""Secrets: addresses of a key vault's secrets, which launch.py reads with the identity that the job runs as."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.azureml.form import VAULT_SECRET
from cloudtrain.providers.azureml.reading import fits
from cloudtrain.providers.secret import unusable_secrets

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.spec.problems import Path

_FORM = "https://VAULT.vault.azure.net/secrets/NAME, with /VERSION behind it if one is meant"


def secret_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Secrets without a place in a key vault."""
    return unusable_secrets(job, "azureml", _FORM, _flaw_of)


def secret_notes(job: Job, context: Context) -> Iterator[str]:
    """Who may read the vault."""
    if job.environment.secrets and not context.settings["identity"]:
        yield (
            "secrets are read with the job's identity, and none is set: set azureml.identity to managed or user, "
            "unless the compute has one that may read the vault"
        )


def _flaw_of(reference: str) -> str | None:
    return None if fits(VAULT_SECRET, reference) else f"is no secret of a key vault; write {_FORM}"
