"""Processes that never outlive their launcher.

Three nets, each for what slips through the one before: every child asks the kernel for a signal when its parent dies
(Linux) or watches its parent's id (elsewhere; a pipe would have to pass through torch elastic, which closes it); the
launcher is the reaper of all orphans below it (Linux); and at its end it kills whatever descends from it. In a
network-namespace node the launcher is process 1 of a process namespace as well, and the kernel ends everything with
it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
IS_LINUX = sys.platform == "linux" and not os.environ.get("CT_PORTABLE_PROCESSES")
"""Whether Linux's own calls are used. The variable is for tests of what other systems get."""


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_parent(parent: int, sig: int = signal.SIGKILL, pidfd: int | None = None) -> None:
    """Ask for ``sig`` when ``parent``, this process's parent, dies; die at once if it has died already.

    ``parent`` is its process id as seen from here: 0 when it lives outside this process namespace, where only ``pidfd``
    (``own_pidfd`` of the parent) tells that it has died before. Elsewhere than on Linux a thread polls the parent's id,
    which changes when the parent dies.
    """
    if IS_LINUX:
        _prctl(_PR_SET_PDEATHSIG, sig)
    else:
        threading.Thread(target=_watch_parent, args=(parent, sig), daemon=True).start()
    if os.getppid() != parent or (pidfd is not None and _has_ended(pidfd)):
        os.kill(os.getpid(), sig)


def own_pidfd() -> int | None:
    """A descriptor by which forked processes see whether this one has ended, where the kernel has such."""
    if IS_LINUX and hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            return os.pidfd_open(os.getpid())
    return None


def _has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _watch_parent(parent: int, sig: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), sig)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies (Linux), so that ``kill_descendants`` finds it."""
    if IS_LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def let_go_of_inherited(keep: set[int]) -> None:
    """Hold none of the parent's open files, sockets and pipes but ``keep`` (and 0 to 2): for a process just forked.

    They are replaced by /dev/null, not closed: the parent's Python objects were forked as well, and would one day close
    their numbers, which by then could belong to files of the user's script.
    """
    folder = "/proc/self/fd" if IS_LINUX else "/dev/fd"
    null = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir(folder):
        fd = int(name)
        if fd > 2 and fd not in keep and fd != null:
            # The listing's own descriptor is gone by now, and must not come back.
            with contextlib.suppress(OSError):
                os.fstat(fd)
                os.dup2(null, fd, inheritable=False)
    os.close(null)


ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""What ends a process in order."""


def hold_back() -> None:
    """Keep signals of the kind ``ENDING`` waiting, across fork and exec, until ``let_in``. The first process of a
    container never hears of one that comes before it has a handler, and any other would die without a word."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def let_in() -> None:
    """Have what was held back, now that there are handlers."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def default_signals(blocked: Iterable[int] = ()) -> None:
    """Undo the launcher's handlers in a forked child: default actions, nothing blocked but what is given."""
    signal.set_wakeup_fd(-1)
    for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(sig, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as every Python starts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def send(pid: int, sig: int) -> None:
    """Signal a process that may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, sig)


def descendants(root: int) -> list[int]:
    """Process ids below ``root``, zombies left out."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc") if IS_LINUX else []
    except OSError:
        names = []
    if not names:
        children = _children_by_ps()
    for name in names:
        if name.isdigit():
            parent, state = _parent_and_state(int(name))
            if state not in ("Z", "X", ""):
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _children_by_ps() -> dict[int, list[int]]:
    """For systems without /proc. The ``ps`` itself, which has ended by then, is left out."""
    children: dict[int, list[int]] = {}
    listed = subprocess.run(["ps", "-Ao", "pid=,ppid=,stat="], capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        pid, parent, state = line.split()[:3]
        if not state.startswith("Z") and _exists(int(pid)):
            children.setdefault(int(parent), []).append(int(pid))
    return children


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _parent_and_state(pid: int) -> tuple[int, str]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            after_name = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0, ""
    return int(after_name[1]), after_name[0].decode()


def kill_descendants(root: int, seconds: float = 5.0) -> dict[int, int]:
    """SIGKILL everything below ``root`` until nothing is left; returns what was collected on the way, as ``reap`` does.

    A process in an uninterruptible sleep cannot be killed; it is given up after ``seconds``.
    """
    ended: dict[int, int] = {}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended.update(reap())
        alive = descendants(root)
        if not alive:
            break
        for pid in alive:
            send(pid, signal.SIGKILL)
        select.select([], [], [], 0.01)
    ended.update(reap())
    return ended


def reap() -> dict[int, int]:
    """Collect every child that has ended: process id -> status (negative = signal)."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status_of(status)


def status_of(wait_status: int) -> int:
    """A wait status as ``subprocess`` gives it: negative is a signal."""
    return -os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else os.WEXITSTATUS(wait_status)
