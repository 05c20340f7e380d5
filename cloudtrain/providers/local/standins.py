"""Places that a job has only on this machine, so that it can be translated for a cloud all the same.

A rehearsal takes data from here, keeps results here, and gets secrets from this shell. The job need not say yet where
they will be in the cloud; what it does say is translated as it stands, and refused if it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cloudtrain.job import Job
from cloudtrain.settings import Settings
from cloudtrain.spec.fields import is_local

_FOLDERS: Mapping[str, Callable[[Mapping[str, str]], str]] = {
    "sagemaker": lambda settings: f"s3://{settings['bucket']}/stand-in",
    "vertex": lambda settings: f"gs://{settings['bucket']}/stand-in",
    "azureml": lambda settings: f"azureml://datastores/{settings['datastore']}/paths/stand-in",
}
_SECRETS: Mapping[str, Callable[[Mapping[str, str], str], str]] = {
    "sagemaker": lambda settings, name: f"arn:aws:secretsmanager:{settings['region']}:000000000000:secret:{name}",
    "vertex": lambda settings, name: f"projects/{settings['project']}/secrets/{name}/versions/latest",
    "azureml": lambda _, name: f"https://stand-in.vault.azure.net/secrets/{name.replace('_', '-')}",
}


def with_standins(job: Job, settings: Settings) -> tuple[Job, list[str]]:
    """The job with a well-formed place of the provider's wherever it has none, and the fields that got one."""
    cloud = settings.provider
    folder = _FOLDERS[cloud](settings)
    changes: dict[str, dict[str, Any]] = {"data": {}, "outputs": {}, "secrets": {}}
    for name, channel in job.data.items():
        if _says_nothing(channel.uri, cloud):
            changes["data"][name] = {"uri": _adding(channel.uri, cloud, f"{folder}/data/{name}/")}
    for name, place in job.outputs.items():
        if _says_nothing(place, cloud):
            changes["outputs"][name] = _adding(place, cloud, f"{folder}/outputs/{name}/")
    for name, reference in job.environment.secrets.items():
        if _says_nothing(reference, cloud, of_shell=True):
            changes["secrets"][name] = _adding(reference, cloud, _SECRETS[cloud](settings, name))
    stood_in = list(_fields(changes))
    made = job.with_(
        data=changes["data"],
        outputs=changes["outputs"],
        environment={"secrets": changes["secrets"]},
        checkpoint={"uri": _kept_here(job.checkpoint.uri)},
    )
    return made, stood_in


def _says_nothing(value: Any, cloud: str, *, of_shell: bool = False) -> bool:
    """Whether nothing of this cloud's is named: nothing at all, or one for all that is a path of this machine, or for
    secrets a variable of this shell."""
    if isinstance(value, Mapping):
        return value.get(cloud) is None
    return bool(value.startswith("env:") if of_shell else is_local(value))


def _adding(value: Any, cloud: str, place: str) -> dict[str, str]:
    named = dict(value) if isinstance(value, Mapping) else {"local": value}
    return {**named, cloud: place}


def _kept_here(uri: Any) -> Any:
    """One place for all that is a path of this machine is local mode's; the cloud then has its own default."""
    return {"local": uri} if isinstance(uri, str) and is_local(uri) else uri


def _fields(changes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for section, names in changes.items():
        yield from (f"{'environment.' if section == 'secrets' else ''}{section}.{name}" for name in names)
