"""The way out: the request as a file, and the commands of AWS's own command line that submit it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from cloudtrain.providers.base import Export, Request, Shipped

FILE = "create-training-job.json"


def export(request: Request) -> Export:
    """What ships is copied first: a job whose channels are empty is refused."""
    region = ["--region", request.account["region"]]
    copies = [["aws", "s3", "cp", *_what(ship), ship.to, *region] for ship in request.ships]
    create = ["aws", "sagemaker", "create-training-job", "--cli-input-json", f"file://{FILE}", *region]
    text = json.dumps(request.native, indent=2) + "\n"
    return Export(files={FILE: text}, commands=tuple(shlex.join(words) for words in (*copies, create)))


def _what(ship: Shipped) -> list[str]:
    """A folder of the export, or a channel's files where they lie."""
    recursive = [] if ship.source and Path(ship.source).is_file() else ["--recursive"]
    return [*recursive, ship.source or ship.kind]
