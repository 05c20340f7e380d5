"""Runs the user's script as ``__main__`` in this process, the way a fresh ``python script.py`` would."""

from __future__ import annotations

import atexit
import ctypes
import importlib.abc
import importlib.machinery
import io
import os
import runpy
import sys
import threading
import time
import traceback
import types
from collections.abc import Sequence
from functools import wraps
from typing import Any, Callable, Optional

# Called when the script ends badly: a summary, the traceback (None for sys.exit), when it happened (seconds since the
# epoch), the exit code to come. What still runs after it, exit functions above all, may take its time.
Report = Callable[[str, Optional[str], float, int], None]


def run(kind: str, target: str, argv: Sequence[str], report: Report) -> int:
    """Run ``target`` (a path, or a module name if ``kind`` is ``module``) with ``argv``; return its exit code.

    Ends as an interpreter does: threads are joined, ``atexit`` functions run, streams are flushed.
    """
    sys.argv = [target, *argv]
    try:
        if kind == "module":
            sys.path.insert(0, os.getcwd())
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            _run_file(target)
        code = 0
    except SystemExit as error:
        when, (code, reason) = time.time(), _exit_code(error)
        if code:
            report(f"exited with code {code}{reason}", None, when, code)
    except BaseException as error:  # noqa: BLE001 - whatever the script raises is its end, and is reported
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
        _report(error, code, report)
    return _end_interpreter(code)


def _run_file(path: str) -> None:
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    # multiprocessing's spawn and pickle look the script's classes up here.
    sys.modules["__main__"] = main
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    with io.open_code(os.path.abspath(path)) as file:
        source = file.read()
    # Not with our own __future__ imports: a dataclass of the script would find its types as text.
    exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)


def _exit_code(error: SystemExit) -> tuple[int, str]:
    """The code that Python would exit with, and the reason where the script gave a text instead of a number."""
    if error.code is None:
        return 0, ""
    if isinstance(error.code, int):
        fits = -(1 << 31) <= error.code < 1 << 31
        return error.code & 0xFF if fits else 255, ""
    reason = _shown(error.code)
    print(reason, file=sys.stderr)
    return 1, f": {reason}"[:500]


def _shown(value: object) -> str:
    """``str(value)`` even of what cannot be shown."""
    try:
        return str(value)
    except BaseException as error:  # noqa: BLE001 - the value's own code runs here
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def _report(error: BaseException, code: int, report: Report) -> None:
    when = time.time()
    error = error.with_traceback(_without_launcher(error.__traceback__))
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    # Printed first: once reported, the launcher ends this process within seconds.
    # As an interpreter does for an error that ends it; exit functions look there.
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException:  # noqa: BLE001 - the script's own hook failed
        sys.stderr.write(text)
    report(f"{type(error).__name__}: {_shown(error)}"[:2000], text[-60_000:], when, code)


def _without_launcher(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Drop our own frames, and runpy's, from the top: the user reads only what is theirs."""
    while trace and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    return trace


def _end_interpreter(code: int) -> int:
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:  # noqa: BLE001 - an exit function may raise anything; the script's own code stands
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    return code


def on_process_group(announce: Callable[[str], None]) -> None:
    """Call ``announce`` with ``joining`` when the script enters ``init_process_group`` and ``joined`` when it is
    through.

    If torch.distributed is loaded already it is wrapped at once, else when the script imports it: importing it here
    would be too early for a script that sets variables first.
    """
    name = "torch.distributed.distributed_c10d"
    if name in sys.modules:
        _wrap(sys.modules[name], announce)
        package = sys.modules["torch.distributed"]
        setattr(package, "init_process_group", sys.modules[name].init_process_group)  # noqa: B010
    else:
        sys.meta_path.insert(0, _AfterImport(name, lambda module: _wrap(module, announce)))


def _wrap(module: types.ModuleType, announce: Callable[[str], None]) -> None:
    rank_process = os.getpid()
    original = getattr(module, "init_process_group", None)
    if original is None:  # torch built without distributed
        return

    @wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        if os.getpid() != rank_process:  # a process that the script forked
            return original(*args, **kwargs)
        announce("joining")
        result = original(*args, **kwargs)
        _keep_for_ever(module.group.WORLD)
        announce("joined")
        return result

    module.init_process_group = init_process_group  # type: ignore[attr-defined]


def _keep_for_ever(group: Any) -> None:
    """Hold the default process group beyond the end of the interpreter.

    A script that calls ``destroy_process_group`` while a DDP model is alive frees the group under the interpreter lock,
    for which gloo's threads may be waiting: it hangs, about once in 60 runs on a busy machine (seen with torch 2.13).
    """
    _groups.append(group)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))


_groups: list[Any] = []


class _AfterImport(importlib.abc.MetaPathFinder):
    """Runs a function on one module right after its import, then gets out of the way."""

    def __init__(self, name: str, then: Callable[[types.ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec and spec.loader:
            original = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                original(module)
                self._then(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
