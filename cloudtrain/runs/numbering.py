"""Runs of the same job, code and settings: ``digits-3f9c2b71aa``, then ``digits-3f9c2b71aa-2``; which comes next."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cloudtrain.errors import RefusedError
from cloudtrain.providers import registry
from cloudtrain.providers.local.standing import describe
from cloudtrain.record.state import State
from cloudtrain.runs.ledger import Entry, Ledger


class Outlook(NamedTuple):
    """What a submit would come to, as far as the ledger knows: nobody is asked."""

    number: int
    going_on: Entry | None = None
    """The run that it would take up, which has that number."""
    before: Entry | None = None
    """The one that has ended, after which the next one would be made."""


def outlook(family: str) -> Outlook:
    """For a job whose first run is called ``family``. Raises MissingError for a ledger that cannot be read."""
    if not Ledger.exists():
        return Outlook(1)
    with Ledger.open() as ledger:
        runs = {number_of(entry): _now(entry) for entry in ledger.family(family)}
    number = first_to_look_at(runs.values())
    while (entry := runs.get(number)) and (is_over(entry) or _goes_on(entry)):
        if _goes_on(entry):
            return Outlook(number, going_on=entry)
        number += 1
    return Outlook(number, before=runs.get(number - 1))


def run_id_of(family: str, number: int) -> str:
    """Of the run with this number, counted from 1."""
    return family if number == 1 else f"{family}-{number}"


def number_of(entry: Entry) -> int:
    """See ``run_id_of``."""
    return 1 if entry.run_id == entry.family else int(entry.run_id.rpartition("-")[2])


def first_to_look_at(family: Collection[Entry]) -> int:
    """The number of the first run that may go on; all those before it have ended."""
    numbers = [number_of(entry) for entry in family if not entry.state.is_final]
    return min(numbers, default=max(1, len(family)))


def is_over(entry: Entry | None) -> bool:
    """Whether the ledger knows of its end; what was refused before it began may be tried again under its name."""
    return entry is not None and (entry.attempt > 1 or (entry.state.is_final and bool(entry.native_id)))


def _goes_on(entry: Entry) -> bool:
    return bool(entry.native_id) and not entry.state.is_final


def _now(entry: Entry) -> Entry:
    """Of a local run, which can be looked at for nothing, how it stands now. One whose folder was removed while it went
    on is made again."""
    if entry.provider != registry.LOCAL or not _goes_on(entry):
        return entry
    try:
        return replace(entry, state=describe(Path(entry.native_id)).state)
    except RefusedError:
        return replace(entry, state=State.PENDING, native_id="")
