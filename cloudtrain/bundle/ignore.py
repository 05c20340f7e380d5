"""Which paths of a code folder are left out, as git would say it, and by which line of which file.

The rules of one entry, strongest first:

1. ``.git``, ``.cloudtrain``, ``__pycache__``, ``cloudtrain.toml`` and virtual environments (a folder that holds
   ``pyvenv.cfg``) never ship.
2. ``.cloudtrainignore`` files, the deepest first; in each the last line that matches decides.
3. ``.gitignore`` files, likewise. If the code folder lies inside a git repository, those of the folders above it up to
   the root of the repository count too.
4. What whoever asks says is no code: the places that a job names for data, outputs and checkpoints.

What is inside a folder that is left out is left out; no rule below can bring it back.

As in git, a symbolic link named ``.gitignore`` is not read. Unlike git, because a bundle must not depend on the machine
or on what is staged, the user's global excludes, ``.git/info/exclude`` and ``core.ignoreCase`` do not count, and a file
that matches a rule is left out even when it is tracked. A code folder that is itself ignored in its repository still
ships: naming it in the job file is the stronger word. A repository inside the code folder ships like any folder.

pathspec translates all but simple patterns. A slash, a backslash or a class such as ``[:punct:]`` inside a bracket
expression is read by its rules, which differ from git's; ``a**/b`` is ``a*/b``, as git's manual has it (git lets it
cross folders).

Reference: https://git-scm.com/docs/gitignore
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from cloudtrain.bundle.names import printable

# cloudtrain.toml: account settings are not part of a job, and what they say must not change the digest of its code.
NEVER = frozenset({".git", ".cloudtrain", "__pycache__", "cloudtrain.toml"})
GITIGNORE = ".gitignore"
CLOUDTRAINIGNORE = ".cloudtrainignore"
_VENV_MARK = "pyvenv.cfg"
NOTHING: Mapping[str, str] = MappingProxyType({})


class Reason(NamedTuple):
    """Why ``path`` (relative to the code folder) does not ship: ``str(reason)`` is the sentence without the path.

    ``file`` (relative to the code folder), ``line`` (from 1) and ``pattern`` name the rule; all None if no rule did it.
    """

    path: str
    text: str
    file: str | None = None
    line: int | None = None
    pattern: str | None = None

    def __str__(self) -> str:
        return self.text


class Rule(NamedTuple):
    """One line of an ignore file; or what is said of one path, ``file`` empty and ``text`` what it is."""

    file: str
    line: int
    text: str
    negated: bool
    folders_only: bool
    slashes: int | None  # None: tested against the name alone; -1: any depth (**); else the depth a path must have
    regex: re.Pattern[str]

    def matches(self, path: str, name: str, is_folder: bool) -> bool:
        """Whether the rule speaks about this very entry (not about a folder above it); path from the rule's folder."""
        if self.folders_only and not is_folder:
            return False
        if self.slashes is None:
            return self.regex.search(name) is not None
        if self.slashes >= 0:
            return path.count("/") == self.slashes and self.regex.search(path) is not None
        found = self.regex.search(path)
        # pathspec's own mark of "matched a folder above": for the entry itself it stays empty.
        return found is not None and found.groupdict().get("ps_d") is None


class _RuleFile(NamedTuple):
    base: str  # of the paths it speaks about: "" for the code folder, "sub/" below it
    prefix: str  # what has to be put before a path from the code folder: "" below it, "pkg/code/" for files above it
    rules: tuple[Rule, ...]

    def last_match(self, path: str, name: str, is_folder: bool) -> Rule | None:
        inside = self.prefix + path[len(self.base) :]
        return next((rule for rule in reversed(self.rules) if rule.matches(inside, name, is_folder)), None)


class Rules(NamedTuple):
    """The rules in force inside one folder. Immutable: ``enter`` gives those of a folder below."""

    git: tuple[_RuleFile, ...] = ()  # from the root down
    ours: tuple[_RuleFile, ...] = ()
    no_code: tuple[_RuleFile, ...] = ()

    @staticmethod
    def of(folder: Path, *, above: bool = True, no_code: Mapping[str, str] = NOTHING) -> Rules:
        """The rules at the top of a code folder; ``above``: with those of the folders above it; ``no_code``: path from
        the code folder -> what it is. Raises OSError for an ignore file that cannot be read."""
        said = tuple(_said(path, what) for path, what in no_code.items())
        outer = Rules(git=tuple(_above(folder)) if above else (), no_code=(_RuleFile("", "", said),) if said else ())
        return outer.enter(str(folder), "")

    def enter(self, folder: str, base: str) -> Rules:
        """The rules inside ``folder``, whose paths begin with ``base`` (``"sub/"``). Raises OSError like ``of``."""
        here = _RuleFile(_by_byte(base), "", ())
        git = _read(folder, GITIGNORE, here, base + GITIGNORE)
        ours = _read(folder, CLOUDTRAINIGNORE, here, base + CLOUDTRAINIGNORE)
        if not git and not ours:
            return self
        return Rules(self.git + git, self.ours + ours, self.no_code)

    def decide(self, path: str, name: str, is_folder: bool) -> Rule | None:
        """The rule that leaves this entry out, or None. Folders above it must have been decided before."""
        path, name = _by_byte(path), _by_byte(name)
        for files in (self.ours, self.git, self.no_code):
            for file in reversed(files):
                rule = file.last_match(path, name, is_folder)
                if rule is not None:
                    return None if rule.negated else rule
        return None


