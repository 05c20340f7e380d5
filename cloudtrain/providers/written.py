"""A request as YAML, for the files that vendors' command lines read and for ``render -o yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from cloudtrain.spec.native import is_text

_NEVER_FOLD = 1 << 30
_SWITCHES = ("y", "n")  # true and false to YAML 1.1, text to PyYAML


def as_yaml(native: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """YAML that is read back as ``native`` by readers of YAML 1.1 (the vendors') and 1.2.

    ``ascii_only``: other letters as escapes, for a terminal that may have no such letters.
    """
    return yaml.dump(dict(native), Dumper=_Dumper, sort_keys=False, allow_unicode=not ascii_only, width=_NEVER_FOLD)


class _Dumper(yaml.SafeDumper):
    """Quotes what either version of YAML would read as something else than text, and shows no aliases."""

    def ignore_aliases(self, _: Any) -> bool:
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        style = '"' if not data.isprintable() or not is_text(data) or data.lower() in _SWITCHES else None
        return self.represent_scalar("tag:yaml.org,2002:str", str(data), style=style)


_Dumper.add_representer(str, _Dumper.text)
