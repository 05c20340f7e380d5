"""YAML text as plain data in which every value remembers its place and every unquoted scalar its text.

Only the data part of YAML is read: no tags but ``!!str !!map !!seq``, no objects. Anchors, aliases and merge keys work,
within bounds that no honest job file meets.
PyYAML's pure Python scanner is used, so that messages are the same on every machine.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, cast

import yaml

from cloudtrain.spec.fields import Plain
from cloudtrain.spec.problems import Path, shown

MOST_BYTES = 1 << 20
_MOST_VALUES = 50_000
_DEEPEST = 64
_TOO_DEEP = f"more than {_DEEPEST} levels deep; a job file has a few"

# What YAML forbids, and the three that YAML 1.1 takes for line breaks and YAML 1.2 for text.
_UNPRINTABLE = "[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]"
_PLAIN, _QUOTED = "plain", "quoted"
_TAGS = {yaml.ScalarNode: "tag:yaml.org,2002:str", yaml.MappingNode: "tag:yaml.org,2002:map",
         yaml.SequenceNode: "tag:yaml.org,2002:seq"}  # fmt: skip

# PyYAML's words for the mistakes people make most, and ours.
_WORDING = {
    r"found character '\\t' that cannot start any token": "a tab cannot stand here; indent with spaces",
    r"mapping values are not allowed here": "a ': ' cannot stand here; quote the text, or mend the indentation",
    r"could not find expected ':'": "this key has no ': ' behind it",
    r"but found another document": "a second document begins here; keep one job in a file",
    r"expected <block end>, but found .*": "this does not belong to the lines above it; mend the indentation",
    r"expected ',' or '[\]}]', but got .*": "a ',' or a closing bracket is missing before this",
    r"found unexpected end of stream": "a quote is not closed before the file ends",
    r"found undefined alias '(.*)'": "the alias names no anchor above it",
    r"found duplicate anchor .*": "this anchor is already used in the file",
}


_UNREAD = object()  # stands for a value with a flaw of its own, so that it does not count as missing too


class NotYaml(Exception):
    """The text cannot be read any further; ``line`` and ``column`` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


class Document:
    """The data of a file, and what is wrong with its YAML. A place is a line and a column, counted from 1."""

    def __init__(self) -> None:
        self.data: object = None
        self.places: dict[tuple[Path, bool], tuple[int, int]] = {}  # (path, of its key?)
        self.flaws: dict[tuple[int, int], tuple[Path, str]] = {}
        self.unread: set[Path] = set()  # values left out for a flaw of their own


def read(content: str | bytes) -> Document:
    """The one document of a text. Raises NotYaml where it cannot be read at all."""
    text = _decoded(content).removeprefix("\ufeff")
    lines = _Lines(text)
    if bad := _unprintable(text):
        hint = (
            "" if bad.group() == "\0" or "\ud800" <= bad.group() <= "\udfff" else "; in double quotes write it as shown"
        )
        raise NotYaml(
            f"the character {shown(bad.group())} cannot stand in YAML as it is{hint}", *lines.place(bad.start())
        )
    root = _composed(text, lines)
    return _Reader(lines).document(root)


def _unprintable(text: str) -> re.Match[str] | None:
    if text.replace("\n", "").isprintable():  # as nearly all are; re would take 3 ms to compile its pattern
        return None
    return re.search(_UNPRINTABLE, text)


def _decoded(content: str | bytes) -> str:
    if len(content) > MOST_BYTES:
        raise NotYaml(f"more than {MOST_BYTES} bytes; this is something else", 1, 1)
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        raise NotYaml(
            f"the byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8",
            *_Lines(before.removeprefix("\ufeff")).end(),
        ) from None


class _Lines:
    """Turns offsets into lines and columns as editors count them."""

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def end(self) -> tuple[int, int]:
        return self.place(self._length)