def never_ships(name: str, source: str, is_folder: bool) -> str | None:
    """Why an entry can ship under no rule, or None. ``source`` is where it lies."""
    if name in NEVER:
        return f"left out: {name} never ships"
    if is_folder and os.path.lexists(f"{source}/{_VENV_MARK}"):
        return "left out: a virtual environment never ships"
    return None


def why(rules: Rules, path: str, source: str, is_folder: bool) -> Reason | None:
    """Why the entry ``path`` is left out by the rules of its folder, or None."""
    name = path.rpartition("/")[2]
    never = never_ships(name, source, is_folder)
    if never:
        return Reason(path, never)
    rule = rules.decide(path, name, is_folder)
    if rule is None:
        return None
    if not rule.file:
        return Reason(
            path, f"left out: it is the place of {rule.text}; !/{printable(path)} in {CLOUDTRAINIGNORE} ships it"
        )
    text = f"left out by {printable(rule.file)}:{rule.line}: {printable(rule.text)}"
    return Reason(path, text, rule.file, rule.line, rule.text)


def _said(path: str, what: str) -> Rule:
    exactly = re.compile(rf"\A{re.escape(_by_byte(path))}\Z")
    return Rule("", 0, what, negated=False, folders_only=False, slashes=path.count("/"), regex=exactly)


def _above(folder: Path) -> Iterator[_RuleFile]:
    """The .gitignore files above ``folder`` in its git repository, from the root down."""
    if os.path.lexists(folder / ".git"):
        return
    root = next((parent for parent in folder.parents if os.path.lexists(parent / ".git")), None)
    if root is None:
        return
    parts = folder.relative_to(root).parts
    for depth in range(len(parts)):
        shown = "../" * (len(parts) - depth) + GITIGNORE
        prefix = _by_byte("/".join(parts[depth:]) + "/")
        yield from _read(str(root.joinpath(*parts[:depth])), GITIGNORE, _RuleFile("", prefix, ()), shown)


def _read(folder: str, name: str, empty: _RuleFile, shown: str) -> tuple[_RuleFile, ...]:
    """The rules in ``folder/name`` as zero or one files; no file, a folder or (for .gitignore) a link has none."""
    path = Path(folder, name)
    if not path.is_file() or (name == GITIGNORE and path.is_symlink()):
        return ()
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        lines = file.read().split("\n")
    rules = tuple(filter(None, (_parse(shown, number, line) for number, line in enumerate(lines, 1))))
    return (_RuleFile(empty.base, empty.prefix, rules),) if rules else ()


def _parse(file: str, number: int, line: str) -> Rule | None:
    """One line, read as git reads it; None for blank lines, comments and patterns that can match nothing."""
    text = _trim(line.removesuffix("\r"))
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    body = text[1:] if negated else text
    folders_only = body.endswith("/")
    body = body.removesuffix("/")
    slashes = None if "/" not in body else _slashes(body)
    regex = _regex(_by_byte(body))
    return None if regex is None else Rule(file, number, text, negated, folders_only, slashes, regex)


def _by_byte(text: str) -> str:
    """One letter for each byte of ``text`` in UTF-8, because to git a letter is a byte: ``?`` does not match ``é``."""
    return text if text.isascii() else os.fsencode(text).decode("latin-1")


def _trim(line: str) -> str:
    """Without trailing blanks, except one behind a backslash."""
    kept = line.rstrip(" ")
    escaped = (len(kept) - len(kept.rstrip("\\"))) % 2 == 1
    return kept + " " if escaped and len(kept) < len(line) else kept


def _slashes(body: str) -> int:
    parts = body.removeprefix("/").split("/")
    return -1 if any(set(part) == {"*"} and len(part) > 1 for part in parts) else len(parts) - 1


def _regex(body: str) -> re.Pattern[str] | None:
    """The translation of a pattern without its ``!`` and last ``/``; None if it matches nothing."""
    if not body or "//" in body or body.endswith("/"):
        return None
    if not re.search(r"[\[\\]|\*\*", body):
        return _simple(body.removeprefix("/"))
    return _by_pathspec(body)


def _simple(body: str) -> re.Pattern[str]:
    """For the many patterns without bracket, backslash and ``**``: to load pathspec would cost each command 8 ms."""
    stars = {"*": "[^/]*", "?": "[^/]"}
    return re.compile(rf"\A{''.join(stars.get(letter) or re.escape(letter) for letter in body)}\Z")


def _by_pathspec(body: str) -> re.Pattern[str] | None:
    from pathspec import GitIgnoreSpec

    body = re.sub(r"(?<![^/])\*{3,}(?![^/])", "**", body)  # git reads a part of stars alone as **
    if body.endswith("/**"):
        body += "/*"  # the same for git; pathspec would let it match the folder itself
    if body[0] in "#!":
        body = "\\" + body
    body = re.sub(r"\A\s|\\?\s\Z", lambda found: f"[{found[0][-1]}]", body)  # pathspec strips blanks that git keeps
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # re warns of "[[", which is what the user wrote
            pattern: Any = next(iter(GitIgnoreSpec.from_lines([_classes(body)]).patterns))
    except (ValueError, re.error):  # a range such as [z-a], a backslash at the end: git matches nothing either
        return None
    regex: re.Pattern[str] | None = pattern.regex
    return regex


_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": " \t", "digit": "0-9", "lower": "a-z", "space": " \t\n\r\f\v",
    "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


def _classes(body: str) -> str:
    """``[[:alpha:]_]`` as ``[A-Za-z_]``, which pathspec understands."""
    return re.sub(r"\[:(\w+):\]", lambda found: _CLASSES.get(found[1], found[0]), body)
