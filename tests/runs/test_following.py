"""A follower ends with the run and not before its last line, whatever the service answers meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import pytest

from cloudtrain.errors import RefusedError, UnreachableError
from cloudtrain.providers.port import Client, Cursor, Description, LogLine, LogPage
from cloudtrain.record.observer import Observer
from cloudtrain.record.state import State
from cloudtrain.runs.following import Follower
from cloudtrain.runs.run import Run

UNREACHABLE = UnreachableError("no answer")


class Service:
    """A provider whose answers are written down beforehand; the last one of each kind is repeated."""

    poll_seconds = 0.001
    settle_seconds = 0.01

    def __init__(
        self, states: Iterable[State | Description | Exception], pages: Iterable[list[str] | Exception]
    ) -> None:
        self.states = list(states)
        self.pages = list(pages)

    def describe(self, native_id: str) -> Description:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, Exception):
            raise state
        if isinstance(state, Description):
            return state
        return Description("vertex", native_id, "digits-a1", state, state.value)

    def logs(self, native_id: str, cursor: Cursor) -> LogPage:  # noqa: ARG002 - the port's
        page = self.pages.pop(0) if self.pages else []
        if isinstance(page, Exception):
            raise page
        number = int(cursor.get("number", 0))
        lines = tuple(LogLine(0, 0, text) for text in page)
        return LogPage(lines, {"number": number + 1}, caught_up=not page)


class Heard(Observer):
    def __init__(self) -> None:
        self.states: list[State] = []
        self.lines: list[str] = []
        self.notes: list[str] = []

    def state(self, state: State) -> None:
        self.states.append(state)

    def line(self, node: int, rank: int | None, text: str) -> None:  # noqa: ARG002 - the observer's
        self.lines.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)


def followed(service: Service) -> Heard:
    heard = Heard()
    seen = Follower(cast(Client, service), "digits", heard, None).run()
    assert seen.state.is_final
    return heard


def handle(service: Service) -> Any:
    run = Run("vertex", "digits", {})
    run.__dict__["client"] = service  # the property is a cached one
    return run


WAYS: list[Callable[[Service], list[str]]] = [
    lambda service: followed(service).lines,
    lambda service: [line.text for line in handle(service).logs(follow=True)],
]


@pytest.mark.parametrize("lines_of", WAYS)
def test_the_last_lines_are_waited_for_while_the_log_cannot_be_read(lines_of: Callable[[Service], list[str]]) -> None:
    pages: list[list[str] | Exception] = [["one"], [], *[UNREACHABLE] * 50, ["two"], [], [], UNREACHABLE, ["three"]]
    service = Service([State.RUNNING, State.SUCCEEDED], pages)
    assert lines_of(service) == ["one", "two", "three"]


@pytest.mark.parametrize("lines_of", WAYS)
def test_a_service_that_is_away_for_a_while_is_waited_for(lines_of: Callable[[Service], list[str]]) -> None:
    states = [State.RUNNING, *[UNREACHABLE] * 20, State.RUNNING, State.FAILED]
    service = Service(states, [UNREACHABLE, ["one"], [], [], UNREACHABLE, ["two"]])
    assert lines_of(service) == ["one", "two"]


def test_lines_that_may_not_be_read_leave_the_end_to_be_seen() -> None:
    heard = followed(Service([State.RUNNING, State.RUNNING, State.SUCCEEDED], [RefusedError("no right to read logs")]))
    assert heard.states == [State.RUNNING, State.SUCCEEDED]
    assert heard.notes == ["without log lines: no right to read logs"]


def test_whoever_wants_lines_alone_hears_that_they_may_not_be_read() -> None:
    with pytest.raises(RefusedError, match="no right"):
        list(handle(Service([State.RUNNING], [RefusedError("no right to read logs")])).logs(follow=True))


def test_credentials_that_have_run_out_end_the_following() -> None:
    with pytest.raises(RefusedError, match="expired"):
        followed(Service([State.RUNNING, RefusedError("the token has expired")], []))


def test_a_job_that_waits_for_machines_again_is_restarting() -> None:
    states = [State.PENDING, State.PROVISIONING, State.PENDING, State.RUNNING, State.PENDING, State.PROVISIONING]
    heard = followed(Service([*states, State.RUNNING, State.UNKNOWN, State.SUCCEEDED], []))
    assert [str(state) for state in heard.states] == [
        "PENDING", "PROVISIONING", "RUNNING", "RESTARTING", "RUNNING", "UNKNOWN", "SUCCEEDED",
    ]  # fmt: skip
    assert heard.notes == ["vertex calls the state 'UNKNOWN', which cloudtrain does not know"]


def test_why_a_run_failed_is_waited_for() -> None:
    """It is told at once that it has, and what it comes to is what the service says in the end."""
    unclear = Description("vertex", "digits", "digits-a1", State.FAILED, "FAILED", "not said yet", settled=False)
    taken = Description("vertex", "digits", "digits-a1", State.PREEMPTED, "FAILED", "taken away", "preempted")
    heard = Heard()
    service = Service([State.RUNNING, unclear, unclear, UNREACHABLE, unclear, taken], [["one"], [], [], ["two"]])
    seen = Follower(cast(Client, service), "digits", heard, None).run()
    assert seen == taken
    assert heard.states == [State.RUNNING, State.FAILED, State.PREEMPTED]
    assert heard.lines == ["one", "two"]
    assert heard.notes == ["FAILED: not said yet", "no answer, asking again: no answer"]
    status = handle(Service([State.RUNNING, unclear, unclear, taken], [])).wait()
    assert (status.state, status.exit_code, status.reason) == (State.PREEMPTED, 143, "taken away")
    assert handle(Service([unclear], [])).status().exit_code is None
