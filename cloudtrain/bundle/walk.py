"""What lies in a code folder and ships, with links followed, and what cannot ship, all of it named at once.

Nothing is read but folders and ignore files; reading.py does the rest.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from cloudtrain.bundle.ignore import CLOUDTRAINIGNORE, GITIGNORE, NEVER, NOTHING, Rules, never_ships
from cloudtrain.bundle.names import bad_name, printable
from cloudtrain.errors import MissingError, SpecError

_SHOWN = 20  # problems named in one message
_PATIENCE = 10  # times the allowed number of entries looked at before the walk gives up counting


class Limits(NamedTuple):
    """How much may ship. The defaults are far above any code and far below a data set shipped by mistake."""

    size: int = 1 << 30  # bytes
    files: int = 50_000


class Found(NamedTuple):
    """One file that ships: ``path`` in the bundle, ``source`` where its bytes lie (elsewhere if a link led there)."""

    path: str
    source: str
    status: os.stat_result


class _Folder(NamedTuple):
    path: str  # "" or "sub/"
    source: str
    rules: Rules
    chain: tuple[str, ...]  # real paths of this folder and those above, to notice a loop of links


class _Walk:
    def __init__(self, root: str, limits: Limits) -> None:
        self.root, self.limits = root, limits
        self.files: list[Found] = []
        self.refused: list[str] = []
        self.unreadable: list[str] = []
        self.folders: list[_Folder] = []
        self.seen = 0
        self.own = _own_output()

    def too_long(self) -> bool:
        return self.seen > self.limits.files * _PATIENCE


def walk(root: Path, limits: Limits, *, above: bool = True, no_code: Mapping[str, str] = NOTHING) -> list[Found]:
    """The files under ``root`` (a real path) that ship, in the order of their UTF-8 paths; ``above`` and ``no_code`` as
    for ``Rules.of``.

    Raises SpecError naming everything that cannot ship and is not ignored, or the biggest parts if it is too much;
    MissingError if a folder or an ignore file cannot be read.
    """
    state = _Walk(str(root), limits)
    try:
        rules = Rules.of(root, above=above, no_code=no_code)
    except OSError as error:
        raise _cannot_read([f"{printable(str(error.filename))}: {error.strerror}"]) from error
    state.folders.append(_Folder("", str(root), rules, (str(root),)))
    while state.folders and not state.too_long():
        _list(state, state.folders.pop())
    _refuse(state)
    _check_limits(state)
    return sorted(state.files, key=lambda file: file.path.encode())


def _list(state: _Walk, folder: _Folder) -> None:
    try:
        with os.scandir(folder.source) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        rules = folder.rules
        if folder.path and {GITIGNORE, CLOUDTRAINIGNORE} & {entry.name for entry in entries}:
            rules = rules.enter(folder.source, folder.path)
    except OSError as error:
        state.unreadable.append(f"{printable(folder.path)}: {error.strerror}")
        return
    inside = _Folder(folder.path, folder.source, rules, folder.chain)
    for entry in entries:
        state.seen += 1
        if entry.name not in NEVER:
            _take(state, inside, entry)


def _take(state: _Walk, folder: _Folder, entry: os.DirEntry[str]) -> None:
    """Puts one entry where it belongs: a file that ships, a folder to list, a problem, or nowhere if left out."""
    path = folder.path + entry.name
    try:
        status = entry.stat(follow_symlinks=False)
        linked = stat.S_ISLNK(status.st_mode)
        target, problem = _follow(state.root, entry.path) if linked else (entry.path, None)
        if linked and problem is None:
            status = Path(target).stat()
    except FileNotFoundError:
        return  # gone since the folder was listed
    except OSError as error:
        state.unreadable.append(f"{printable(path)}: {error.strerror}")
        return
    is_folder = stat.S_ISDIR(status.st_mode) or (problem is not None and Path(entry.path).is_dir())
    if (status.st_dev, status.st_ino) in state.own or never_ships(entry.name, entry.path, is_folder):
        return
    if folder.rules.decide(path, entry.name, is_folder):
        return
    problem = problem or bad_name(entry.name) or _bad_kind(status.st_mode)
    if problem is None and is_folder and linked and target in folder.chain:
        problem = f"is a link that loops: {_link(entry.path)}"
    if problem is not None:
        state.refused.append(f"{printable(path)} {problem}")
    elif is_folder:
        real = target if linked else f"{folder.chain[-1]}/{entry.name}"
        state.folders.append(_Folder(path + "/", entry.path, folder.rules, (*folder.chain, real)))
    else:
        state.files.append(Found(path, target, status))


def _own_output() -> frozenset[tuple[int, int]]:
    """The files this process's own output goes to (``> log`` in the code folder): they grow while the code ships."""
    found = set()
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode):
                found.add((status.st_dev, status.st_ino))
    return frozenset(found)


