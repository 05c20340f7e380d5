"""What all providers have in common: the values that go in and out of their pure functions.

    context  -> what a request depends on besides the job: settings, digests, run id, attempt
    Request  -> what ``translate`` makes: the native request, and what must lie where before it is sent
    Capability -> what becomes of one field of the job file with one provider

Nothing here reads a clock, a file, the network or the environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from cloudtrain.providers.identity import code_digest
from cloudtrain.spec.problems import JobFileError, dotted, problem_at

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.settings import Settings
    from cloudtrain.spec.problems import Path

Support = Literal["native", "launcher", "client", "refused"]
"""native: a field of the request. launcher: done by launch.py on the node. client: for cloudtrain to keep while it
follows the run, which it does not yet. refused: an error that gives the reason."""


class Capability(NamedTuple):
    """What becomes of one field of the job file."""

    field: str
    """Dotted, ``*`` for a name: ``resources.shm_gib``, ``data.*.mode=stream`` (that value of the field alone)."""
    support: Support
    how: str
    """The native field and what to know about it; for ``refused`` the reason and what to do instead."""


class Context(NamedTuple):
    """What a request depends on besides the job."""

    settings: Settings
    bundle: str
    """Digest (sha256, hex) of the code that ships."""
    entrypoints: str
    """Digest (sha256, hex) of launch.py and what travels with it."""
    run_id: str
    """Names the run in the cloud; the same for all its attempts."""
    attempt: int = 1

    @property
    def code(self) -> str:
        """Name of the folder that holds both: equal content lies there already."""
        return code_digest(self.entrypoints, self.bundle)


class Shipped(NamedTuple):
    """Something that must lie somewhere before the request is sent."""

    kind: Literal["code", "spec", "data"]
    """code: launch.py, what travels with it, and code.tar.gz; spec: spec.json; data: the files of a channel."""
    to: str
    """Folder: a URI that ends with a slash, or a path seen from the request's own file."""
    source: str = ""
    """data: the folder or file here."""


class Chosen(NamedTuple):
    """A choice that the job left to us."""

    field: str
    value: str
    reason: str


class Request(NamedTuple):
    """What one attempt of a job is for a provider."""

    provider: str
    name: str
    """Native name of this attempt."""
    native: dict[str, Any]
    """The request, as the service's API or the vendor's own job form has it. Plain dicts, lists and scalars."""
    spec: dict[str, Any]
    """What launch.py is to run: the content of spec.json."""
    ships: tuple[Shipped, ...]
    chosen: tuple[Chosen, ...] = ()
    notes: tuple[str, ...] = ()
    """What the user should know: stale images, idle accelerators, who else decides."""
    account: Mapping[str, str] = {}
    """What a call needs beside the request, by the names of our settings: region, project, subscription ..."""
    warnings: tuple[str, ...] = ()
    """Those of the notes that must not be overlooked when the job is submitted."""


class NativeProblem(NamedTuple):
    """Something the service would refuse."""

    path: Path
    """In the native request."""
    message: str
    """What is wrong, with the limit, and what would be right."""
    unknown: bool = False
    """No such field is known: the key itself is wrong, not its value."""

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.message}" if self.path else self.message


class NativeCheck(NamedTuple):
    """What the native checks found."""

    problems: tuple[NativeProblem, ...]
    skipped: str = ""
    """What could not be checked for want of the vendor's package, and which extra to install; "" if all was."""


class Export(NamedTuple):
    """The way out: what submits the same job without cloudtrain."""

    files: Mapping[str, str]
    """Path below the output folder -> text; the code folder and spec.json are put beside them."""
    commands: tuple[str, ...]
    """Shell commands, to be run in the output folder, in this order."""


class NodeContract(NamedTuple):
    """What the service gives one node, for ``run --as`` and the emulator."""

    env: Mapping[str, str]
    """The container's environment: the request's and the platform's. ``{root}`` stands for the node's own folder."""
    files: Mapping[str, str]
    """Path below the node's folder -> text."""
    places: Mapping[str, str]
    """Path below the node's folder -> what lies there: ``code``, ``spec``, ``data:NAME``, ``checkpoints``, ``model``,
    ``output``, ``output:NAME``, ``metrics``."""


def at_value(path: Path, given: object, provider: str) -> Path:
    """Where a field's value for a provider stands: at the field, or below it if it has one for each."""
    return (*path, provider) if isinstance(given, Mapping) else path


def refuse(job: Job, found: Iterable[tuple[Path, str]]) -> None:
    """Raises JobFileError with all that was found, each at its place in the job file; nothing where there is none."""
    if problems := [job.placed(problem_at(path, message)) for path, message in found]:
        raise JobFileError(problems)
