"""The job, typed once: every field of the job file with its description, its checks and its default.

    job = Job.load("job.yaml")
    job.argv, job.processes, job.data["train"].uri_for("local")

Reading and writing files is in jobfile.py, the kinds of values in spec/.
"""

# Not `from __future__ import annotations`: pydantic would compile the text of every field's type, 4 ms of each command.

import re
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import Field, PrivateAttr, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from cloudtrain.catalog.accelerators import UnknownAccelerator, accelerator, accelerators
from cloudtrain.errors import did_you_mean
from cloudtrain.spec.arguments import Args, Arguments, argv_of, reference_flaws, texts
from cloudtrain.spec.codefiles import missing_files
from cloudtrain.spec.durations import Duration
from cloudtrain.spec.fields import (
    CLOUDS,
    ByProvider,
    Choice,
    Named,
    PerProvider,
    Positive,
    Provider,
    Switch,
    Text,
    Whole,
    absent,
    for_provider,
    providers_for,
)
from cloudtrain.spec.flaws import flaw, kind, problems_of, wrong
from cloudtrain.spec.native import Native
from cloudtrain.spec.problems import JobFileError, Problem
from cloudtrain.spec.problems import Path as Key
from cloudtrain.spec.sections import Section, as_mapping

Framework: TypeAlias = Literal["pytorch", "accelerate", "lightning", "deepspeed", "tensorflow", "jax", "dataparallel"]
ProcessShape: TypeAlias = Literal["per-accelerator", "per-node"]
Mode: TypeAlias = Literal["mount", "download", "stream"]
Shard: TypeAlias = Literal["replicate", "by-object"]

_PER_NODE = frozenset({"tensorflow", "jax", "dataparallel"})

# What launch.py and torch's elastic agent set for every worker (torch 2.13's list), and what steers the agent.
_LAUNCHER_OWNS = (
    "(LOCAL_|NODE_|GROUP_|ROLE_)?RANK|(LOCAL_|GROUP_|ROLE_)?WORLD_SIZE|ROLE_NAME|MASTER_(ADDR|PORT)"
    "|(CLOUDTRAIN|TORCHELASTIC|PET)_.*"
)

_INSIDE = r"(?![/~])(?!(?:.*/)?\.\.(?:/|$))[^\\:\x00-\x1f]*[^\\:/\x00-\x1f]"  # a relative path that stays inside
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"

_TORCH = Text(
    r"[0-9]+\.[0-9]+(\.[0-9]+)?([a-z]+[0-9]+)?(\+[A-Za-z0-9.]+)?", "must be a version such as 2.8", as_written=True
)
_SECRET = ByProvider(
    Text(), of_local=Text(f"env:{_VARIABLE}", "must name a variable of your own shell, as env:NAME", hidden=True)
)


class _Variables(Named):
    """Names of environment variables; those the launcher owns are refused."""

    def refused(self, name: str) -> str | None:
        if re.fullmatch(_LAUNCHER_OWNS, name):
            return "is set by the launcher on every process and cannot be given here"
        return None


class _Clouds(Named):
    """Providers that have a native request."""

    def refused(self, name: str) -> str | None:
        known = [provider for provider in providers_for([name]) if provider != "local"]
        if name in known:
            return None
        return f"unknown provider{did_you_mean(name, known) or '; known here: ' + ', '.join(known)}"

    def names(self) -> dict[str, Any]:
        return {"enum": list(CLOUDS)}


_CLOUDS = _Clouds("a provider", r"[\s\S]*", "must be a provider")
_CHANNELS = Named("a channel name", _VARIABLE, "a channel name must be an identifier such as train", folded=True)


class _OutputNames(Named):
    """Names of outputs; ``dir`` would take the variable of the run's own output folder."""

    def refused(self, name: str) -> str | None:
        return "is taken: CLOUDTRAIN_OUTPUT_DIR is the run's own output folder" if name.lower() == "dir" else None


