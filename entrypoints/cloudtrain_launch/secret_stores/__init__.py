"""The job's secrets, read from the provider's own store when the node starts, with the job's own identity.

The request names them only: CLOUDTRAIN_SECRETREF_<NAME> is a reference, and what it stands for goes into the workers'
environment as <NAME>: never into a file, a log or an error. One module a provider; each has
``read(references, env) -> values``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from cloudtrain_launch.environ import SECRET
from cloudtrain_launch.errors import LaunchError

REFERENCE = "CLOUDTRAIN_SECRETREF_"
_STORES = ("azureml", "sagemaker", "vertex")


def references(env: Mapping[str, str]) -> dict[str, str]:
    """Name -> reference of every secret that is to be read. Not of one whose value was given with CLOUDTRAIN_SECRET_,
    as simulated nodes are: no store is asked for that."""
    found = {name[len(REFERENCE) :]: value for name, value in env.items() if name.startswith(REFERENCE)}
    return {name: reference for name, reference in found.items() if SECRET + name not in env}


def read(env: Mapping[str, str], provider: str) -> dict[str, str]:
    """Name -> value. Raises LaunchError that names the secret."""
    wanted = references(env)
    if not wanted:
        return {}
    if provider not in _STORES:
        first = next(iter(wanted))
        raise LaunchError(
            f"secret {first}: no store of {provider} is known here; its value is wanted in {SECRET}{first}"
        )
    values: dict[str, str] = import_module(f"{__name__}.{provider}").read(wanted, env)
    for name, value in values.items():
        if "\0" in value:
            raise LaunchError(f"secret {name} ({wanted[name]}) holds a NUL byte, which no variable can")
    print(f"secrets read: {', '.join(sorted(values))}", flush=True)
    return values
