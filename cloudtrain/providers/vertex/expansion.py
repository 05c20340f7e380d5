"""``$(NAME)`` in a variable's value: Vertex AI puts in variables that were set before, by Kubernetes' rules.

The rules (EnvVar's own description, and Kubernetes' expansion, which it quotes): ``$$`` stands for one ``$``,
``$(NAME)`` for the variable's value, an unknown ``$(NAME)`` and a ``$`` before anything else for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# A lone $ that opens no reference is left alone under any reading of the rules, so $HOME stays readable as $HOME. All
# other dollars are doubled: a run of them would be halved.
_DOLLARS = re.compile(r"\$\$+|\$(?=\()")
_READ = re.compile(r"\$\$|\$\(([^)]*)\)")


def escaped(text: str) -> str:
    """What has to be sent so that the container finds ``text``."""
    return _DOLLARS.sub(lambda dollars: dollars.group() * 2, text)


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """What the container finds, given the variables set before."""

    def found(read: re.Match[str]) -> str:
        if read.group(1) is None:
            return "$"
        return variables.get(read.group(1), read.group())

    return _READ.sub(found, text)