_OUTPUTS = _OutputNames(
    "an output name", _VARIABLE, "an output name must be an identifier such as metrics", folded=True
)
_ENV = _Variables("a variable", _VARIABLE, "a variable's name must be made of A-Z a-z 0-9 _ and not begin with a digit")
_TAG = Text(r"[\s\S]{0,256}", "must have at most 256 characters", True)
_TAGS = Named("a tag", r"[^\x00-\x1f\ud800-\udfff]{1,128}", "a tag's name must have 1 to 128 printable characters")


class _AcceleratorName(Text):
    """A name from the catalogue; vendors' spellings become ours."""

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "examples": [row.name for row in accelerators()]}

    def check(self, value: object) -> str:
        text = super().check(value)
        try:
            return accelerator(text).name
        except UnknownAccelerator as error:
            raise wrong(f"{kind(text)} {error}") from None


class _Version(Whole):
    """The one format there is."""

    def check(self, value: object) -> int:
        try:
            return super().check(value)
        except PydanticCustomError:
            raise wrong(f"must be 1, the only format that this cloudtrain reads, not {kind(value)}") from None


class Resources(Section):
    """The machines of the job. Without an accelerator it runs on CPUs."""

    nodes: Annotated[int, Whole(1, 10_000)] = Field(default=1, description="How many machines train together.")
    accelerator: Annotated[str | None, _AcceleratorName()] = Field(
        default=None,
        description="The accelerator of every node, by its catalogue name such as A100-80GB; leave out for CPU.",
    )
    accelerators_per_node: Annotated[int | None, Whole(1, 1024)] = Field(
        default=None, description="How many accelerators every node has. Default: 1 where an accelerator is named."
    )
    processes_per_node: Annotated[int | None, Whole(1, 1024)] = Field(
        default=None, description="How many training processes every node runs. Default: accelerators_per_node, or 1."
    )
    instance: Annotated[PerProvider[str] | None, ByProvider(Text())] = Field(
        default=None, description="The machine type, in each provider's own name. Default: chosen from the catalogue."
    )
    disk_gib: Annotated[PerProvider[int] | None, ByProvider(Whole(1))] = Field(
        default=None, description="Disk of every node, in GiB; one for all or one per provider."
    )
    shm_gib: Annotated[PerProvider[int] | None, ByProvider(Whole(1))] = Field(
        default=None, description="Shared memory of every node, in GiB; one for all or one per provider."
    )

    @property
    def processes(self) -> int:
        """Processes on every node for a framework that wants one per accelerator."""
        return self.processes_per_node or self.accelerators_per_node or 1

    def instance_for(self, provider: Provider) -> str | None:
        """The machine type named for a provider; None: to be chosen."""
        return for_provider(self.instance, provider)

    def disk_for(self, provider: Provider) -> int | None:
        """Disk of every node with a provider, in GiB; None: not said."""
        return for_provider(self.disk_gib, provider)

    def shm_for(self, provider: Provider) -> int | None:
        """Shared memory of every node with a provider, in GiB; None: not said."""
        return for_provider(self.shm_gib, provider)

    @classmethod
    def rules(cls, given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        if "accelerators_per_node" in given and not {"accelerator", "instance"} & set(given):
            yield flaw(("accelerators_per_node",), "needs accelerator: or instance: beside it, to say what is counted")


class Environment(Section):
    """What the training processes find on every node."""

    image: Annotated[PerProvider[str] | None, ByProvider(Text())] = Field(
        default=None,
        description="Container image, one for all or one per provider. Default: a current image that fits.",
    )
    torch: Annotated[PerProvider[str] | None, ByProvider(_TORCH)] = Field(
        default=None,
        description="Version of torch that the image should hold, such as 2.8; one for all or per provider.",
    )
    requirements: Annotated[
        str | None, Text(_INSIDE, "must be a file inside the code folder, such as requirements.txt")
    ] = Field(default=None, description="A pip requirements file, seen from the code folder, installed on every node.")
    env: Annotated[Mapping[str, Annotated[str, Text(as_written=True)]], _ENV] = Field(
        default={}, description="Environment variables of the training processes; values are the text as written."
    )
    secrets: Annotated[Mapping[str, Annotated[PerProvider[str], _SECRET]], _ENV] = Field(
        default={},
        description="Variables whose values are fetched inside the job and never stand in the request: each provider's "
        "name of the secret; for local env:NAME, a variable of your shell.",
    )

    def image_for(self, provider: Provider) -> str | None:
        """The image named for a provider; None: to be chosen."""
        return for_provider(self.image, provider)

    def torch_for(self, provider: Provider) -> str | None:
        """The version of torch wanted with a provider; None: not said."""
        return for_provider(self.torch, provider)

    def secrets_for(self, provider: Provider) -> dict[str, str | None]:
        """Variable -> the provider's name of its secret; None where the job says nothing for this provider."""
        return {name: for_provider(value, provider) for name, value in self.secrets.items()}

    @classmethod
    def rules(cls, given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        env = given.get("env")
        for name in as_mapping(given.get("secrets")):
            if name in as_mapping(env):
                yield flaw(("secrets", name), "is also in env; keep it in one of the two", at_key=True)


class Channel(Section):
    """One named input of the job."""

    uri: Annotated[PerProvider[str], ByProvider(Text())] = Field(
        description="Where the data lies: one place, or one per provider; for local a path seen from the job file."
    )
    mode: Annotated[Mode | None, Choice(get_args(Mode))] = Field(
        default=None, description="How nodes read it, as far as the provider can. Default: what the provider does best."
    )
    shard: Annotated[Shard, Choice(get_args(Shard))] = Field(
        default="replicate",
        description="replicate: every node sees all of it; by-object: every node gets some of the objects.",
    )

    def uri_for(self, provider: Provider) -> str | None:
        """The place named for a provider; None where the job names none."""
        return for_provider(self.uri, provider)


class Checkpoint(Section):
    """Where a job continues from after an interruption."""

    uri: Annotated[PerProvider[str] | None, ByProvider(Text())] = Field(
        default=None, description="Where checkpoints are kept. Default: beside the run."
    )
    keep: Annotated[int, Whole(1)] = Field(default=3, description="How many of the newest checkpoints are kept.")
    every: Duration | None = Field(default=None, description="How often one is written. Default: the script decides.")

    def uri_for(self, provider: Provider) -> str | None:
        """The place named for a provider; None: beside the run."""
        return for_provider(self.uri, provider)


class Spot(Section):
    """Capacity that costs less and may be taken away."""

    enabled: Annotated[bool, Switch()] = Field(default=False, description="Whether to use it.")
    max_wait: Duration | None = Field(default=None, description="How long the job may take in all, waiting included.")


class Retries(Section):
    """How often a job is started again, by what ended it."""

    preemption: Annotated[int, Whole(0, 1000)] = Field(default=10, description="After its capacity was taken away.")
    capacity: Annotated[int, Whole(0, 1000)] = Field(default=3, description="After no capacity was found.")
    failure: Annotated[int, Whole(0, 1000)] = Field(default=0, description="After the script failed.")


class Limits(Section):
    """Where a job is stopped."""

    runtime: Duration | None = Field(default=None, description="Longest time it may run.")
    pending: Duration | None = Field(default=None, description="Longest time it may wait for capacity.")
    cost_usd: Annotated[float | None, Positive()] = Field(default=None, description="Most it may cost, in US dollars.")


class Source:
    """Where a job was read; never takes part in comparing or writing jobs."""

    def __init__(
        self,
        file: Path | None = None,
        folder: Path | None = None,
        places: Mapping[tuple[Key, bool], tuple[int, int]] | None = None,
    ) -> None:
        self.file, self.folder, self.places = file, folder, places or {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source)

    def __hash__(self) -> int:
        return hash(Source)

    def placed(self, problem: Problem) -> Problem:
        """The problem with the place in the file where its key, or the nearest one above it, stands."""
        path, at_key = problem.path, problem.at_key
        while path and (path, at_key) not in self.places:
            path, at_key = path[:-1], False
        line, column = self.places.get((path, at_key), (0, 0))
        return problem._replace(file=str(self.file or ""), line=line, column=column)


class Job(Section):
    """One data-parallel training job, the same for every provider."""

    version: Annotated[Literal[1], _Version(1, 1)] = Field(default=1, description="Version of the job file's format.")
    name: Annotated[
        str,
        Text(
            r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?",
            "must be 1 to 40 of a-z 0-9 -, beginning and ending with a letter or digit",
        ),
    ] = Field(description="What people call the job.")
    entry: Annotated[
        str | None, Text(_INSIDE, "must be a script inside the code folder, such as train.py (a class: use task)")
    ] = Field(default=None, description="The training script, seen from the code folder. One of entry, module, task.")
    module: Annotated[
        str | None, Text(rf"{_VARIABLE}(?:\.{_VARIABLE})*", "must be a module's dotted name, such as pkg.train")
    ] = Field(default=None, description="The training module, as for python -m. One of entry, module, task.")
    task: Annotated[
        str | None, Text(rf"{_INSIDE}\.py:{_VARIABLE}", "must be a file and a class, such as tasks.py:Digits")
    ] = Field(
        default=None, description="A class that gives model, data, loss and optimizer. One of entry, module, task."
    )
    args: Annotated[Args, Arguments()] = Field(
        default={},
        description="Arguments of the script: a mapping of long options, or a list of words. Text stays as written.",
    )
    code: Annotated[str, Text(r"[^\x00-\x1f]+", "must be a folder, such as .")] = Field(
        default=".", description="The folder that ships with the job, seen from the job file."
    )
    framework: Annotated[Framework, Choice(get_args(Framework))] = Field(
        default="pytorch",
        description="pytorch, accelerate, lightning, deepspeed: one process per accelerator. tensorflow, jax, "
        "dataparallel: one process per node.",
    )
    resources: Resources = Field(default=Resources.model_construct(), description="The machines.")
    environment: Environment = Field(
        default=Environment.model_construct(), description="Image, packages, variables and secrets."
    )
    data: Annotated[Mapping[str, Channel], _CHANNELS] = Field(default={}, description="Named inputs.")
    outputs: Annotated[Mapping[str, Annotated[PerProvider[str], ByProvider(Text())]], _OUTPUTS] = Field(
        default={}, description="Named folders that come back, and where to."
    )
    checkpoint: Checkpoint = Field(
        default=Checkpoint.model_construct(), description="Where and how often progress is saved."
    )
    spot: Spot = Field(default=Spot.model_construct(), description="Cheaper capacity that may be taken away.")
    retries: Retries = Field(default=Retries.model_construct(), description="How often the job is started again.")
    limits: Limits = Field(default=Limits.model_construct(), description="Where the job is stopped.")
    tags: Annotated[Mapping[str, Annotated[str, _TAG]], _TAGS] = Field(
        default={}, description="Labels for the provider's bills and searches."
    )
    overrides: Annotated[Mapping[str, Annotated[Mapping[str, Any], Native()]], _CLOUDS] = Field(
        default={}, description="Native fields of a provider's request, merged last."
    )

    _source: Source = PrivateAttr(default_factory=Source)

    @classmethod
    def rules(cls, given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        yield from _one_start(given)
        yield from _process_shape(given)
        yield from _references(given)

    def outputs_for(self, provider: Provider) -> dict[str, str | None]:
        """Output -> where a provider is to bring it; None where the job names no place."""
        return {name: for_provider(place, provider) for name, place in self.outputs.items()}

    @property
    def argv(self) -> list[str]:
        """The arguments as the script gets them; ``${data.x}`` and friends are still text."""
        return argv_of(self.args)

    @property
    def process_shape(self) -> ProcessShape:
        """Whether the framework wants a process for every accelerator or one for the whole node."""
        return "per-node" if self.framework in _PER_NODE else "per-accelerator"

    @property
    def processes(self) -> int:
        """Training processes on every node."""
        return 1 if self.process_shape == "per-node" else self.resources.processes

    @property
    def start(self) -> str:
        """The one of entry, module and task that is given, as written."""
        return self.entry or self.module or self.task or ""

    @property
    def file(self) -> Path | None:
        """The job file this job was read from; None if it was made in Python."""
        return self._source.file

    @property
    def folder(self) -> Path:
        """The folder all paths of the job are seen from: the job file's, or the current one."""
        return self._source.folder or Path.cwd()

    @property
    def code_folder(self) -> Path:
        """The folder that ships with the job, absolute."""
        return (self.folder / self.code).resolve()

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Job":
        """Read a job file. Raises JobFileError, which holds all problems with their lines and columns."""
        from cloudtrain.jobfile import load

        return load(Path(path))

    @classmethod
    def parse(cls, text: str | bytes, path: str | PathLike[str] | None = None) -> "Job":
        """Read the text of a job file; ``path`` is where it (would) lie. Raises JobFileError as ``load`` does."""
        from cloudtrain.jobfile import parse

        return parse(text, None if path is None else Path(path))

    def dump(self) -> str:
        """The job as YAML: only what differs from the defaults. ``Job.parse`` of it gives an equal job."""
        from cloudtrain.jobfile import dump

        return dump(self)

    def with_(self, **changes: Any) -> "Job":
        """A copy with changes, checked like a new job. A mapping is merged into what is there, None sets the default.

        ``job.with_(resources={"nodes": 4}, args={"epochs": 1})``. Raises JobFileError.
        """
        try:
            made = Job.model_validate(merged(self.given(), changes))
        except ValidationError as error:
            raise JobFileError(problems_of(error)) from None
        made._source = self._source
        return made

    def given(self) -> dict[str, Any]:
        """The job as plain data: only what differs from the defaults, sections as mappings."""
        return self.model_dump(exclude_defaults=True)

    def check_files(self) -> tuple[Problem, ...]:
        """What the job names in its code folder that is not there, placed in the job file where one was read."""
        return tuple(map(self.placed, missing_files(self)))

    def placed(self, problem: Problem) -> Problem:
        """A problem of this job with its place in the job file, where one was read."""
        return self._source.placed(problem)


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """``old`` with ``new`` laid over it, mapping by mapping."""
    both = dict(old)
    for key, value in new.items():
        below = both.get(key)
        both[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return both


def _one_start(given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    starts = [name for name in given if name in ("entry", "module", "task")]
    if not starts:
        yield flaw((), "says not what to run: give one of entry, module, task")
    for name in starts[1:]:
        yield flaw((name,), f"cannot stand beside {starts[0]}: give exactly one of entry, module, task", at_key=True)


def _process_shape(given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    framework, wanted = given.get("framework"), as_mapping(given.get("resources")).get("processes_per_node")
    if isinstance(framework, str) and framework in _PER_NODE and not absent(wanted) and str(wanted) != "1":
        yield flaw(("resources", "processes_per_node"), f"must be 1 or left out: {framework} runs one process per node")


def _references(given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    names = {section: [str(key) for key in as_mapping(given.get(section))] for section in ("data", "outputs")}
    env = as_mapping(given.get("environment")).get("env")
    for path, text in (*texts(given.get("args"), ("args",)), *texts(env, ("environment", "env"))):
        yield from reference_flaws(path, text, names)
