"""A line of a node's output as the clouds' log services hand it out: ``[node/rank] text``, ``[node/-] text``.

The counterpart is ``entrypoints/cloudtrain_launch/sink.py``, which writes these lines on every cloud.
"""

from __future__ import annotations

import re

from cloudtrain.providers.port import LogLine

# A service may have cut the blank at the end of an empty line.
_PREFIX = re.compile(r"\[([0-9]{1,6})/(-|[0-9]{1,7})\](?: |$)")


def parse(text: str, node: int, time: float | None) -> LogLine:
    """One line, with or without the newline at its end.

    What has no prefix comes from the platform, or from the container before launch.py began: it has no rank, and is of
    ``node``, the one whose stream it was found in. ``time``: seconds since the epoch, None where nobody knows.
    """
    text = text.removesuffix("\n")
    prefix = _PREFIX.match(text)
    if prefix is None:
        return LogLine(node, None, text, time)
    number, rank = prefix.groups()
    return LogLine(int(number), None if rank == "-" else int(rank), text[prefix.end() :], time)
