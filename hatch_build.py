"""Build hook: what a wheel carries beside the package.

A static ``force-include`` would do, were it not copied into editable installs as well, where the copies go stale, and
did it obey the ignore files of folders in which developers try things out.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from pathspec import GitIgnoreSpec, PathSpec  # what hatchling itself is built on

# folder of the checkout -> folder in the wheel
CARRIED = (
    ("entrypoints", "cloudtrain/_shipped/entrypoints"),
    ("templates", "cloudtrain/_shipped/templates"),
    # A second time at the top, so that editors and a plain `python train.py` can import it.
    ("entrypoints/cloudtrain_job", "cloudtrain_job"),
)


class CarryEntrypoints(BuildHookInterface):  # type: ignore[type-arg]
    """Adds ``CARRIED`` to wheels; editable installs find the same folders in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a build."""
        if version == "editable":
            return
        # Copies, since hatch takes a file to one place only.
        self._copies = tempfile.mkdtemp(prefix="wheel-")
        for number, (source, target) in enumerate(CARRIED):
            folder, copy = Path(self.root, source), Path(self._copies, str(number))
            for file in _walk(folder, GitIgnoreSpec.from_lines(["__pycache__/", ".cloudtrain/", "*.py[cod]"])):
                name = file.relative_to(folder)
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy / name)
                build_data["force_include"][str(copy / name)] = f"{target}/{name.as_posix()}"

    def finalize(self, version: str, *_: Any) -> None:
        """Called after a build."""
        if version != "editable":
            shutil.rmtree(self._copies)


def _walk(folder: Path, inherited: PathSpec) -> Iterator[Path]:
    """The files below ``folder`` that no .gitignore on the way leaves out."""
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
