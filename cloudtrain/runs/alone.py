"""One submit of a job at a time, on this machine: Vertex AI makes a job for every call, whatever its name.

Between looking for a job and creating it lies an upload, so a second submit would not see the first one's. The lock is
a file's, and so is gone with whoever held it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cloudtrain.errors import MissingError
from cloudtrain.home import home_folder
from cloudtrain.record.observer import Observer


@contextmanager
def alone(family: str, observer: Observer) -> Iterator[None]:
    """Until no other process, or thread, makes an attempt of a run of this family. Not on Windows, where it does
    nothing. Raises MissingError if the lock's file cannot be made."""
    if sys.platform == "win32":
        yield
        return
    fd = _locked(home_folder("submitting") / family, observer)
    try:
        yield
    finally:
        os.close(fd)


def _locked(path: os.PathLike[str], observer: Observer) -> int:
    import fcntl

    try:
        fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MissingError(
            f"cannot make {os.fspath(path)}: {error.strerror}",
            hint="free some space, or set CLOUDTRAIN_HOME to another folder",
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        observer.note("this job is being submitted already; waiting for that")
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError:  # a file system without locks: nothing can be done about two at once
        pass
    return fd
