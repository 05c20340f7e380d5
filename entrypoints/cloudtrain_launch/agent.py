"""Torch elastic's agent, in a process of its own below the launcher.

Apart from the launcher because elastic answers SIGTERM by signalling whole process groups, dies by it before the
workers exist, and blocks for minutes in places the launcher must be able to leave (read in torch 2.13). Static
rendezvous, no restarts inside the job: a restart of the job from its checkpoint is the one kind that works on every
cloud.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from dataclasses import fields
from typing import Any, NoReturn

from cloudtrain_launch import processes

# Elastic's own grace after a worker failed. The launcher's is shorter and comes first; this one is the last resort.
_ELASTIC_SHUTDOWN_SECONDS = 60


def serve(sock: socket.socket, config_path: str, forked: bool) -> NoReturn:
    """Load torch, wait for the word to go, run the workers, tell the outcome.

    The word is ``{"nodes", "node", "processes", "run_id", "host", "port", "timeout", "env"}`` (the last for the
    workers, beside what they inherit), the outcome ``{"error": text or null}``; what happened to each worker
    its warden has told the launcher itself.
    """
    import torch.distributed.launcher.api  # noqa: F401 - the costly part, done while the nodes find each other

    with sock.makefile("r", encoding="utf-8") as lines:
        line = lines.readline()
    if not line:  # the launcher is gone
        os._exit(1)
    word = json.loads(line)
    os.environ.update(word["env"])
    error = _run(word, config_path, forked)
    sock.sendall(json.dumps({"error": error}).encode() + b"\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _run(word: dict[str, Any], config_path: str, forked: bool) -> str | None:
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    from cloudtrain_launch import worker

    launch_config = _launch_config(word, os.path.join(os.path.dirname(config_path), "elastic"), forked)
    try:
        if forked:
            elastic_launch(launch_config, worker.forked)(config_path)
        else:
            elastic_launch(launch_config, sys.executable)("-u", "-m", "cloudtrain_launch.worker", config_path)
    except ChildFailedError as error:
        return f"{len(error.failures)} of its workers failed"
    except Exception as error:  # noqa: BLE001 - whatever keeps elastic from running the workers is the outcome
        return f"{type(error).__name__}: {error}"
    return None


def _launch_config(word: dict[str, Any], log_folder: str, forked: bool) -> Any:
    from torch.distributed.elastic import multiprocessing
    from torch.distributed.launcher.api import LaunchConfig

    # A folder of its own in the system's temporary one is what elastic would make, and leave there.
    logs = getattr(multiprocessing, "DefaultLogsSpecs", None)
    wanted = {
        "min_nodes": word["nodes"],
        "max_nodes": word["nodes"],
        "nproc_per_node": word["processes"],
        "run_id": word["run_id"],
        "rdzv_backend": "static",
        "rdzv_endpoint": f"{word['host']}:{word['port']}",
        "rdzv_configs": {"rank": word["node"], "timeout": word["timeout"]},
        "max_restarts": 0,
        "monitor_interval": 0.1,
        "start_method": "fork" if forked else "spawn",
        "local_addr": word["host"] if word["node"] == 0 else None,
        "shutdown_timeout": _ELASTIC_SHUTDOWN_SECONDS,
        "log_dir": log_folder,
        "logs_specs": logs(log_dir=log_folder) if logs else None,
    }
    # torch 2.1 knows fewer fields than 2.13.
    known = {f.name for f in fields(LaunchConfig)}
    return LaunchConfig(**{name: value for name, value in wanted.items() if name in known})


def main() -> NoReturn:
    """``python -m cloudtrain_launch.agent FD PARENT CONFIG``: the agent as a fresh interpreter, as on a cloud."""
    fd, parent, config_path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    processes.die_with_parent(parent, signal.SIGKILL)
    serve(socket.socket(fileno=fd), config_path, forked=False)


if __name__ == "__main__":
    main()
