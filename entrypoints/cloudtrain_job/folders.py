"""Where a job reads and writes: the folders the launcher names in CLOUDTRAIN_* variables."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cloudtrain_job.errors import JobError

# Without a launcher. Never shipped with a job, and beside the run folders of `cloudtrain run`.
PLAIN = Path(".cloudtrain") / "plain"


class Folders(Mapping[str, Path]):
    """Folders by name, any case: ``ctx.data["train"]``. A name that is not there is a KeyError that lists the rest."""

    def __init__(self, kind: str, by_name: Mapping[str, Path]) -> None:
        self._kind = kind
        self._by_name = {name.lower(): path for name, path in by_name.items()}

    def __getitem__(self, name: str) -> Path:
        if name.lower() not in self._by_name:
            raise MissingFolder(self._complaint(name))
        return self._by_name[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        return f"Folders({self._kind!r}, {self._by_name!r})"

    def _complaint(self, name: str) -> str:
        near = difflib.get_close_matches(name.lower(), self._by_name, n=1)
        has = f"it has: {', '.join(self._by_name)}" if self._by_name else "it has none"
        return f"this job has no {self._kind} {name!r}; {has}" + (f"; did you mean {near[0]!r}?" if near else "")


class MissingFolder(JobError, KeyError):
    """A folder asked for by a name the job does not have."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


@dataclass(frozen=True)
class Places:
    """All folders of a job. Those of the job itself exist only once something is written there."""

    data: Folders
    outputs: Folders
    checkpoints: Path
    output: Path
    model: Path
    metrics: Path


def read_places(environ: Mapping[str, str]) -> Places:
    """The folders ``environ`` names; those it does not name lie under ``.cloudtrain/plain`` of the current folder."""
    output = _folder(environ, "CLOUDTRAIN_OUTPUT_DIR", PLAIN / "output")
    return Places(
        data=Folders("data channel", _named(environ, "CLOUDTRAIN_DATA_")),
        outputs=Folders("output", _named(environ, "CLOUDTRAIN_OUTPUT_", but="CLOUDTRAIN_OUTPUT_DIR")),
        checkpoints=_folder(environ, "CLOUDTRAIN_CHECKPOINT_DIR", PLAIN / "checkpoints"),
        output=output,
        model=_folder(environ, "CLOUDTRAIN_MODEL_DIR", PLAIN / "model"),
        metrics=_folder(environ, "CLOUDTRAIN_METRICS_DIR", output / "metrics"),
    )


def _folder(environ: Mapping[str, str], variable: str, default: Path) -> Path:
    return Path(environ.get(variable) or default).absolute()


def _named(environ: Mapping[str, str], prefix: str, but: str = "") -> dict[str, Path]:
    return {
        variable[len(prefix) :]: Path(value).absolute()
        for variable, value in environ.items()
        if variable.startswith(prefix) and variable != but and value
    }
