"""The process that holds the simulated nodes of one run.

It loads torch once and forks every node from that (``fork``), or starts a fresh interpreter per node, as a cloud would
(``agents``). It is started before the job file is read, so that loading torch costs the user no time of its own.

Speaks JSON lines: hears ``run`` (what to start), ``stop`` and ``kill`` on standard input, says ``isolation``,
``started``, ``ended``, ``torch`` (it cannot be loaded) and ``fault`` on standard output. When standard input ends,
whoever started the run is gone, and the nodes are stopped: a run never outlives its command. Imports nothing of
cloudtrain but its neighbours.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from cloudtrain.providers.local import isolation, node_process
from cloudtrain.providers.local.node_process import Plan
from cloudtrain_launch import cluster, layout, processes
from cloudtrain_launch.contracts import places
from cloudtrain_launch.environ import without_foreign
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.spec import LaunchSpec

_KILL_AFTER_STOP_SECONDS = 15.0
_LOCK_TRIES = 50
_LOOPBACK = "127.0.0.1"


def main(wanted_isolation: str, engine: str, folder: str) -> None:
    """Run as ``python -c``. Isolation: auto, netns, none; engine: fork, agents; a folder for sockets and pipes."""
    said = os.dup(1)
    os.dup2(2, 1)
    host = _Host(said, wanted_isolation, engine)
    try:
        host.run()
    except Exception:  # noqa: BLE001 - whatever it is, the command line must hear it rather than see a silent end
        host.say("fault", message=traceback.format_exc())
    finally:
        processes.kill_descendants(os.getpid())
        layout.remove(folder)  # the command line does so, too, unless it was killed
        os._exit(0)


class _Host:
    def __init__(self, said: int, wanted_isolation: str, engine: str) -> None:
        self._said = said
        self._wanted = wanted_isolation
        self._engine = engine
        self._running: dict[int, int] = {}
        self._kill_at: float | None = None
        self._told_to_stop = False
        self._stopping = False
        self._network: isolation.Network | None = None
        self._pending = bytearray()
        self._plan: Plan | None = None
        self._problem: str | None = None
        self._wake = socket.socketpair()

    def say(self, kind: str, **what: Any) -> None:
        with contextlib.suppress(OSError):
            os.write(self._said, json.dumps({"kind": kind, **what}).encode() + b"\n")

    def run(self) -> None:
        os.setsid()  # the terminal's Ctrl-C is for the command line alone
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._hear_sigterm)  # as when a whole group of processes is told to end
        processes.adopt_orphans()
        isolated, reason = self._enter()
        reader = threading.Thread(target=self._await_plan, args=(isolated,))
        reader.start()
        broken = load_torch() if self._engine == "fork" else ""
        reader.join()
        if self._plan is None:
            return
        if broken:
            self.say("torch", problem=broken)
            return
        if self._engine == "fork":
            for module in self._plan["preload"]:
                with contextlib.suppress(ImportError):  # it would only have saved time
                    import_module(module)
        if self._problem and self._wanted == "netns":
            self.say("isolation", isolation=None, reason=self._problem)
            return
        self.say("isolation", isolation="netns" if self._network else "none", reason=self._problem or reason)
        self._start(self._plan)
        self._watch()

    def _enter(self) -> tuple[bool, str | None]:
        if self._wanted == "none":
            return False, None
        try:
            isolation.enter()
        except isolation.IsolationError as error:
            self._problem = str(error)
            return False, str(error)
        return True, None

    def _await_plan(self, isolated: bool) -> None:
        """Beside the import of torch: read the plan, and build the network it needs."""
        while b"\n" not in self._pending:
            data = os.read(0, 1 << 16)
            if not data:
                return
            self._pending += data
        line, _, rest = bytes(self._pending).partition(b"\n")
        self._pending = bytearray(rest)
        plan: Plan = json.loads(line)
        if isolated:
            try:
                hosts = _contract_hosts(plan) if plan["containers"] else []
                network = isolation.Network(len(plan["nodes"]), Path(plan["folder"]), hosts)
                _send_listeners(plan, network)
                self._network = network
            except isolation.IsolationError as error:
                self._problem = str(error)
        self._plan = plan

    def _start(self, plan: Plan) -> None:
        for end in self._wake:
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake[1].fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        gc.freeze()  # the collector would touch, and so copy, every page the nodes share
        listener = None if self._network else _listen_on_loopback()
        shell = {**without_foreign(plan["env"]), **plan["secrets"]} if not node_process.is_sealed(plan) else {}
        others = _others(plan, self._network, listener)
        plan["host"], plan["host_fd"] = os.getpid(), processes.own_pidfd()
        for node, env in enumerate(plan["nodes"]):
            env = {**shell, **env, **others}
            processes.hold_back()
            pid = self._fork(node, plan)
            if pid == 0:
                heard_at = listener if node == 0 else None
                node_process.become(plan, node, env, heard_at, self._network is not None, self._engine)
            processes.let_in()
            self._running[pid] = node
            self.say("started", node=node, pid=pid)
        if listener:
            listener.close()

    def _fork(self, node: int, plan: Plan) -> int:
        return self._network.fork(node, plan["shm_gib"]) if self._network else os.fork()

    def _watch(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(0, selectors.EVENT_READ)
        selector.register(self._wake[0], selectors.EVENT_READ)
        self._obey_pending()  # a `stop` may have come in one piece with the plan
        while self._running:
            for key, _ in selector.select(0.5):
                if key.fd == 0:
                    if not self._obey():
                        selector.unregister(0)
                else:
                    self._wake[0].recv(4096)
            if self._told_to_stop:
                self._stop()
            for pid, status in processes.reap().items():
                if pid in self._running:
                    self.say("ended", node=self._running.pop(pid), status=status)
                    if status:  # the others follow by themselves, unless one is stopped or stuck
                        self._kill_later()
            if self._kill_at is not None and time.monotonic() > self._kill_at:
                self._signal(signal.SIGKILL)

    def _hear_sigterm(self, *_: object) -> None:
        self._told_to_stop = True

    def _obey(self) -> bool:
        """Do what standard input says; False when it has ended."""
        data = os.read(0, 1 << 16)
        if not data:
            self._be_left()
            return False
        self._pending += data
        self._obey_pending()
        return True

    def _be_left(self) -> None:
        """The command is gone and the nodes are not: they may be saving, and nobody is to continue from that yet."""
        assert self._plan
        if self._plan["grace"] is None:
            self._signal(signal.SIGKILL)
            return
        with contextlib.suppress(OSError):
            self._lock = os.open(self._plan["lock"], os.O_WRONLY)
            _take(self._lock)
        self._stop()

    def _obey_pending(self) -> None:
        *lines, rest = bytes(self._pending).split(b"\n")
        self._pending = bytearray(rest)
        for message in map(json.loads, lines):
            if message["kind"] == "stop":
                self._stop()
            elif message["kind"] == "signal":
                self._signal(message["number"], message["node"])
            else:
                self._signal(signal.SIGKILL)

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._signal(signal.SIGTERM)
            self._kill_later()

    def _kill_later(self) -> None:
        if self._kill_at is None and self._plan and self._plan["grace"] is not None:
            self._kill_at = time.monotonic() + self._plan["grace"] + _KILL_AFTER_STOP_SECONDS

    def _signal(self, sig: int, only: int | None = None) -> None:
        for pid, node in self._running.items():
            if only in (None, node):
                processes.send(pid, sig)


def load_torch() -> str:
    """And the launcher, as far as nodes that are forked from this process need them. Returns what keeps torch from
    being loaded, which is no fault of ours: another CUDA, a library that is not there, half an installation."""
    try:
        import torch.distributed.launcher.api  # noqa: F401 - the costly part
    except Exception as error:  # noqa: BLE001 - whatever it is: packages raise anything when they are imported
        return f"{type(error).__name__}: {error}"

    import launch  # noqa: F401 - the nodes call it

    return ""


def _send_listeners(plan: Plan, network: isolation.Network) -> None:
    """One message per node, each a byte with the sockets in the order of the ports."""
    if not plan["relayed"]:
        return
    with socket.socket(socket.AF_UNIX) as relay:
        relay.connect(str(Path(plan["folder"], "relay")))
        for node in range(len(plan["nodes"])):
            listeners = [network.listen(node, port) for port in plan["relayed"]]
            socket.send_fds(relay, [b"."], [listener.fileno() for listener in listeners])
            for listener in listeners:
                listener.close()


def _take(lock: int) -> None:
    """Whoever asks whether a lock is held has it for a moment. Never waits long: the nodes are to be stopped."""
    for _ in range(_LOCK_TRIES):
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
    return None


def _contract_hosts(plan: Plan) -> list[str]:
    """The names by which the launchers are going to look for each other, read from the contract as they read it."""
    try:
        env = places.relocated(plan["nodes"][0])
        spec = LaunchSpec.load(str(Path(plan["containers"][0]["folder"], env["CLOUDTRAIN_SPEC"])))
        hosts = cluster.resolve(env, spec).hosts
    except (LaunchError, KeyError):
        return []  # node 0 is going to find the same, and to report it
    return [] if hosts == (_LOOPBACK,) else list(hosts)


def _others(plan: Plan, network: isolation.Network | None, listener: socket.socket | None) -> dict[str, str]:
    """What tells the nodes where the others are, unless a cloud's contract does that and its names exist here."""
    port = str(listener.getsockname()[1] if listener else isolation.PORT)
    if not plan["containers"]:
        names = network.names if network else [_LOOPBACK] * len(plan["nodes"])
        return {"CLOUDTRAIN_HOSTS": ",".join(names), "CLOUDTRAIN_PORT": port}
    if network:
        return {}
    addresses = ",".join(f"{host}={_LOOPBACK}" for host in _contract_hosts(plan))
    interface = "lo" if sys.platform == "linux" else "lo0"
    interfaces = {f"{library}_SOCKET_IFNAME": interface for library in ("GLOO", "NCCL", "TP")}
    return {"CLOUDTRAIN_HOSTMAP": addresses, "CLOUDTRAIN_PORT": port, **interfaces}


def _listen_on_loopback() -> socket.socket:
    sock = socket.socket()
    sock.bind((_LOOPBACK, 0))
    sock.listen(128)
    return sock
