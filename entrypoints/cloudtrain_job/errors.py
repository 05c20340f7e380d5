"""What cloudtrain_job raises on purpose. Every message says what is wrong, where, and what to do."""

from __future__ import annotations


class JobError(RuntimeError):
    """Root of all errors of this package."""


class WorldError(JobError):
    """The environment does not describe one process of one world, or this machine cannot play its part."""


class LoaderError(JobError):
    """The data set or the batch asked for cannot be shared out."""


class CheckpointError(JobError):
    """A checkpoint could not be written, or none of those that exist can be trusted."""


class ResumeRefused(JobError):
    """A sound checkpoint belongs to something else: another model, data set, batch or seed."""


class TaskError(JobError):
    """The task of a ``task:`` job, or its options, are wrong."""
