"""The way out: a file and the vendor's own command that submit the same job without cloudtrain.

job.yml    the request    code/    what every node runs    spec/    spec.json

All inputs that lie here are named by their paths, spec/ among them, and the command uploads them itself, each to a
folder of workspaceblobstore that has its content for a name. A command that copied them to the places in the
request would have to know account and container of the datastore, which the workspace alone can say.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.base import Export
from cloudtrain.providers.reading import section, text
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
    return Export({FILE: as_yaml({**request.native, "inputs": _inputs(request)})}, (shlex.join(words),))


def _inputs(request: Request) -> dict[str, Any]:
    """Those of the request, but for the paths of what lies here."""
    here = {ship.to: ship.source or f"./{ship.kind}" for ship in request.ships if ship.kind != "code"}
    inputs = section(request.native, "inputs")
    paths = {name: here[path] for name, given in inputs.items() if (path := text(given, "path")) in here}
    return {**inputs, **{name: {**inputs[name], "path": path} for name, path in paths.items()}}
