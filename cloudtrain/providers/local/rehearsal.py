"""``run --as``: the job as a cloud would get it, and what that cloud would give every node.

    job and options -> stand-ins -> the cloud's request -> its in-container contract, node by node

Pure but for the account settings and what ships. ``container.py`` then writes the contract into the nodes' folders, and
the launcher reads there what it would read in the cloud.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from cloudtrain.bundle import Bundle
from cloudtrain.errors import SpecError
from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.providers.base import Context, NodeContract, Request
from cloudtrain.providers.checking import check_overrides
from cloudtrain.providers.local.client import Container
from cloudtrain.providers.local.options import LocalOptions
from cloudtrain.providers.local.standins import with_standins
from cloudtrain.providers.local.translate import Places, data_folder
from cloudtrain.providers.shipping import entrypoints_digest
from cloudtrain.settings import settings_for

_REFERENCE = "CLOUDTRAIN_SECRETREF_"
_OWN_DISK: Mapping[str, frozenset[str]] = {"sagemaker": frozenset({"model", "output"})}
"""Results that every node has on a disk of its own, put together at the end; elsewhere they are shared."""

_STARTED_IN_CODE = frozenset({"azureml"})
"""Where the command runs in the folder of the code, and the request's paths are seen from there."""


@dataclass(frozen=True)
class Rehearsal:
    """A job translated for a cloud, with what each node is going to find."""

    job: Job
    request: Request
    contracts: tuple[NodeContract, ...]
    notes: tuple[str, ...]

    @property
    def own_disk(self) -> frozenset[str]:
        """``model`` and ``output`` where every node has a disk of its own for them."""
        return _OWN_DISK.get(self.request.provider, frozenset())

    @property
    def channels_are_folders(self) -> bool:
        """Whether a channel is a folder on the node even where it is a single object."""
        return self.request.provider == "sagemaker"

    def is_shared_out_by_launcher(self, what: str) -> bool:
        """Whether launch.py gives a node its share of ``data:NAME``; elsewhere the platform does."""
        channels = self.request.spec.get("channels", {}).items()
        return any(f"data:{name.lower()}" == what and channel.get("shard") == "by-object" for name, channel in channels)

    def root(self, node: int, places: Places) -> Path:
        """The folder that stands for the node's file system, as far as the contract speaks of it."""
        return places.folder.node(node)

    def spec(self, options: LocalOptions) -> dict[str, Any]:
        """The launch spec as it would travel, but with this run's patience and nothing to install."""
        spec = {name: value for name, value in self.request.spec.items() if name != "requirements"}
        return {**spec, "grace": options.grace, "start_timeout": options.start_timeout}

    def environment(self, node: int, places: Places) -> dict[str, str]:
        """The container's environment. Secrets come from this shell instead of the cloud's vault, and outputs that the
        launcher sends to the cloud's storage go to their place here."""
        contract = self.contracts[node]
        root = str(self.root(node, places))
        env = {
            name: value.replace("{root}", root)
            for name, value in contract.env.items()
            if not name.startswith(_REFERENCE)
        }
        laid = {what.lower() for what in contract.places.values()}
        sent = {name: path for name, path in places.outputs.items() if f"output:{name.lower()}" not in laid}
        return {**env, **{f"CLOUDTRAIN_OUTPUT_{name.upper()}": str(path) for name, path in sent.items()}}

    def container(self, node: int, places: Places) -> Container:
        """How the node is started."""
        root = self.root(node, places)
        code = root / next(path for path, what in self.contracts[node].places.items() if what == "code")
        return Container(code / "launch.py", code if self.request.provider in _STARTED_IN_CODE else root)


def rehearse(job: Job, options: LocalOptions, bundle: Bundle, run_id: str) -> Rehearsal:
    """Translate the job for ``options.as_``. Raises JobFileError with all that the cloud would refuse, SpecError for
    settings that are ill-formed or data that cannot be laid out here as it lies there."""
    assert options.as_
    settings = settings_for(options.as_, job.folder)
    asked, stood_in = with_standins(_as_asked(job, options), settings)
    request = registry.translate(asked, Context(settings, bundle.digest, entrypoints_digest(), run_id))
    unchecked = check_overrides(asked, request)
    contracts = tuple(registry.node_contract(request, node) for node in range(asked.resources.nodes))
    _refuse_tangled(asked, options, contracts[0])
    return Rehearsal(asked, request, contracts, (*_notes(asked, request, stood_in), *filter(None, [unchecked])))


def _as_asked(job: Job, options: LocalOptions) -> Job:
    """The job with what the command line decides, since the request has to be for that."""
    changes: dict[str, Any] = {}
    if options.nodes:
        changes.setdefault("resources", {})["nodes"] = options.nodes
    if options.processes:
        changes.setdefault("resources", {})["processes_per_node"] = options.processes
    if options.args:
        changes["args"] = [*job.argv, *options.args]
    return job.with_(**changes) if changes else job


def _refuse_tangled(job: Job, options: LocalOptions, contract: NodeContract) -> None:
    """What a bucket can hold and links cannot. One place for two channels has one link; results that hold another
    folder of the job would have a link in a folder of the user's."""
    laid = {what.lower() for what in contract.places.values()}
    folders = {name: data_folder(job, name, options.data) for name in job.data}
    here = {folders[name] for name in job.data if f"data:{name.lower()}" in laid}
    for name, folder in folders.items():
        if f"data:{name.lower()}" not in laid and folder not in here:
            raise SpecError(
                f"data.{name} has the same place there as another channel, and another one here",
                hint=f"give both the same folder: --data {name}=PATH",
            )
    placed = [(PurePath(path), what) for path, what in contract.places.items()]
    for path, what in placed:
        within = next((other for place, other in placed if path in place.parents), None)
        if within and what.startswith(("checkpoints", "output:")):
            raise SpecError(
                f"{field(within)} lies inside {field(what)} there, which a run on this machine cannot imitate",
                hint="give the two places of their own",
            )


def field(what: str) -> str:
    """What lies somewhere, as the job file calls it: ``outputs.NAME`` for ``output:NAME``."""
    kind, _, name = what.partition(":")
    return f"{'outputs' if kind == 'output' else kind}.{name}" if name else kind


def inside(place: str, contract: NodeContract) -> list[PurePath]:
    """The contract's places inside this one, seen from it."""
    paths = map(PurePath, contract.places)
    return [path.relative_to(place) for path in paths if PurePath(place) in path.parents]


def _notes(job: Job, request: Request, stood_in: list[str]) -> Iterator[str]:
    cloud = request.provider
    yield (
        f"as {cloud}: files and variables are those of its contract; links to this machine's folders stand in for its "
        "storage, and neither its image nor its machines are used"
    )
    if stood_in:
        yield f"no place for {cloud} in the job, so one stands in the request: {', '.join(stood_in)}"
    if job.environment.secrets:
        yield f"secrets come from this shell, not from {cloud}"
