"""The environment of the processes: image, conda packages, variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.errors import did_you_mean
from cloudtrain.providers.azureml import form
from cloudtrain.providers.azureml.reading import fits
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.image import is_reference
from cloudtrain.providers.reading import section
from cloudtrain.spec.problems import Path, shown

_FORMS = "azureml:NAME:VERSION or azureml://registries/REGISTRY/environments/NAME/versions/VERSION"
_CONDA = ("name", "channels", "dependencies", "variables", "prefix", "platforms")
_ONE_EQUALS = r"[\w.-]+(\[[\w,.-]+\])?=[^=].*"


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """The problems of the environment and of the variables."""
    yield from _environment(native)
    yield from _variables(native)


def _variables(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    for name, value in section(native, "environment_variables").items():
        path: Path = ("environment_variables", name)
        if not name or "=" in name:
            yield NativeProblem(path, "is no name of a variable")
        if not isinstance(value, str):
            yield NativeProblem(path, f"must be text, not {shown(value)}: write it in quotes")
        elif "${{" in value:
            yield NativeProblem(path, "holds ${{, which is replaced in the command only: the job would find the text")


def _environment(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    environment = native.get("environment")
    if environment is None:
        yield NativeProblem(("environment",), "is missing: an image, or an environment of the workspace")
    elif isinstance(environment, Mapping):
        yield from _image(environment)
        yield from _conda(environment.get("conda_file"))
    elif not fits(form.ENVIRONMENT, environment):
        yield NativeProblem(("environment",), f"must be {_FORMS}, or a mapping with an image, not {shown(environment)}")


def _image(environment: Mapping[str, Any]) -> Iterator[NativeProblem]:
    image = environment.get("image")
    if (image is None) == (environment.get("build") is None):
        yield NativeProblem(("environment",), "must have an image or a build, exactly one of them")
    elif image is not None and not (isinstance(image, str) and is_reference(image)):
        text = f"must be a container image such as repo/name:tag, not {shown(image)}"
        yield NativeProblem(("environment", "image"), text)


def _conda(conda: Any) -> Iterator[NativeProblem]:
    path = ("environment", "conda_file")
    if conda is None:
        return
    if not isinstance(conda, Mapping):
        text = "must be the environment itself, a mapping with dependencies: no file lies beside the form"
        yield NativeProblem(path, text)
        return
    for key in conda:
        if key not in _CONDA:
            near = did_you_mean(str(key), _CONDA) or f"; known here: {', '.join(_CONDA)}"
            yield NativeProblem((*path, key), f"is no field of a conda environment{near}")
    channels = conda.get("channels", [])
    if not isinstance(channels, (list, tuple)) or not all(isinstance(channel, str) for channel in channels):
        yield NativeProblem((*path, "channels"), f"must be a list of names, not {shown(channels)}")
    dependencies = conda.get("dependencies")
    if not isinstance(dependencies, (list, tuple)) or not dependencies:
        yield NativeProblem((*path, "dependencies"), "must be a list of packages")
        return
    for number, item in enumerate(dependencies):
        yield from _dependency((*path, "dependencies", number), item)


def _dependency(path: Path, item: Any) -> Iterator[NativeProblem]:
    if isinstance(item, Mapping) and isinstance(item.get("pip"), (list, tuple)):
        for number, package in enumerate(item["pip"]):
            if not isinstance(package, str):
                yield NativeProblem((*path, "pip", number), f"must be a requirement, not {shown(package)}")
            elif fits(_ONE_EQUALS, package):
                yield NativeProblem((*path, "pip", number), f"pip pins with ==: write {package.replace('=', '==', 1)}")
    elif not isinstance(item, str):
        yield NativeProblem(path, f"must be a package or a list of pip requirements, not {shown(item)}")
