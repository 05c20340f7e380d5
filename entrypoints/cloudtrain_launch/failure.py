"""What failed, and which failure came first.

When one rank dies its peers' collectives break within milliseconds, each with an error of its own. The report must
lead with the cause: the earliest failure that is not such an echo.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from cloudtrain_launch import exits

# What gloo, NCCL and TCPStore say when the other side went away.
_ECHO = re.compile(
    r"connection (was )?(closed|reset) by (remote )?peer|broken pipe|connection reset|"
    r"connection (was likely )?closed|socket closed|recv(value)? failed|sendbytes failed|"
    r"connectFullMesh|NCCL communicator was aborted|remote process exited|DistNetworkError|DistStoreError",
    re.IGNORECASE,
)


def _innermost(traceback: str | None) -> str:
    """The file of a traceback's last frame, from its package on: ``torch/distributed/distributed_c10d.py``."""
    files = re.findall(r'^  File "([^"]*)", line \d+', traceback or "", re.MULTILINE)
    return files[-1].rpartition("site-packages/")[2] if files else ""


@dataclass(frozen=True)
class Failure:
    """One thing that went wrong."""

    kind: str
    """exception, exit, signal, node-lost, start-timeout, not-started, delivery or launcher."""
    node: int
    message: str
    time: float
    """Seconds since the epoch, on the clock of the node that saw it."""
    rank: int | None = None
    status: int | None = None
    """Exit status of the rank; negative is a signal."""
    traceback: str | None = None

    @property
    def is_echo(self) -> bool:
        """True for an error that most likely only says that a peer went away: one raised inside torch.distributed."""
        if self.kind != "exception":
            return False
        return bool(_ECHO.search(self.message) or _innermost(self.traceback).startswith("torch/distributed/"))

    @property
    def exit_code(self) -> int:
        """The exit code this failure gives the launcher."""
        if self.kind in ("start-timeout", "not-started"):
            return exits.NOT_STARTED
        if self.kind == "launcher":
            return exits.LAUNCHER
        if self.kind == "node-lost":
            return exits.NODE_LOST
        code = exits.FAILED if self.status is None else exits.of_status(self.status)
        return code or exits.FAILED

    def to_message(self) -> dict[str, Any]:
        """As plain data, for other nodes and the report."""
        return asdict(self)

    @classmethod
    def from_message(cls, data: dict[str, Any]) -> Failure:
        """The opposite of ``to_message``. Raises ValueError if it is not what that gives."""
        fields: dict[str, Any] = {name: data.get(name) for name in cls.__dataclass_fields__}
        texts = (fields["kind"], fields["message"], fields["traceback"] or "")
        numbers = (fields["node"], fields["time"], fields["rank"] or 0, fields["status"] or 0)
        if not all(isinstance(text, str) for text in texts) or not all(isinstance(n, (int, float)) for n in numbers):
            raise ValueError(f"not a failure: {data!r}")
        return cls(**fields)


def root_cause(failures: Iterable[Failure]) -> Failure | None:
    """The failure to lead with: causes before echoes, then the earliest."""
    return min(failures, key=lambda f: (f.is_echo, f.time), default=None)


def describe_status(status: int) -> str:
    """``exited with code 7`` or ``was killed by SIGKILL (...)``."""
    if status >= 0:
        return f"exited with code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = " (often the kernel, out of memory)" if status == -signal.SIGKILL else ""
    return f"was killed by {name}{hint}"
