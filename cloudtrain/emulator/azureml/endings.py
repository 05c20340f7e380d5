"""How jobs end, in the service's words.

The words are put together from what its users report: the sheet of facts that is known has ``User process 'X' exited
with status code N`` and the pre-emption; image, capacity and a lost node are worded after reports of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

LONGEST_MESSAGE = 3000
"""Characters, by Microsoft's page on resource limits."""


class Ending(NamedTuple):
    """The last state, and the error that run history shows."""

    state: str
    error: Mapping[str, Any] | None = None


COMPLETED = Ending("Completed")
CANCELED = Ending("Canceled")


def failed(message: str, code: str = "UserError", inner: str = "") -> Ending:
    """A failure."""
    return Ending("Failed", _error(message, code, inner))


def exited(status: int, output: str) -> Ending:
    """A node's process ended by itself, and not well. ``status``: as Python has it, negative for a signal."""
    code = status if status >= 0 else 128 - status
    text = f"Execution failed. User process 'python3' exited with status code {code}. Please check log file 'user_logs'"
    return failed(f"{text} for error details. Error: {output}", inner="ExecutionFailed")


def timed_out(timeout: float) -> Ending:
    """The limit was reached: the service cancels the job."""
    text = f"The job was canceled because it reached its time limit (limits.timeout) of {timeout:g} seconds."
    return Ending("Canceled", _error(text, "UserError", "JobTimeoutExceeded"))


def preempted() -> Ending:
    """Low-priority nodes were taken away, and the service does not start the job anew."""
    text = (
        "AzureMLCompute job failed. PreemptionError: Nodes of this job got pre-empted. Check if the run has failed or "
        "restarted. Reason: Received pre-emption warning signal"
    )
    return failed(text, inner="PreemptionError")


def node_lost(node: int) -> Ending:
    """A machine is gone."""
    text = f"AzureMLCompute job failed. NodeUnusable: node {node} of the job was lost: it does not respond any more"
    return failed(text, "ServiceError", "NodeUnusable")


def no_image(image: str) -> Ending:
    """What the job names as its image is not there."""
    text = (
        f"AzureMLCompute job failed. FailedPullingImage: Unable to pull docker image\n\timageName: {image}\n\terror: "
        "manifest unknown"
    )
    return failed(text, inner="FailedPullingImage")


def no_capacity(size: str, nodes: int) -> Ending:
    """Machines never came."""
    text = f"AzureMLCompute job failed. AllocationFailed: there is no capacity for {nodes} node(s) of {size} now"
    return failed(text, "ServiceError", "AllocationFailed")


def no_data(reason: str) -> Ending:
    """An input or output cannot be mounted."""
    return failed(f"AzureMLCompute job failed. data-capability: cannot mount: {reason}", inner="DataAccessError")


def broken(reason: str) -> Ending:
    """A fault of the emulator's own."""
    return failed(f"InternalServerError: {reason}", "ServiceError")


def _error(message: str, code: str, inner: str) -> dict[str, Any]:
    return {
        "code": code,
        "severity": None,
        "message": message[:LONGEST_MESSAGE],
        "messageFormat": None,
        "messageParameters": {},
        "referenceCode": None,
        "detailsUri": None,
        "target": None,
        "details": [],
        "innerError": {"code": inner, "innerError": None} if inner else None,
        "debugInfo": None,
        "additionalInfo": None,
    }
