"""A network, a host name and a process tree of its own for every simulated node, by Linux namespaces.

Nothing has a name in the system: the namespaces live only in the processes inside them and in open file descriptors,
so nothing is left behind however a run ends, and any number of runs can use the same addresses. The host process
enters namespaces of its own first; in them it builds a bridge, and per node a network namespace joined to it. A node
is the first process of its process namespace as well, as it would be in a container.

Root may do all this; others become root in a user namespace of their own, which some systems forbid.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 4096, 16384, 1 << 18, 2, 4, 8

_PROC_FLAGS = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC

_FIRST_ADDRESS = "10.77.0.1"
PORT = 29400
"""Where node 0's launcher listens; each node has all ports to itself."""


class IsolationError(Exception):
    """This machine does not let us; the message says what failed."""


def enter() -> None:
    """Move this process, still single-threaded, into namespaces of its own. Raises IsolationError."""
    if sys.platform != "linux":
        raise IsolationError("network namespaces exist on Linux only")
    if not _ip_command():
        raise IsolationError("the `ip` command is missing (package iproute2)")
    try:
        try:
            _unshare(CLONE_NEWNS | CLONE_NEWNET)
        except PermissionError:
            _become_root_of_own()
            _unshare(CLONE_NEWNS | CLONE_NEWNET)
        _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
        _ip("link set lo up")
        _try_process_namespace()
    except OSError as error:
        raise IsolationError(f"namespaces are not permitted here: {error}") from error


def _try_process_namespace() -> None:
    """Some containers mask parts of /proc, and then the kernel lets nobody mount one anew."""
    tried = os.fork()
    if tried == 0:
        code = 1
        try:
            _unshare(CLONE_NEWPID | CLONE_NEWNS)
            first = os.fork()
            if first == 0:
                _mount("proc", "/proc", "proc", _PROC_FLAGS)
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
        finally:
            os._exit(code)
    if os.waitpid(tried, 0)[1]:
        raise OSError("no process tree of its own for a node (/proc cannot be mounted)")


