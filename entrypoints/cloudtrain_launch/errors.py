"""The launcher's own error: the environment or the spec is such that no worker can be started."""

from __future__ import annotations

from cloudtrain_launch import exits


class LaunchError(Exception):
    """Carries a message for the log and the exit code of this node."""

    def __init__(self, message: str, exit_code: int = exits.LAUNCHER) -> None:
        super().__init__(message)
        self.exit_code = exit_code
