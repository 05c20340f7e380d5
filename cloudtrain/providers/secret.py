"""Secrets: a request carries the name that a secret has with the provider, launch.py fetches its value on the node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.base import at_value

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.fields import Provider
    from cloudtrain.spec.problems import Path


# How keys begin that well-known services give out; and nothing but hexadecimal digits, as those of W&B and many others.
_A_SECRET = (
    r"(sk-|hf_|gh[oprsu]_|github_pat_|glpat-|xox[abpr]-|npm_|pypi-|AKIA|ASIA|AIza|ya29\.|eyJ)[\w.~+/=-]{12,}"
    r"|[0-9a-fA-F]{32,}"
)


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
        elif re.fullmatch(_A_SECRET, reference):
            text = f"looks like the secret itself, which would stand in the request: store it and give {form}"
            yield at_value(path, job.environment.secrets[name], provider), text
        elif flaw := flaw_of(reference):
            yield at_value(path, job.environment.secrets[name], provider), flaw
