"""What the service says of a job: its lines in the log, and the errors of jobs that ended badly.

Lines and the error of a failed script are as in public transcripts of ``gcloud ai custom-jobs stream-logs`` (2026);
stock-out, memory and internal error as on Google's page on how the training service handles errors. No source has the
words for a missing image, a time limit and what this emulator cannot run: these are ours.
"""

from __future__ import annotations

from typing import NamedTuple

SERVICE = "service"
"""The task that the service's own lines are of."""
QUEUED = (
    "Waiting for job to be provisioned.",
    "Vertex AI is provisioning job running framework. First time usage might take couple of minutes, and subsequent "
    "runs can be much faster.",
    "Vertex AI is setting up this job.",
    "Waiting for training program to start.",
)
PREPARING = "Job is preparing."
RUNNING = "Job is running."
TEARING_DOWN = "Tearing down training program."
TORN_DOWN = "Finished tearing down training program."
SUCCEEDED = "Job completed successfully."
CANCELLED = "Job is cancelled."

_LONGEST_TAIL = 2048
"""Characters of a container's last output that come with its error: Kubernetes' limit."""


class Ending(NamedTuple):
    """How a job ends."""

    state: str
    code: int = 0
    """Of google.rpc.Code."""
    message: str = ""

    @property
    def error(self) -> dict[str, object]:
        """The job's ``error``; empty if there is none."""
        return {"code": self.code, "message": self.message} if self.code else {}


def succeeded() -> Ending:
    """The primary replica has ended with 0."""
    return Ending("JOB_STATE_SUCCEEDED")


def cancelled() -> Ending:
    """Asked for. The API's description says that the error's code is 1 then."""
    return Ending("JOB_STATE_CANCELLED", 1, "CANCELED")


def timed_out(timeout: str) -> Ending:
    """The documentation does not say how such a job ends; reports have it that it is cancelled."""
    message = f"The job was cancelled because it exceeded its timeout: it ran for more than {timeout}."
    return Ending("JOB_STATE_CANCELLED", 1, message)


def exited(replica: str, status: int, output: str, logs: str) -> Ending:
    """A replica failed for good."""
    if status == 137:
        message = f"The replica {replica} ran out of memory and exited with a non-zero status of {status}."
    else:
        message = f"The replica {replica} exited with a non-zero status of {status}. Termination reason: Error."
    tail = output.strip()[-_LONGEST_TAIL:]
    more = f"To find out more about why your job exited please check the logs: {logs}"
    return Ending("JOB_STATE_FAILED", 3, "\n".join(filter(None, [f"{message} ", tail, "", more])))


def stock_out(region: str) -> Ending:
    """No machines, at the start or in place of those that were taken away."""
    message = f"Resources are insufficient in region: {region}. Try a different region or use a different accelerator."
    return Ending("JOB_STATE_FAILED", 8, message)


def internal() -> Ending:
    """The service lost what the job ran on, again and again."""
    return Ending("JOB_STATE_FAILED", 13, "Internal error occurred for the current attempt")


def image_missing(replica: str, image: str) -> Ending:
    """The container could not be started."""
    message = (
        f'The replica {replica} could not be started: image "{image}" was not found, or the Vertex AI Service Agent '
        "has no permission to pull it."
    )
    return Ending("JOB_STATE_FAILED", 5, message)


def unable(why: str) -> Ending:
    """Containers cannot be started on this machine."""
    return Ending("JOB_STATE_FAILED", 13, f"Internal error occurred for the current attempt: {why}")


def not_emulated(replica: str) -> Ending:
    """A container of which only its image knows what it does."""
    message = (
        f"The replica {replica} does not start launch.py of cloudtrain, and the emulator has no images: it runs no "
        "other container."
    )
    return Ending("JOB_STATE_FAILED", 12, message)


def quota(accelerator: str, spot: bool) -> str:
    """Of a create that is refused."""
    kind = accelerator.lower().removeprefix("nvidia_tesla_").removeprefix("nvidia_").removesuffix("_80gb")
    if accelerator == "NVIDIA_A100_80GB":
        kind = "a100_80gb"
    metric = f"nvidia_{kind.removesuffix('_141gb')}_gpus" if accelerator else "cpus"
    name = f"custom_model_training_{'preemptible_' if spot else ''}{metric}"
    return f"The following quota metrics exceed quota limits: aiplatform.googleapis.com/{name}"


def logs_page(project: str, job: str) -> str:
    """Where a person would look."""
    return (
        f"https://console.cloud.google.com/logs/viewer?project={project}&resource=ml_job%2Fjob_id%2F{job}"
        f"&advancedFilter=resource.type%3D%22ml_job%22%0Aresource.labels.job_id%3D%22{job}%22"
    )
