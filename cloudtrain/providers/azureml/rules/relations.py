"""What fields say together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.errors import did_you_mean
from cloudtrain.providers.azureml import form
from cloudtrain.providers.azureml.reading import cluster, is_spot, nodes, plain
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import section
from cloudtrain.spec.problems import shown


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """The problems of fields that do not go together."""
    for rule in (_references, _distribution, _spot, _docker_args, _code):
        yield from rule(native)


def _references(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """The client looks for the inputs only; the service fails the job for the rest, once it is scheduled."""
    command = native.get("command")
    for reference in re.findall(form.REFERENCE, command) if isinstance(command, str) else ():
        kind, _, name = reference.partition(".")
        if kind not in ("inputs", "outputs"):
            yield NativeProblem(
                ("command",), f"${{{{{reference}}}}} is never replaced: only inputs.NAME and outputs.NAME are"
            )
        elif name.partition(".")[0] not in (known := section(native, kind)):
            near = did_you_mean(name, known)
            yield NativeProblem(("command",), f"${{{{{reference}}}}} names none of the {kind}{near}")


def _distribution(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    distribution, count = native.get("distribution", {}), nodes(native)
    if count < 1 or not isinstance(distribution, Mapping):
        return
    if count == 1:
        if distribution:
            text = "must be left out for one node: frameworks that find it wait for a second one for ever"
            yield NativeProblem(("distribution",), text)
        return
    if not distribution:
        text = f"is missing: {count} nodes do not learn of each other; write type: pytorch"
        yield NativeProblem(("distribution",), text)
    elif plain(distribution.get("type")) in ("tensorflow", "ray"):
        yield NativeProblem(
            ("distribution", "type"), "must be pytorch or mpi: launch.py reads the variables that these set"
        )
    if distribution.get("process_count_per_instance", 1) != 1:
        text = "must be 1: the one process of a node is launch.py, which starts the ranks itself"
        yield NativeProblem(("distribution", "process_count_per_instance"), text)


def _spot(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    if is_spot(native) and (name := cluster(native)):
        text = f"is for serverless compute: {name} decides by its vm_priority; leave compute or job_tier out"
        yield NativeProblem(("queue_settings", "job_tier"), text)


def _docker_args(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    resources = section(native, "resources")
    if isinstance(resources.get("docker_args"), (list, tuple)):
        for name in ("locations", "max_instance_count"):
            if name in resources:
                text = "is dropped by the client beside a list of docker_args: write docker_args as one text"
                yield NativeProblem(("resources", name), text)


def _code(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """The client crashes on an https:// address and takes no git one."""
    code, command = native.get("code"), native.get("command")
    if code is None:
        if isinstance(command, str) and "launch.py" in command:
            yield NativeProblem(("code",), "is missing: launch.py, which the command starts, lies in ./code")
    elif code != "./code" and not str(code).startswith("azureml:"):
        yield NativeProblem(
            ("code",), f"must be ./code, which lies beside the form, or azureml:NAME:VERSION, not {shown(code)}"
        )
