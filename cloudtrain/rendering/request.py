"""The request of a job: everything that it depends on is collected here, then a pure function makes it."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

from cloudtrain.errors import SpecError
from cloudtrain.providers import registry
from cloudtrain.providers.base import Context, Request, Shipped
from cloudtrain.providers.identity import code_digest, run_id_of
from cloudtrain.providers.places import lying_here
from cloudtrain.providers.shipping import bundle_of, entrypoints_digest
from cloudtrain.settings import Settings, settings_for
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.job import Job

MOST_ATTEMPTS = 9999


def render(
    job: Job | str | PathLike[str], provider: str, *, settings: Mapping[str, str] | None = None, attempt: int = 1
) -> Request:
    """The request with which ``job`` (or the job file at a path) is submitted to a cloud: ``Request.native``.

    Offline: no account, network or vendor package is needed. ``settings`` win over cloudtrain.toml and the environment;
    a placeholder stands for each that is needed and missing, and ``Request.notes`` says so. Equal job, code and
    settings give an equal request, byte for byte. Raises JobFileError with all that the provider refuses, and why;
    SpecError for a provider, settings or an attempt that cannot be, or code that cannot ship.
    """
    loaded = _loaded(job)
    return request_for(loaded, provider, bundle_of(loaded), settings=settings, attempt=attempt)


def request_for(
    job: Job, provider: str, bundle: Bundle, *, settings: Mapping[str, str] | None = None, attempt: int = 1
) -> Request:
    """``render`` for a job whose code has been looked at."""
    name = registry.known(provider)
    if isinstance(attempt, bool) or not isinstance(attempt, int) or not 1 <= attempt <= MOST_ATTEMPTS:
        raise SpecError(f"attempt must be a whole number from 1 to {MOST_ATTEMPTS}, not {shown(attempt)}")
    if settings is not None and not isinstance(settings, Mapping):
        raise SpecError(f"settings must be a mapping such as {{'region': 'eu-west-1'}}, not {shown(settings)}")
    chosen = settings_for(name, job.folder, given=settings)
    placed, ships, notes = with_data(job, chosen)
    made = registry.translate(placed, context_for(placed, chosen, bundle, attempt))
    unset = (_placeholders(chosen),) if chosen.missing else ()
    return made._replace(ships=(*made.ships, *ships), notes=(*unset, *notes, *made.notes))


def with_data(job: Job, settings: Settings) -> tuple[Job, tuple[Shipped, ...], tuple[str, ...]]:
    """The job with a place for every channel that lies here alone, what has to be sent there, and what to say of it.
    Raises MissingError for files that cannot be read."""
    if not lying_here(job, settings.provider):
        return job, (), ()
    from cloudtrain.providers.localdata import placed  # few jobs have such channels, and loading this takes a moment

    return placed(job, settings)


def context_for(job: Job, settings: Settings, bundle: Bundle, attempt: int = 1) -> Context:
    """What the request depends on besides the job."""
    entrypoints = entrypoints_digest()
    code = code_digest(entrypoints, bundle.digest)
    run_id = run_id_of(job, settings.provider, settings, code)
    return Context(settings, bundle.digest, entrypoints, run_id, attempt)


def _loaded(job: Job | str | PathLike[str]) -> Job:
    from cloudtrain.job import Job

    return job if isinstance(job, Job) else Job.load(job)


def _placeholders(settings: Settings) -> str:
    names = ", ".join(f"{settings.provider}.{name}" for name in settings.missing)
    return f"placeholders stand for {names}: set them in cloudtrain.toml or with --set before submitting"