class _Loader(yaml.SafeLoader):
    """Composes nodes whose tag says plain or quoted unless the file gave one; refuses depth before Python does."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.depth > _DEEPEST:
            raise yaml.MarkedYAMLError(problem=_TOO_DEEP, problem_mark=cast(Any, self).peek_event().start_mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ARG002
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else _QUOTED
        return _TAGS[kind]


def _composed(text: str, lines: _Lines) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark or loader.get_mark()
        raise NotYaml(_worded(error.problem or error.context or "not YAML"), *lines.place(mark.index)) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # an escape such as "\U00110000" is a bare ValueError
        raise NotYaml(f"not YAML: {shown(str(error))}", *lines.place(loader.get_mark().index)) from None
    finally:
        loader.dispose()


def _worded(problem: str) -> str:
    for pattern, words in _WORDING.items():
        if re.fullmatch(pattern, problem):
            return words
    return problem if problem == _TOO_DEEP else f"not YAML: {problem}"


class _Reader:
    """Walks the nodes once for every path that leads to them."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines
        self._document = Document()
        self._left = _MOST_VALUES
        self._open: list[yaml.Node] = []  # the nodes being read, to notice one inside itself

    def document(self, root: yaml.Node | None) -> Document:
        self._document.places[(), False] = (1, 1)
        if root is not None:
            self._document.data = self._value(root, ())
        return self._document

    def _value(self, node: yaml.Node, path: Path) -> object:
        self._place(path, False, node)
        self._spend(1, node)
        if self._is_open(node):
            return self._unread(node, path, "an alias stands inside its own anchor")
        if len(path) > _DEEPEST:
            raise NotYaml(_TOO_DEEP, *self._at(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag != _TAGS[type(node)]:
            return self._unread(node, path, _bad_tag(node))
        self._open.append(node)
        value = self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._list(node, path)
        self._open.pop()
        return value

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> object:
        if node.tag == _PLAIN:
            return Plain(node.value)
        if node.tag not in (_QUOTED, _TAGS[yaml.ScalarNode]):
            return self._unread(node, path, _bad_tag(node))
        return str(node.value)

    def _list(self, node: yaml.Node, path: Path) -> list[object]:
        return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        made: dict[str, object] = {}
        for key, value in self._own(node, path):
            made[key.value] = self._entry(key, value, path)
        for key, value in self._merged(node, path):
            if key.value not in made:
                made[key.value] = self._entry(key, value, path)
        return made

    def _entry(self, key: yaml.ScalarNode, value: yaml.Node, path: Path) -> object:
        below = (*path, key.value)
        self._place(below, True, key)
        made = self._value(value, below)
        if made == "" and isinstance(made, Plain):
            self._place(below, False, key)  # nothing is written: point at the key
        return made

    def _own(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        """The entries written in this mapping itself, without what ``<<`` brings."""
        seen: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag not in (_PLAIN, _QUOTED, _TAGS[yaml.ScalarNode]):
                self._flaw(key, path, "a key must be text")
            elif _is_merge(key):
                continue
            elif key.value in seen:
                first = self._at(seen[key.value])[0]
                self._flaw(key, (*path, key.value), f"is given twice, first on line {first}; keep one")
            else:
                seen[key.value] = key
                yield key, value

    def _merged(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        """The entries that ``<<`` brings, the nearest first."""
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and _is_merge(key):
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    yield from self._from(source, key, path)

    def _from(self, source: yaml.Node, key: yaml.Node, path: Path) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        if not isinstance(source, yaml.MappingNode) or self._is_open(source):
            self._flaw(key, (*path, "<<"), "merges a mapping or a list of mappings, and never itself")
            return
        self._spend(len(source.value) + 1, key)
        self._open.append(source)
        yield from self._own(source, path)
        yield from self._merged(source, path)
        self._open.pop()

    def _spend(self, values: int, node: yaml.Node) -> None:
        self._left -= values
        if self._left < 0:
            raise NotYaml(f"holds more than {_MOST_VALUES} values, aliases counted", *self._at(node))
        if len(self._open) > 2 * _DEEPEST:
            raise NotYaml(_TOO_DEEP, *self._at(node))

    def _is_open(self, node: yaml.Node) -> bool:
        return any(node is other for other in self._open)

    def _unread(self, node: yaml.Node, path: Path, message: str) -> object:
        self._document.unread.add(path)
        self._flaw(node, path, message)
        return _UNREAD

    def _flaw(self, node: yaml.Node, path: Path, message: str) -> None:
        self._document.flaws[self._at(node)] = (path, message)

    def _place(self, path: Path, of_key: bool, node: yaml.Node) -> None:
        self._document.places[path, of_key] = self._at(node)

    def _at(self, node: yaml.Node) -> tuple[int, int]:
        return self._lines.place(node.start_mark.index)


def _is_merge(key: yaml.ScalarNode) -> bool:
    return bool(key.tag == _PLAIN and key.value == "<<")


def _bad_tag(node: yaml.Node) -> str:
    tag = str(node.tag).replace("tag:yaml.org,2002:", "!!")
    return f"the tag {shown(tag)} is not read here; leave it out"
