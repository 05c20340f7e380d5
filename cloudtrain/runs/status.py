"""How a run stands, for people and programs: what ``Run.status`` returns and ``--json`` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cloudtrain.record.state import State

if TYPE_CHECKING:
    from cloudtrain.providers.port import Description
    from cloudtrain.runs.ledger import Entry


@dataclass(frozen=True)
class RunStatus:
    """A run at one moment."""

    run_id: str
    provider: str
    state: State
    reason: str | None
    """What failed first, or what the provider says of the end; None while there is nothing to say."""
    exit_code: int | None
    """What a command that follows the run exits with; None while the run goes on, or the provider may yet say why it
    ended."""
    vendor_state: str = ""
    """The provider's own words for the state."""
    cause: str = ""
    """The class of a failure: see ``providers.port.Cause``."""
    attempt: int = 1
    native_id: str = ""
    """The name by which the provider knows this attempt; for a local run its folder."""
    url: str = ""
    created: float | None = None
    """Seconds since the epoch, as are the others."""
    started: float | None = None
    ended: float | None = None
    nodes: int = 0
    restarts: int = 0

    @classmethod
    def of(cls, run_id: str, seen: Description) -> RunStatus:
        """From what a provider said."""
        code = seen.exit_code
        if code is None and seen.state.is_final and seen.settled:
            code = seen.state.exit_code
        return cls(
            run_id=run_id,
            provider=seen.provider,
            state=seen.state,
            reason=seen.reason or None,
            exit_code=code,
            vendor_state=seen.vendor_state,
            cause=seen.cause,
            attempt=seen.attempt,
            native_id=seen.native_id,
            url=seen.url,
            created=seen.created,
            started=seen.started,
            ended=seen.ended,
            nodes=seen.nodes,
            restarts=seen.restarts,
        )

    @classmethod
    def of_entry(cls, entry: Entry) -> RunStatus:
        """As the ledger last saw it."""
        return cls(
            run_id=entry.run_id,
            provider=entry.provider,
            state=entry.state,
            reason=entry.reason or None,
            exit_code=entry.state.exit_code if entry.state.is_final else None,
            vendor_state=entry.vendor_state,
            cause=entry.cause,
            attempt=entry.attempt,
            native_id=entry.native_id,
            url=entry.url,
            created=entry.created,
            started=entry.started,
            ended=entry.ended,
            nodes=entry.nodes,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {**asdict(self), "state": self.state.value}
