"""One training process and its warden.

Torch elastic starts a warden per rank. The warden forks the script's process and waits for it, so that

- its exact end is known at once, ``os._exit`` and signals included (elastic polls, and hangs on an ``os._exit(0)``
  of a forked worker, since it waits for a return value);
- SIGTERM reaches the script's process alone, not its DataLoader workers, whose death would cost the last checkpoint
  (elastic signals the whole group);
- the script starts as the leader of its own session, with plain signal actions and its output in the rank's pipe.

If the warden dies the script's process is killed by the kernel, and if the agent dies, the warden is.
"""

from __future__ import annotations

import faulthandler
import io
import json
import multiprocessing.process
import os
import signal
import socket
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from cloudtrain_launch import exits, processes, script

STACK_SIGNAL = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else None
"""Asks a script's process to write where it is to ``stack_file``; out of the way of what scripts use themselves."""


_MAIN_PROCESS = multiprocessing.process.current_process()


@dataclass(frozen=True)
class WorkerConfig:
    """What the launcher tells each of its workers, as a JSON file in the node's temporary folder."""

    kind: str
    target: str
    args: list[str]
    code: str
    entrypoints: str
    folder: str
    """Where the socket ``workers`` and the pipes ``out-<local rank>`` are."""

    @classmethod
    def load(cls, path: str) -> WorkerConfig:
        """Read what ``save`` wrote."""
        with open(path, encoding="utf-8") as file:
            return cls(**json.load(file))

    def save(self, path: str) -> None:
        """Write it where the wardens find it."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)

    def pipe(self, local_rank: int) -> str:
        """The named pipe a rank prints to."""
        return os.path.join(self.folder, f"out-{local_rank}")

    def stack_file(self, local_rank: int) -> str:
        """Where a rank writes its stack when asked."""
        return os.path.join(self.folder, f"stack-{local_rank}")

    @property
    def socket(self) -> str:
        """Where the launcher listens to its wardens."""
        return os.path.join(self.folder, "workers")


class Announcer:
    """Tells the launcher what happens to this rank. A launcher that is gone is not an error here."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.process = os.getpid()
        """The only process that speaks for the rank: not one that the script forks."""
        self._file = _identity(sock.fileno())
        self._who = {"rank": int(os.environ["RANK"]), "local_rank": int(os.environ["LOCAL_RANK"])}

    def tell(self, kind: str, **what: Any) -> None:
        """Send one message, with the rank and, unless given, the time."""
        message = {"time": time.time(), **what, "kind": kind, **self._who}
        try:
            # A script may have closed our descriptor, and its number may be another file's by now.
            if os.getpid() != self.process or _identity(self.sock.fileno()) != self._file:
                return
            self.sock.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def forked(config_path: str) -> None:
    """The warden as the callable that a forked elastic worker runs; returns only if the script ended well."""
    code = exits.of_status(_warden(config_path, preloaded=True))
    if code:
        os._exit(code)


def main() -> NoReturn:
    """``python -m cloudtrain_launch.worker CONFIG`` is a warden, with WARDEN and FD behind it a script's process."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the working folder of `python -m`; script.run puts the script's own there
    config_path, *script_of = sys.argv[1:]
    if script_of:
        warden, fd = int(script_of[0]), int(script_of[1])
        announcer = Announcer(socket.socket(fileno=fd))
        _become_script(WorkerConfig.load(config_path), announcer, warden, preloaded=False)
    os._exit(exits.of_status(_warden(config_path, preloaded=False)))


def _warden(config_path: str, preloaded: bool) -> int:
    parent = os.getppid()
    processes.die_with_parent(parent)
    config = WorkerConfig.load(config_path)
    announcer = Announcer(_connect(config.socket))
    held_back = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
    signal.pthread_sigmask(signal.SIG_BLOCK, held_back)
    announcer.tell("started", pid=os.getpid())
    warden = os.getpid()
    if preloaded or processes.IS_LINUX:
        pid = os.fork()
        if pid == 0:
            _become_script(config, announcer, warden, preloaded)
    else:
        pid = _spawn_script(config_path, announcer)
    for sig in held_back:
        signal.signal(sig, lambda *_: processes.send(pid, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, held_back)
    status = processes.status_of(os.waitpid(pid, 0)[1])
    announcer.tell("exit", status=status)
    return status


def _connect(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return sock


def _spawn_script(config_path: str, announcer: Announcer) -> int:
    """Where a process that was forked may not go on without exec (macOS): the script's process as an interpreter."""
    fd = announcer.sock.fileno()
    os.set_inheritable(fd, True)
    argv = [sys.executable, "-u", "-m", "cloudtrain_launch.worker", config_path, str(os.getpid()), str(fd)]
    return os.posix_spawn(sys.executable, argv, os.environ, setsigmask=())


