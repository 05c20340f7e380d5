"""The way out: a file and the vendor's own command that submit the same job without cloudtrain.

job.yml    the request    code/    what every node runs, spec.json among it; the command uploads it
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.base import Export
from cloudtrain.providers.reading import section
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
    return Export({FILE: as_yaml(_with_data(request))}, (shlex.join(words),))


def _with_data(request: Request) -> dict[str, Any]:
    """Channels whose files are here are named by their paths: the command uploads them itself."""
    here = {ship.to: ship.source for ship in request.ships if ship.kind == "data"}
    inputs = {name: {**given, "path": here.get(given["path"], given["path"])}
              for name, given in section(request.native, "inputs").items()}  # fmt: skip
    return {**request.native, "inputs": inputs} if here else request.native
