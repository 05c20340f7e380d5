"""Starting points for a project: the folders under templates/, and how one becomes a new folder of the user's."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain import shipped
from cloudtrain.errors import MissingError, SpecError, did_you_mean

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

# What running a template may leave in it besides what its own .gitignore names; it is no part of the template.
_LEFT_OUT = ["__pycache__", "*.pyc", ".cloudtrain", ".DS_Store"]


@dataclass(frozen=True)
class StartingPoint:
    """One template: a folder with a job.yaml and a README.md."""

    name: str
    folder: Path

    @property
    def description(self) -> str:
        """The first sentence of the first paragraph of its README.md."""
        lines = (self.folder / "README.md").read_text(encoding="utf-8").splitlines()
        while lines and (not lines[0].strip() or lines[0].startswith("#")):
            lines.pop(0)
        paragraph = " ".join(line.strip() for line in takewhile(str.strip, lines))
        sentence, end, _ = paragraph.partition(". ")
        return sentence + end.strip()


def starting_points() -> dict[str, StartingPoint]:
    """Name -> template, the names in order."""
    folders = sorted(path for path in shipped.templates().iterdir() if (path / "job.yaml").is_file())
    return {folder.name: StartingPoint(folder.name, folder) for folder in folders}


def create(name: str, folder: Path) -> StartingPoint:
    """Make ``folder`` from a template. It must be new or empty; on any failure it is left as it was.

    Raises SpecError for an unknown template or a folder that holds something, MissingError where it cannot be written.
    """
    known = starting_points()
    if name not in known:
        near = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise SpecError(f"no template {name!r}{near}", hint="cloudtrain init --list shows them all.")
    try:
        _refuse_taken(folder)
        _copy(known[name].folder, folder)
    except OSError as error:
        raise MissingError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error
    return known[name]


def _refuse_taken(folder: Path) -> None:
    if folder.is_dir():
        inside = sorted(path.name for path in folder.iterdir())
        if inside:
            more = f" and {len(inside) - 3} more" if len(inside) > 3 else ""
            raise SpecError(f"{folder} is not empty: it holds {', '.join(inside[:3])}{more}", hint="Name a new folder.")
    elif folder.exists() or folder.is_symlink():
        raise SpecError(f"{folder} is already there and is not a folder", hint="Name a new folder.")


def _copy(template: Path, folder: Path) -> None:
    """Copies into a stage inside ``folder`` first: that may be a shell's current folder, so it is never replaced."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    moved: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".cloudtrain-init-", dir=folder) as stage:
            copied = Path(shutil.copytree(template, Path(stage, "copy"), ignore=_left_out(template)))
            for item in sorted(copied.iterdir()):
                moved.append(item.rename(folder / item.name))
    except BaseException:
        _take_back(moved, made)
        raise


def _left_out(template: Path) -> Callable[[str, list[str]], set[str]]:
    from pathspec import GitIgnoreSpec

    rules = template / ".gitignore"
    spec = GitIgnoreSpec.from_lines([*_LEFT_OUT, *(rules.read_text("utf-8").splitlines() if rules.is_file() else [])])

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if _ignored(spec, Path(folder, name), template)}

    return ignored


def _ignored(spec: GitIgnoreSpec, path: Path, template: Path) -> bool:
    name = path.relative_to(template).as_posix()
    return spec.match_file(f"{name}/" if path.is_dir() else name)


def _take_back(moved: list[Path], made: list[Path]) -> None:
    """Removes what was moved into place and the folders made for it; nothing that anyone else put there."""
    for item in moved:
        if item.is_dir():
            shutil.rmtree(item, ignore_errors=True)
        else:
            item.unlink(missing_ok=True)
    for path in made:
        with contextlib.suppress(OSError):
            path.rmdir()