def _become_script(config: WorkerConfig, announcer: Announcer, warden: int, preloaded: bool) -> NoReturn:
    """From here on this is the user's process. Never returns into the warden's frames."""
    code = exits.LAUNCHER
    doing = "could not start the script"
    try:
        announcer.process = os.getpid()
        _prepare(config, announcer, warden, preloaded)
        announcer.tell("script", pid=os.getpid())
        doing = "the script ended in a way that could not be reported"
        script.on_process_group(announcer.tell)
        argv = config.args if config.kind != "task" else ["--task", config.target, *config.args]
        target = config.target if config.kind != "task" else os.path.join(config.entrypoints, "train_ddp.py")
        code = script.run(
            "module" if config.kind == "module" else "file",
            target,
            argv,
            lambda summary, trace, when, code: announcer.tell(
                "error", message=summary, traceback=trace, time=when, code=code
            ),
        )
    except BaseException as error:  # noqa: BLE001 - a forked process must not fall back into its parent's code
        announcer.tell("error", message=f"{doing}: {type(error).__name__}: {error}", traceback=None, code=code)
    finally:
        os._exit(code)


def _prepare(config: WorkerConfig, announcer: Announcer, warden: int, preloaded: bool) -> None:
    os.setsid()
    processes.default_signals()
    processes.die_with_parent(warden)
    _redirect(config.pipe(int(os.environ["LOCAL_RANK"])))
    processes.let_go_of_inherited(keep={announcer.sock.fileno()})
    os.chdir(config.code)
    multiprocessing.process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]  # where spawn looks for the script
    if preloaded:
        _look_fresh()
    faulthandler.enable()
    if STACK_SIGNAL is not None:
        # Opened for good: the handler runs in signal context and can only write.
        where = os.open(config.stack_file(int(os.environ["LOCAL_RANK"])), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        faulthandler.register(STACK_SIGNAL, file=where, all_threads=False)


def _redirect(pipe: str) -> None:
    out = os.open(pipe, os.O_WRONLY)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    # As `python -u`: what was printed just before os._exit or a kill is not lost in a buffer.
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), encoding="utf-8")
    sys.stdout = _unbuffered(1, errors="surrogateescape")
    sys.stderr = _unbuffered(2, errors="backslashreplace")
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))


class _Whole(io.FileIO):
    """A file that takes all of what it is given. The kernel takes a part when a signal arrives during a long write, and
    TextIOWrapper, bare `python -u` included, does not look at what is left."""

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while left:
            left = left[super().write(left) or 0 :]
        return size


def _unbuffered(fd: int, errors: str) -> io.TextIOWrapper:
    raw: Any = _Whole(fd, "w")
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, write_through=True)


def _look_fresh() -> None:
    """Make a forked process look like a new interpreter where a script could tell the difference."""
    multiprocessing.process._current_process = _MAIN_PROCESS  # type: ignore[attr-defined]
    multiprocessing.process._parent_process = None  # type: ignore[attr-defined]
    multiprocessing.process._children = set()  # type: ignore[attr-defined]
    if "numpy" in sys.modules:  # forked ranks would all draw the same numbers; fresh ones do not
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:  # read at import in a fresh process, too late here
        _set_threads(sys.modules["torch"], os.environ.get("OMP_NUM_THREADS", ""))


def _set_threads(torch: Any, text: str) -> None:
    """OMP_NUM_THREADS is one number, or one for each level of nesting; anything else OpenMP ignores, too."""
    first = text.partition(",")[0].strip()
    if first.isdigit() and int(first) > 0:
        torch.set_num_threads(int(first))


if __name__ == "__main__":
    main()
