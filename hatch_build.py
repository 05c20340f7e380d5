"""Build hook: what a wheel carries beside the package.

A static ``force-include`` would do, were it not copied into editable installs as well, where the copies go stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from pathspec import GitIgnoreSpec, PathSpec  # what hatchling itself is built on

# folder of the checkout -> folder in the wheel
CARRIED = {
    "entrypoints": "cloudtrain/_shipped/entrypoints",
    "templates": "cloudtrain/_shipped/templates",
    # A second time at the top, so that editors and a plain `python train.py` can import it.
    "entrypoints/cloudtrain_job": "cloudtrain_job",
}


class CarryEntrypoints(BuildHookInterface):  # type: ignore[type-arg]
    """Adds ``CARRIED`` to wheels, less what the folders' own .gitignore files name.

    Editable installs find the same folders in the checkout.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        for source, target in CARRIED.items():
            for file in _files(Path(self.root, source)):
                build_data["force_include"][str(file)] = (
                    f"{target}/{file.relative_to(Path(self.root, source)).as_posix()}"
                )


def _files(folder: Path) -> Iterator[Path]:
    """What ships of a folder: force-include itself obeys no ignore rules, and a developer has run the templates there."""
    yield from _walk(folder, GitIgnoreSpec.from_lines(["__pycache__/", ".cloudtrain/", "*.py[cod]"]))


def _walk(folder: Path, inherited: PathSpec) -> Iterator[Path]:
    rules = folder / ".gitignore"
    own = GitIgnoreSpec.from_lines(rules.read_text("utf-8").splitlines() if rules.is_file() else [])
    for entry in sorted(folder.iterdir()):
        name = f"{entry.name}/" if entry.is_dir() else entry.name
        if inherited.match_file(name) or own.match_file(name):
            continue
        if entry.is_dir():
            yield from _walk(entry, inherited + own)
        else:
            yield entry
