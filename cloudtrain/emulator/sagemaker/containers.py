"""The nodes' containers, before they start: file systems filled, variables, and where launch.py is.

nodes/<k>/         stands for node k's file system, as far as the service's contract speaks of it
objects/<channel>/ what was fetched of each channel
logs/<k>           what node k prints
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cloudtrain.emulator.base import NodePlan
from cloudtrain.emulator.sagemaker.channels import Channels
from cloudtrain.providers.base import NodeContract, Request
from cloudtrain.providers.reading import at, entries, text
from cloudtrain.providers.sagemaker.contract import node_contract

_PROGRAM = re.compile(r"/(opt/ml/input/data/\S+\.py)")
_MOST_OF_FAILURE = 1 << 14
"""Bytes that are read; of the text 1,024 characters are told."""
_RESOURCES = "opt/ml/input/config/resourceconfig.json"


class NoProgram(Exception):
    """The entry point starts nothing that this emulator can."""


class Containers:
    """Those of one start of a job."""

    def __init__(self, native: Mapping[str, Any], region: str, folder: Path, reach: Mapping[str, str]) -> None:
        """``reach``: variables by which the containers find AWS."""
        self._native = native
        self._folder = folder
        self._reach = {} if at(native, "EnableNetworkIsolation") is True else reach
        self._contracts = _contracts(native, region)
        self.hosts = [self._resources(node)["current_host"] for node in range(len(self._contracts))]
        self.roots = [folder / "nodes" / str(node) for node in range(len(self._contracts))]
        self.logs = [folder / "logs" / str(node) for node in range(len(self._contracts))]
        self.checkpoints = [
            root / place
            for root, contract in zip(self.roots, self._contracts, strict=True)
            for place, what in contract.places.items()
            if what == "checkpoints"
        ]

    def fill(self, s3: Any) -> None:
        """Write every node's files and channels. Raises DownloadError, OSError."""
        shutil.rmtree(self._folder, ignore_errors=True)
        channels = Channels(self._native, s3, self._folder / "objects")
        channels.fetch()
        groups = [self._resources(node)["current_group_name"] for node in range(len(self._contracts))]
        for node, (root, contract) in enumerate(zip(self.roots, self._contracts, strict=True)):
            for name, content in contract.files.items():
                file = root / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content, encoding="utf-8")
            for place, what in contract.places.items():
                if what in ("model", "output"):
                    (root / place).mkdir(parents=True, exist_ok=True)
            channels.lay(node, groups, root)
        self.logs[0].parent.mkdir(parents=True, exist_ok=True)

    def plans(self) -> list[NodePlan]:
        """How the nodes are started. Raises NoProgram."""
        program = _program(self._native)
        return [
            NodePlan(
                root=root,
                launch=root / program,
                cwd=root,
                env={**{k: v.replace("{root}", str(root)) for k, v in contract.env.items()}, **self._reach},
                log=log,
            )
            for root, contract, log in zip(self.roots, self._contracts, self.logs, strict=True)
        ]

    def failure(self, node: int) -> str:
        """What the node has left in /opt/ml/output/failure; "" if nothing."""
        path = self.roots[node] / "opt/ml/output/failure"
        try:
            if not path.is_file():  # a pipe would never be read to its end
                return ""
            with path.open("rb") as file:
                return file.read(_MOST_OF_FAILURE).decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def remove(self) -> None:
        """All of it, from this disk."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _resources(self, node: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._contracts[node].files[_RESOURCES])
        return found


def _contracts(native: Mapping[str, Any], region: str) -> list[NodeContract]:
    """Of all nodes, from the request as it was received."""
    made = {**native, "Environment": dict(at(native, "Environment") or {})}
    name = text(native, "TrainingJobName")
    request = Request("sagemaker", name, made, spec={}, ships=(), account={"region": region})
    first = node_contract(request, 0)
    nodes = len(json.loads(first.files[_RESOURCES])["hosts"])
    return [first, *(node_contract(request, node) for node in range(1, nodes))]


def _program(native: Mapping[str, Any]) -> str:
    """The Python program of the entry point, by its path below the node's root. No image is there to run anything else
    in, and what an image's own script does before is left out."""
    found = [match[1] for word in _words(native) if (match := _PROGRAM.search(word))]
    if not found:
        raise NoProgram("the emulator starts a Python program of a channel, and this entry point names none")
    return found[0]


def _words(native: Mapping[str, Any]) -> Iterator[str]:
    for name in ("ContainerEntrypoint", "ContainerArguments"):
        yield from entries(native, "AlgorithmSpecification", name)
