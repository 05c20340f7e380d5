"""The way out: a file and the vendor's own command that submit the same job without cloudtrain.

job.yml    the request    code/    what every node runs, spec.json among it; the command uploads it
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from cloudtrain.providers.base import Export
from cloudtrain.providers.written import as_yaml

if TYPE_CHECKING:
    from cloudtrain.providers.base import Request

FILE = "job.yml"
"""The file's name; ``code: ./code`` in it is seen from its folder."""


def export(request: Request) -> Export:
    """The form, and the command that creates the job; it needs the ``ml`` extension of ``az``."""
    account = request.account
    words = ["az", "ml", "job", "create", "--file", FILE]
    for option, setting in (
        ("--subscription", "subscription"),
        ("--resource-group", "resource_group"),
        ("--workspace-name", "workspace"),
    ):
        words.append(f"{option}={account[setting]}")  # one word: a group's name may begin with a hyphen
    return Export({FILE: as_yaml(request.native)}, (shlex.join(words),))
