"""Standard output of a command that nobody reads any more."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

_READER_GONE = 128 + 13
"""As every other program that a SIGPIPE ends."""


def leave_quietly() -> NoReturn:
    """Whoever read has gone (``| head``): nothing more is wanted of the command.

    What is still in the buffers must not fail once more at the end, with a message of Python's own.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(null, stream.fileno())
    os.close(null)
    sys.exit(_READER_GONE)