def _follow(root: str, link: str) -> tuple[str, str | None]:
    """Where a link leads in the end, and what is wrong with that, if anything. Raises PermissionError."""
    try:
        target = os.path.realpath(link, strict=True)
    except PermissionError:
        raise
    except OSError as error:
        loops = not isinstance(error, (FileNotFoundError, NotADirectoryError))
        return link, f"is a link that {'loops' if loops else 'leads nowhere'}: {_link(link)}"
    if target != root and not target.startswith(root.rstrip(os.sep) + os.sep):
        return target, f"is a link that leaves the code folder: {_link(link)}"
    never = next((part for part in Path(target).relative_to(root).parts if part in NEVER), None)
    if never:
        return target, f"is a link into {never}, which never ships: {_link(link)}"
    return target, None


def _link(path: str) -> str:
    return "-> " + printable(os.fspath(Path(path).readlink()))


_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _bad_kind(mode: int) -> str | None:
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return f"is {next((name for test, name in _KINDS if test(mode)), 'neither a file nor a folder')}"


def _refuse(state: _Walk) -> None:
    if state.unreadable and not state.refused:
        raise _cannot_read(sorted(state.unreadable))
    if state.refused:
        raise SpecError(
            _listed(
                f"the code folder {printable(state.root)} holds what cannot ship:",
                sorted(state.refused + state.unreadable),
            ),
            hint=f"Remove it, or leave it out: add its path to {printable(state.root)}/{CLOUDTRAINIGNORE}.",
        )


def _cannot_read(problems: list[str]) -> MissingError:
    return MissingError(
        _listed("cannot read in the code folder:", problems),
        hint=f"Make it readable, or leave it out: add its path to {CLOUDTRAINIGNORE}.",
    )


def _listed(title: str, lines: list[str]) -> str:
    more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join([title, *(f"  {line}" for line in lines[:_SHOWN]), *more])


def _check_limits(state: _Walk) -> None:
    """Raises SpecError with the five biggest parts if too many or too big files would ship."""
    size = sum(file.status.st_size for file in state.files)
    if len(state.files) > state.limits.files or state.too_long():
        count = f"over {state.seen:,} files and folders" if state.too_long() else f"{len(state.files):,} files"
        _too_much(state, f"{count}; at most {state.limits.files:,} may", lambda _: 1, lambda n: f"{n:,} files")
    if size > state.limits.size:
        _too_much(state, f"{bytes_text(size)}; at most {bytes_text(state.limits.size)} may",
                  lambda file: file.status.st_size, bytes_text)  # fmt: skip


def _too_much(state: _Walk, what: str, weigh: Callable[[Found], int], show: Callable[[int], str]) -> None:
    parts = heaviest({file.path: weigh(file) for file in state.files})
    raise SpecError(
        _listed(f"the code folder {printable(state.root)} would ship {what}. Most of it:",
                [f"{show(weight):>14}  {path}" for path, weight in parts]),
        hint=f"Leave out what the job does not need: add such paths to {printable(state.root)}/{CLOUDTRAINIGNORE}. "
        "Data belongs under `data:`, not into the code folder.",
    )  # fmt: skip


def heaviest(weights: dict[str, int], count: int = 5) -> list[tuple[str, int]]:
    """The ``count`` heaviest parts of a tree of files, heaviest first.

    A part is a file, or a folder (``"data/"``) if no single thing in it makes up most (80 %) of its weight.
    """
    inside: dict[str, dict[str, int]] = {}
    for path, weight in weights.items():
        start = 0
        while (slash := path.find("/", start)) >= 0:
            children = inside.setdefault(path[:start], {})
            children[path[: slash + 1]] = children.get(path[: slash + 1], 0) + weight
            start = slash + 1
        inside.setdefault(path[:start], {})[path] = weight
    top = [_narrow(inside, path, weight) for path, weight in inside.get("", {}).items()]
    return sorted(top, key=lambda part: (-part[1], part[0]))[:count]


def _narrow(inside: dict[str, dict[str, int]], path: str, weight: int) -> tuple[str, int]:
    while path in inside:
        child, of_it = max(inside[path].items(), key=lambda item: item[1])
        if of_it < 0.8 * weight:
            break
        path, weight = child, of_it
    return path, weight


def bytes_text(size: int) -> str:
    """``1536`` as ``1.5 KiB``."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TiB"
