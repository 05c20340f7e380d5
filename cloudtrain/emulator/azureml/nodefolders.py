"""What the nodes of a job find: the contract's places, filled from the storage account as the service does it.

start-0/node-1/        what stands for the file system of node 1 in the job's first start
start-0/node-1.log     its standard output and error
data/CONTAINER/...     what is mounted, the same for all nodes and starts
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cloudtrain.emulator.azureml.blobs import Place
from cloudtrain.emulator.azureml.jobs import Job
from cloudtrain.emulator.azureml.mounts import LeftOut, Mounts
from cloudtrain.emulator.azureml.ordinary import contents, unlike_blobs
from cloudtrain.emulator.azureml.workspace import (
    DEFAULT_STORE,
    RESOURCE_GROUP,
    SUBSCRIPTION,
    WORKSPACE,
    Workspace,
)
from cloudtrain.emulator.base import NodePlan
from cloudtrain.providers.azureml.contract import node_contract
from cloudtrain.providers.azureml.folders import FOLDERS, SPEC_INPUT
from cloudtrain.providers.azureml.reading import nodes
from cloudtrain.providers.base import NodeContract, Request

_OURS = {folder: name for name, (_, folder) in FOLDERS.items()}
_KEPT = ("outputs", "logs")
"""Folders of the working directory that the service sends to the run's artefacts."""


class NodeFolders:
    """Those of one job. For its life's thread alone."""

    def __init__(self, job: Job, workspace: Workspace, code: Place | None, folder: Path, left_out: LeftOut) -> None:
        """``code``: where the snapshot lies; None for a job without one, which is not started."""
        self._job = job
        self._workspace = workspace
        self._code = code
        self._folder = folder
        self._left_out = left_out
        self.mounts = Mounts(folder / "data", workspace.blobs, left_out)
        self._collected: list[tuple[Path, Place]] = []
        account = {"subscription": SUBSCRIPTION, "resource_group": RESOURCE_GROUP, "workspace": WORKSPACE}
        self._request = Request("azureml", job.name, dict(job.form), spec={}, ships=(), account=account)

    def start(self, number: int) -> list[NodePlan]:
        """Lay out the nodes of a start. Raises LookupError where an input or a datastore is not there."""
        self._collected = []
        code = self._folder / "code"
        if self._code and not code.exists():
            self._workspace.blobs.fetch_all(self._code, self._workspace.blobs.names(self._code), code)
        return [self._plan(number, node, code) for node in range(nodes(self._job.form))]

    def collect(self) -> None:
        """At the end: what goes up then, node by node; of two files of one name the later is kept."""
        self.mounts.sync(final=True)
        for folder, place in self._collected:
            found = contents(folder)
            for name in sorted(found.files):
                self._workspace.blobs.put(place._replace(path=place.blob(name)), folder / name)
            for name, kind in found.others.items():
                self._left_out(place.blob(name), kind)

    def _plan(self, number: int, node: int, code: Path) -> NodePlan:
        root = self._folder / f"start-{number}" / f"node-{node}"
        contract = node_contract(self._request, node)
        work = root / next(path for path, what in contract.places.items() if what == "code")
        shutil.copytree(code, work)  # a copy for each: it is the node's own disk
        for place, what in _data(contract):
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            if what == "spec" or what.startswith("data:"):
                self._lay_input(root / place, self._job.form["inputs"][what.partition(":")[2] or SPEC_INPUT])
            else:
                self._lay_output(root / place, _OURS.get(what) or what.partition(":")[2])
        for name in _KEPT:
            artefacts = self._workspace.artifacts(self._job.name)
            self._collected.append((work / name, artefacts._replace(path=artefacts.blob(name))))
        env = {name: value.replace("{root}", str(root)) for name, value in contract.env.items()}
        env = self._workspace.vault.environment(self._job.form, env)
        return NodePlan(root, work / "launch.py", work, env, root.with_name(f"{root.name}.log"))

    def _lay_input(self, at: Path, given: Mapping[str, Any]) -> None:
        if "value" in given:  # stands in the command
            return
        source = self.mounts.read(self._place(given["path"]))
        if given.get("mode") == "download" and source.is_dir():
            shutil.copytree(source, at, ignore=unlike_blobs)
        elif given.get("mode") == "download":
            shutil.copyfile(source, at)
        else:
            at.symlink_to(source)

    def _lay_output(self, at: Path, name: str) -> None:
        place = self._place(self._job.outputs[name])
        if self._job.form["outputs"][name].get("mode") == "upload":
            at.mkdir()
            self._collected.append((at, place))
        else:
            at.symlink_to(self.mounts.written(place))

    def _place(self, uri: str) -> Place:
        place = self._workspace.place(uri)
        if place is None:
            raise LookupError(f"{uri} is not in the workspace's storage account, and the emulator sees nothing else")
        return place


def chosen_outputs(job: Job) -> dict[str, str]:
    """Output -> where it goes: what the job says, with what the service replaces in it, or a place for each job that
    the vendor's client looks for there."""
    found = {}
    for name, item in job.form.get("outputs", {}).items():
        uri = item.get("path") or f"azureml://datastores/{DEFAULT_STORE}/paths/azureml/{job.name}/{name}/"
        for word, meant in (("name", job.name), ("output_name", name), ("default_datastore", DEFAULT_STORE)):
            uri = uri.replace(f"${{{{{word}}}}}", meant)
        found[name] = uri
    return found


def _data(contract: NodeContract) -> Iterator[tuple[str, str]]:
    yield from ((place, what) for place, what in contract.places.items() if what != "code")
