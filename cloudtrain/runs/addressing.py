"""Which run a user means: by its id, the beginning of one, ``latest``, or the name that the provider has for it."""

from __future__ import annotations

from pathlib import Path

from cloudtrain.errors import SpecError, did_you_mean
from cloudtrain.providers import registry
from cloudtrain.runs.folder import RunFolder
from cloudtrain.runs.ledger import Entry, Ledger
from cloudtrain.runs.run import LOCAL, Run
from cloudtrain.spec.problems import shown

LATEST = "latest"
_SHOWN = 5


def find_run(text: str, folder: Path = Path()) -> Run:
    """The run that ``text`` names; ``folder`` is where the job file lies, for local runs and for the settings.

    Raises SpecError if there is none, or more than one.
    """
    provider, colon, name = text.partition(":")
    if colon:
        return _by_native(registry.known(provider, local=True), name, folder)
    if text == LATEST:
        return _latest(folder)
    return _in_ledger(text) or _in_project(text, folder)


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
    return Run(provider, registry.connect(provider, account).native_id(name), account)


def _entry_by_native(provider: str, name: str) -> Entry | None:
    if not Ledger.exists():
        return None
    with Ledger.open() as ledger:
        return ledger.by_native(provider, name)


def _latest(folder: Path) -> Run:
    """The newest run of this project, here or on a cloud; without one the newest of all."""
    entries: list[Entry] = []
    if Ledger.exists():
        with Ledger.open() as ledger:
            entries = ledger.runs(1, project=str(folder.resolve())) or ledger.runs(1)
    try:
        local = RunFolder.find(folder, LATEST)
    except SpecError:
        local = None
    if local and (not entries or entries[0].created < local.path.stat().st_mtime):
        return _local(local)
    if not entries:
        raise SpecError("no run has been made yet", hint="cloudtrain submit JOB --provider P, or cloudtrain run JOB")
    return _created(entries[0])


def _in_ledger(text: str) -> Run | None:
    if not Ledger.exists():
        return None
    with Ledger.open() as ledger:
        exact = ledger.entry(text)
        found = [exact] if exact else ledger.beginning_with(text)
        if not found and (native := _as_native(ledger, text)):
            found = [native]
    if len(found) > 1:
        names = ", ".join(entry.run_id for entry in found[:_SHOWN])
        raise SpecError(f"{shown(text)} is the beginning of more than one run: {names}")
    return _created(found[0]) if found else None


def _as_native(ledger: Ledger, text: str) -> Entry | None:
    """``digits-3f9c2b71aa-a1``: what consoles show is taken without its provider, too."""
    return next((entry for name in registry.NAMES if (entry := ledger.by_native(name, text))), None)


def _in_project(text: str, folder: Path) -> Run:
    try:
        return _local(RunFolder.find(folder, text))
    except SpecError as error:
        known = []
        if Ledger.exists():
            with Ledger.open() as ledger:
                known = [entry.run_id for entry in ledger.runs(1000)]
        near = did_you_mean(text, known)
        raise SpecError(
            f"there is no run {shown(text)}{near}", hint=error.hint if not known else "cloudtrain runs lists them"
        ) from None


def _local(folder: RunFolder) -> Run:
    return Run(LOCAL, str(folder.path), {})


def _created(entry: Entry) -> Run:
    """Of a run whose submit was cut off nobody knows whether it exists: the provider is asked."""
    if entry.native_id:
        return Run.of(entry)
    from cloudtrain.runs.submission import found_again

    return found_again(entry)
