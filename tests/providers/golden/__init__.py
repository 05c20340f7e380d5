"""Requests kept as whole files, to be read and compared: ``<job>/<provider>.json`` for every ``jobs/<job>.yaml``.

    python -m tests.providers.golden            # shows what differs
    python -m tests.providers.golden --accept   # writes what is made now

A file holds the request, the launch spec, what ships, what was chosen and what is to be known; or the refusals.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.spec.problems import JobFileError
from tests.providers.contexts import PROVIDERS, context

FOLDER = Path(__file__).parent
ACCEPT = "python -m tests.providers.golden --accept"


def cases() -> list[tuple[str, str]]:
    """Every job with every provider."""
    return [(path.stem, provider) for path in sorted((FOLDER / "jobs").glob("*.yaml")) for provider in PROVIDERS]


def kept(name: str, provider: str) -> Path:
    """Where the request of a case is kept."""
    return FOLDER / name / f"{provider}.json"


def made(name: str, provider: str) -> str:
    """What is made of a case now, as the text of a file."""
    job = Job.parse((FOLDER / "jobs" / f"{name}.yaml").read_text("utf-8"), Path("job.yaml"))
    try:
        request = registry.translate(job, context(job, provider))
    except JobFileError as error:
        return _text({"refused": [str(problem) for problem in error.problems]})
    return _text(
        {
            "request": request.native,
            "spec": request.spec,
            "ships": [ship._asdict() for ship in request.ships],
            "chosen": [f"{choice.field}: {choice.value} ({choice.reason})" for choice in request.chosen],
            "notes": list(request.notes),
        }
    )


def difference(name: str, provider: str) -> str:
    """A diff from what is kept to what is made; "" if they are equal."""
    path = kept(name, provider)
    before = path.read_text("utf-8") if path.exists() else ""
    after = made(name, provider)
    where = path.relative_to(FOLDER).as_posix()
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"kept {where}", f"made {where}"
    )
    return "".join(lines)


def accept(name: str, provider: str) -> None:
    """Keep what is made now."""
    path = kept(name, provider)
    path.parent.mkdir(exist_ok=True)
    path.write_text(made(name, provider), "utf-8")


def _text(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