def _become_root_of_own() -> None:
    """Enter a user namespace in which this user is root, and outside of which nothing changes."""
    uid, gid = os.geteuid(), os.getegid()
    _unshare(CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


class Network:
    """The nodes' network: made once, from any thread of a process that has called ``enter``."""

    def __init__(self, nodes: int, folder: Path, hosts: Sequence[str] = ()) -> None:
        """Build it. ``folder`` gets the hosts file. Raises IsolationError.

        ``hosts`` are names by which the nodes are to be found. If the first is an address (of 10.0.0.0/8), it is node
        0's, and the other nodes have those behind it.
        """
        numbered = [f"node-{node}" for node in range(nodes)]
        given = _is_address(hosts[0]) if hosts else False
        self.names = numbered if given or not hosts else list(hosts)
        self._prefix = 8 if given else 16
        self._addresses = [_address_behind(hosts[0] if given else _FIRST_ADDRESS, node) for node in range(nodes)]
        self._netns: list[int] = []
        try:
            self._build(nodes)
            self._hosts_file(folder)
        except OSError as error:
            raise IsolationError(f"the nodes' network could not be made: {error}") from error

    def fork(self, node: int, shm_gib: int | None) -> int:
        """Fork; in the child, become ``node``: its network, its host name, process 1 of its own process tree.

        A process that has asked for a new process namespace cannot ask again, so each node is the child of a process
        that does only that. This process, being the reaper of orphans, then becomes the node's parent.
        """
        pid_read, pid_write = os.pipe()
        go_read, go_write = os.pipe()
        between = os.fork()
        if between == 0:
            # Whatever fails from here on must end this process: it must not run on as a second host.
            pid = -1
            try:
                _unshare(CLONE_NEWPID)
                pid = os.fork()
                if pid == 0:
                    os.close(go_write)
                    os.read(go_read, 1)  # until the process between is gone: its end must not count as the parent's
                    self._become(node, shm_gib)
                    return 0
                os.write(pid_write, str(pid).encode())
            except BaseException:  # noqa: BLE001 - see above
                traceback.print_exc()
                os._exit(125)
            os._exit(0)
        os.waitpid(between, 0)
        os.close(pid_write)
        answer = os.read(pid_read, 32)
        os.close(go_write)
        for fd in (pid_read, go_read):
            os.close(fd)
        if not answer:
            raise IsolationError("a process namespace could not be made")
        return int(answer)

    def listen(self, node: int, port: int) -> socket.socket:
        """A socket that listens on loopback as the node has it; from any thread. Raises IsolationError."""
        ours = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _setns(self._netns[node], CLONE_NEWNET)
            return socket.create_server(("127.0.0.1", port), backlog=128)
        except OSError as error:
            raise IsolationError(f"the nodes' network could not be made: {error}") from error
        finally:
            _setns(ours, CLONE_NEWNET)
            os.close(ours)

    def _become(self, node: int, shm_gib: int | None) -> None:
        _setns(self._netns[node], CLONE_NEWNET)
        _unshare(CLONE_NEWNS | CLONE_NEWUTS)
        socket.sethostname(self.names[node])
        _mount("proc", "/proc", "proc", _PROC_FLAGS)
        if shm_gib:
            _mount("shm", "/dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={shm_gib}g,mode=1777")

    def _build(self, nodes: int) -> None:
        """Namespaces belong to threads, so the commands started here run where this thread is at that moment."""
        ours = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        for _ in range(nodes):
            _unshare(CLONE_NEWNET)
            self._netns.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
        _setns(ours, CLONE_NEWNET)
        _ip(
            "link add nodes type bridge\nlink set nodes up",
            *(
                f"link add veth{node} type veth peer name eth0 netns /proc/{os.getpid()}/fd/{fd}\n"
                f"link set veth{node} master nodes up"
                for node, fd in enumerate(self._netns)
            ),
        )
        for node, fd in enumerate(self._netns):
            _setns(fd, CLONE_NEWNET)
            _ip("link set lo up", f"addr add {self._addresses[node]}/{self._prefix} dev eth0", "link set eth0 up")
        _setns(ours, CLONE_NEWNET)

    def _hosts_file(self, folder: Path) -> None:
        file = folder / "hosts"
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        for node, name in enumerate(self.names):
            # The second spelling is what torch's store looks up for a peer of its IPv6 socket.
            address = self._addresses[node]
            lines += [f"{address} {name}", f"::ffff:{address} {name}"]
        file.write_text("\n".join(lines) + "\n")
        _mount(str(file), "/etc/hosts", None, _MS_BIND)


def _address_behind(first: str, node: int) -> str:
    number = int.from_bytes(socket.inet_aton(first), "big") + node
    return socket.inet_ntoa(number.to_bytes(4, "big"))


def _is_address(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET, host)
    except OSError:
        return False
    return True


def _ip_command() -> str | None:
    return shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _ip(*lines: str) -> None:
    command = _ip_command()
    if command is None:
        raise OSError("the `ip` command is missing")
    # A copy of the environment: the other thread, loading torch, may change ours while the command is being started.
    # Seen once as EFAULT from the start of `ip`, and not since; the cause is inferred.
    env = dict(os.environ)
    result = subprocess.run(
        [command, "-batch", "-"], check=False, env=env, input="\n".join(lines), capture_output=True, text=True
    )
    if result.returncode:
        raise OSError(f"ip: {result.stderr.strip()}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _unshare(flags: int) -> None:
    _check(_libc().unshare(flags), "unshare")


def _setns(fd: int, kind: int) -> None:
    _check(_libc().setns(fd, kind), "setns")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    def text(value: str | None) -> bytes | None:
        return value.encode() if value is not None else None

    _check(_libc().mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data)), f"mount {target}")
