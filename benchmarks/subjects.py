"""The commands that are compared."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring import Command

_SCRIPTS = Path(__file__).with_name("scripts")


def python(code: str) -> Command:
    """``python -c CODE``, with the interpreter that runs this."""
    return Command([sys.executable, "-c", code])


def cloudtrain(*args: str, cwd: Path | None = None) -> Command:
    """The installed ``cloudtrain``, as a user calls it."""
    return Command([str(Path(sys.executable).with_name("cloudtrain")), *args], cwd, _environment())


def torchrun(script: Path, nodes: int, processes: int, args: Sequence[str] = ()) -> list[Command]:
    """Bare torchrun with the same ranks: an agent per node, all on this machine, static rendezvous on loopback."""
    port = str(_free_port())
    return [
        Command(
            [
                sys.executable, "-m", "torch.distributed.run", f"--nnodes={nodes}", f"--node-rank={node}",
                f"--nproc-per-node={processes}", "--rdzv-backend=static", "--master-addr=127.0.0.1",
                f"--master-port={port}", str(script), *args,
            ],
            script.parent,
            _environment(),
        )
        for node in range(nodes)
    ]  # fmt: skip


@contextmanager
def project(script: str) -> Iterator[Path]:
    """A temporary folder with ``job.yaml`` and ``train.py``, a copy of ``scripts/SCRIPT``; 2 nodes x 2 processes."""
    with TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        shutil.copy(_SCRIPTS / script, folder / "train.py")
        (folder / "job.yaml").write_text(
            "name: bench\nentry: train.py\nresources: {nodes: 2, processes_per_node: 2}\n", encoding="utf-8"
        )
        yield folder


def _environment() -> dict[str, str]:
    """One thread per process, whoever starts it; torchrun would say so by itself, with a warning.

    Bytecode is written: an installed cloudtrain has it, like all that it is compared with; a checkout gets it in the
    round that is not counted.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "OMP_NUM_THREADS": "1"}


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
