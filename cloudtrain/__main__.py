"""The process of a command, as the console script and ``python -m cloudtrain`` start it: light, and ended at once.

What a command costs is mostly imports. Three things would add a third to that and give nothing back; all three belong
to a process of our own only, so they are here and not in cli/.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from importlib import import_module
from types import ModuleType
from typing import Any

# New objects after which Python looks for garbage. Its own 700 means to look through everything that is being
# imported time and again, and all of that lives until the end.
_SELDOM = 100_000


def command() -> None:
    """One command from its start to the end of the process."""
    gc.set_threshold(_SELDOM)
    _without_plugins()
    from cloudtrain.cli import main

    try:
        main()
    except SystemExit as end:
        _end(0 if end.code is None else end.code)
        raise
    finally:
        gc.freeze()  # where the usual end is needed: it would look for garbage once more


def _without_plugins() -> None:
    """pydantic asks the metadata of every installed package for plugins, which takes 15 ms of a command and more.

    Its own switch, the variable PYDANTIC_DISABLE_PLUGINS, saves half of that, and would reach the user's processes.
    """
    name = "pydantic.plugin._loader"
    stand_in = ModuleType(name)
    stand_in.get_plugins = tuple  # type: ignore[attr-defined]

    def of_the_loader(attribute: str) -> Any:
        """What a pydantic to come may ask of it besides: the loader itself has it, and is slow but right."""
        if attribute.startswith("__"):  # Python's own questions, such as whether this is a package
            raise AttributeError(attribute)
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        return getattr(import_module(name), attribute)

    stand_in.__getattr__ = of_the_loader  # type: ignore[method-assign]
    sys.modules.setdefault(name, stand_in)


def _end(code: object) -> None:
    """Does what is done at the end of every process, but for taking Python down piece by piece: 5 ms.

    Returns where that is not enough: other threads run, the code is a message, or nobody reads what is left to say.
    """
    if not isinstance(code, int) or threading.active_count() > 1:
        return
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # a full disk, a reader that is gone, a stream that was closed
        return
    os._exit(code)


if __name__ == "__main__":
    command()
