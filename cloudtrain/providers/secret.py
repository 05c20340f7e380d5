"""Secrets: a request carries the name that a secret has with the provider, launch.py fetches its value on the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.base import at_value

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.fields import Provider
    from cloudtrain.spec.problems import Path


def unusable_secrets(
    job: Job, provider: Provider, form: str, flaw_of: Callable[[str], str | None]
) -> Iterator[tuple[Path, str]]:
    """Secrets that have no name with the provider, or none of its ``form``.

    What stands there is not shown: it might be the secret itself.
    """
    for name, reference in job.environment.secrets_for(provider).items():
        path = ("environment", "secrets", name)
        if reference is None:
            yield path, f"names no secret for {provider}; give {'.'.join(path)}.{provider}: {form}"
        elif flaw := flaw_of(reference):
            yield at_value(path, job.environment.secrets[name], provider), flaw
