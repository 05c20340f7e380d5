"""Which run a user means: by its id, the beginning of one, ``latest``, or the name that the provider has for it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from cloudtrain.errors import NotFoundError, SpecError, did_you_mean
from cloudtrain.providers import registry
from cloudtrain.runs.ledger import Entry, Ledger
from cloudtrain.runs.listing import newest, only_here
from cloudtrain.runs.run import LOCAL, Run
from cloudtrain.spec.problems import shown

LATEST = "latest"
_SHOWN = 5
_LOOKED_FOR = 200
_MOST_COMPARED = 1000


def find_run(text: str, folder: Path = Path(), attempt: int | None = None) -> Run:
    """The run that ``text`` names; ``folder`` is where the job file lies, for local runs and for the settings.
    ``attempt``: which of its attempts, counted from 1; None for the newest, or the one that is named.

    Raises SpecError if there is none, or more than one.
    """
    found = _found(text, folder)
    return found if attempt is None else _at_attempt(found, attempt)


def _at_attempt(found: Run, attempt: int) -> Run:
    """By the ledger; an attempt that was made elsewhere by the provider, who may have to look at many jobs."""
    if (kept := _kept_attempt(found.run_id, attempt)) is not None:
        return Run.of(kept)
    there = {seen.attempt: seen.native_id for seen in found.client.list(found.run_id)}
    if attempt not in there:
        known = ", ".join(map(str, sorted(there))) or "none"
        raise SpecError(f"run {found.run_id} has no attempt {attempt}; its attempts: {known}")
    return found.at(there[attempt])


def _kept_attempt(run_id: str, attempt: int) -> Entry | None:
    if not Ledger.exists():
        return None
    with Ledger.open() as ledger:
        entry = ledger.at_attempt(run_id, attempt)
    return entry if entry and entry.native_id else None


def _found(text: str, folder: Path) -> Run:
    provider, colon, name = text.partition(":")
    if colon:
        return _by_native(registry.known(provider, local=True), name, folder)
    if text == LATEST:
        return _latest(folder)
    return (_in_ledger(text) if text else None) or _in_project(text, folder)


def _by_native(provider: str, name: str, folder: Path) -> Run:
    """A job as the provider calls it, whoever has made it."""
    if not name:
        raise SpecError(f"{provider}: needs the name of a job behind it")
    entry = _entry_by_native(provider, name)
    if entry and entry.native_id:
        return Run.of(entry)
    if provider == LOCAL:
        return _in_project(name, folder)
    from cloudtrain.providers.account import account_of

    account = account_of(provider, folder)
    try:
        with closing(registry.connect(provider, account)) as client:
            native_id = client.native_id(name)
            seen = client.describe(native_id)
    except NotFoundError as error:
        asked = ", ".join(f"{key} {value}" for key, value in account.items())
        raise SpecError(
            f"there is no run {shown(name)} on {provider}",
            hint=f"asked for in {asked}; it may be elsewhere, or deleted. cloudtrain runs lists what is known here",
        ) from error
    return Run(provider, native_id, account, run_id=seen.run_id or native_id, state=seen.state)


def _entry_by_native(provider: str, name: str) -> Entry | None:
    if not Ledger.exists():
        return None
    with Ledger.open() as ledger:
        return ledger.by_native(provider, name)


def _latest(folder: Path) -> Run:
    entry = newest(folder)
    if entry is None:
        raise SpecError("no run has been made yet", hint="cloudtrain submit JOB --provider P, or cloudtrain run JOB")
    return _created(entry)


def _in_ledger(text: str) -> Run | None:
    if not Ledger.exists():
        return None
    with Ledger.open() as ledger:
        exact = ledger.entry(text)
        found = [exact] if exact else ledger.beginning_with(text, _LOOKED_FOR)
        if not found and (native := _as_native(ledger, text)):
            found = [native]
    if len(found) > 1:
        raise _not_one(text, found)
    return _created(found[0]) if found else None


def _as_native(ledger: Ledger, text: str) -> Entry | None:
    """``digits-3f9c2b71aa-a1``: what consoles show is taken without its provider, too."""
    return next((entry for name in registry.every() if (entry := ledger.by_native(name, text))), None)


def _in_project(text: str, folder: Path) -> Run:
    """A run that lies in the project's folder and is not in the ledger."""
    here = only_here(folder, None)
    found = [entry for entry in here if text in (entry.run_id, entry.native_name)]
    found = found or [entry for entry in here if text and entry.run_id.startswith(text)]
    if len({entry.run_id for entry in found}) > 1:
        raise _not_one(text, found)
    if found:
        return Run.of(max(found, key=lambda entry: entry.attempt))
    known = {entry.run_id for entry in here}
    if Ledger.exists():
        with Ledger.open() as ledger:
            known |= {entry.run_id for entry in ledger.runs(_MOST_COMPARED)}
    hint = "cloudtrain runs lists them" if known else "no run has been made yet"
    raise SpecError(f"there is no run {shown(text)}{did_you_mean(text, known)}", hint=hint)


def _not_one(text: str, found: list[Entry]) -> SpecError:
    names = ", ".join(entry.run_id for entry in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    more += " or so" if len(found) >= _LOOKED_FOR else ""
    return SpecError(
        f"{shown(text)} is the beginning of more than one run: {names}{more}", hint="cloudtrain runs lists them"
    )


def _created(entry: Entry) -> Run:
    """Of a run whose submit was cut off nobody knows whether it exists: the provider is asked."""
    if entry.native_id:
        return Run.of(entry)
    from cloudtrain.runs.resuming import found_again

    return found_again(entry)
