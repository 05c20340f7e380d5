"""The environment of a worker: what other launchers left is removed, our variables and the job's own are put in."""

from __future__ import annotations

import os
import re
import socket
import struct
import sys
from collections.abc import Mapping, Sequence

from cloudtrain_launch.cluster import Cluster
from cloudtrain_launch.contracts import reading
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.spec import LaunchSpec

# Variables by which other launchers and platforms tell a process its rank. Left in place they make torch, Accelerate,
# DeepSpeed or JAX believe in another cluster (facts: torchrun reads PET_*; DeepSpeed demands OMPI_* when it sees
# AZUREML_EXPERIMENT_ID; kubeflow/trainer issue 1790 for a node-level WORLD_SIZE).
_FOREIGN = re.compile(
    r"(LOCAL_|GROUP_|ROLE_|NODE_|CROSS_)?(RANK|WORLD_SIZE)|MASTER_(ADDR|PORT)|ROLE_NAME|TF_CONFIG|CLUSTER_SPEC|"
    r"(PET|TORCHELASTIC|TORCH_ELASTIC|SLURM|SLURMD|SRUN|SBATCH|OMPI|PMI|PMIX|MPIEXEC|HYDI|SM|SAGEMAKER|AZUREML|AZ_BATCH|AIP|"
    r"ACCELERATE|FSDP|DEEPSPEED|HOROVOD|JSM|LSB|PALS|FLUX|CLOUD_ML|KERAS_DISTRIBUTION|CLOUDTRAIN)_\w*|"
    r"JAX_(COORDINATOR_(ADDRESS|BIND_ADDRESS)|LOCAL_DEVICE_IDS|PARTITION_INDEX)|CURRENT_HOST|TRAINING_JOB_NAME"
)


def without_foreign(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` less every variable by which some launcher, ours included, tells a process its place."""
    return {name: value for name, value in env.items() if not _FOREIGN.fullmatch(name)}


def worker_environment(base: Mapping[str, str], spec: LaunchSpec, cluster: Cluster) -> dict[str, str]:
    """What every worker of this node sees, before torch elastic adds each one's rank."""
    env = without_foreign(base)
    # Accelerate and PyTorch take OMP_NUM_THREADS for what the platform decided; torchrun would put 1.
    env.setdefault("OMP_NUM_THREADS", str(threads_per_process(spec.processes_per_node, base)))
    env.update(
        CLOUDTRAIN_RUN_ID=spec.run_id,
        CLOUDTRAIN_ATTEMPT=str(spec.attempt),
        CLOUDTRAIN_PROVIDER=cluster.provider,
        CLOUDTRAIN_NODES=str(cluster.nodes),
        CLOUDTRAIN_HOSTS=",".join(cluster.hosts),
        CLOUDTRAIN_GRACE=str(spec.grace),
        NODE_RANK=str(cluster.node),
        **cluster.folders,
    )
    for name, value in cluster.variables.items():
        env.setdefault(name, value)
    env.update(framework_defaults(spec, cluster))
    env.update({name: substitute(text, cluster) for name, text in spec.env.items()})
    env.update(secrets(base))
    interface = None if cluster.is_cloud else interface_towards(cluster)
    if interface:
        env.setdefault("GLOO_SOCKET_IFNAME", interface)
    return env


def met_environment(env: Mapping[str, str], cluster: Cluster, address: str, hosts: Sequence[str]) -> dict[str, str]:
    """What can be said only once the nodes have met, to be added to ``env``: in a cloud names may mean nothing before.

    ``address`` is this node's own as seen from the others, ``hosts`` all nodes' addresses as node 0 sees them.
    """
    met = {}
    interface = interface_of(address) if cluster.is_cloud and "GLOO_SOCKET_IFNAME" not in env else None
    if interface:
        met["GLOO_SOCKET_IFNAME"] = interface
    if cluster.hosts_by_address:
        met["CLOUDTRAIN_HOSTS"] = ",".join(hosts)
    return met


SECRET = "CLOUDTRAIN_SECRET_"
"""Before a secret's name, on its way to the launcher."""


def secrets(base: Mapping[str, str]) -> dict[str, str]:
    """The job's secrets under their own names, whatever other launcher's variable such a name may look like."""
    return {name[len(SECRET) :]: value for name, value in base.items() if name.startswith(SECRET)}


def framework_defaults(spec: LaunchSpec, cluster: Cluster) -> dict[str, str]:
    """What makes frameworks take the cluster they are given; the job's own variables and arguments win.

    Accelerate 1.15, and the Trainers built on it, form no process group on CPU unless told that CPU is meant: every
    rank would train alone. Lightning 2.6's Trainer and Fabric ignore the launcher's world size unless devices and
    nodes are named, by argument or by these variables.
    """
    defaults = {}
    if cluster.device == "cpu":
        defaults["ACCELERATE_USE_CPU"] = "true"
    if spec.framework == "lightning":
        shape = {"DEVICES": str(spec.processes_per_node), "NUM_NODES": str(cluster.nodes)}
        if cluster.device == "cpu":
            shape["ACCELERATOR"] = "cpu"
        defaults.update((f"PL_TRAINER_{name}", value) for name, value in shape.items())
        defaults.update((f"LT_{name}", value) for name, value in shape.items())
    return defaults


def threads_per_process(processes: int, env: Mapping[str, str]) -> int:
    """This node's cores over its processes. Simulated nodes share a machine: CLOUDTRAIN_NODE_CORES says how much."""
    given = reading.number(env, "CLOUDTRAIN_NODE_CORES") if env.get("CLOUDTRAIN_NODE_CORES") else len(_affinity())
    return max(1, given // processes)


def _affinity() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


# The job file's check (cloudtrain/spec/arguments.py) has refused names that are not declared.
_FOLDER = re.compile(r"\$\{(?:(data|outputs)\.([^{}]*)|(checkpoint|model|output))\}")


def substitute(text: str, cluster: Cluster) -> str:
    """Put this node's folders in for ``${data.x} ${outputs.x} ${checkpoint} ${model} ${output}``, and nothing else."""

    def folder(match: re.Match[str]) -> str:
        kind, name, fixed = match.groups()
        if fixed:
            variable = f"CLOUDTRAIN_{fixed.upper()}_DIR"
        else:
            variable = f"CLOUDTRAIN_{'DATA' if kind == 'data' else 'OUTPUT'}_{name.upper()}"
        if variable not in cluster.folders:
            raise LaunchError(f"{match.group()} names no folder of this job ({variable} is not set)")
        return cluster.folders[variable]

    return _FOLDER.sub(folder, text)


def interface_towards(cluster: Cluster) -> str | None:
    """The network interface that leads to node 0, for gloo: it would else take the one its own host name resolves to.

    Asks the kernel by connecting a UDP socket (no packet is sent), then finds the interface with that address. None
    where the system has no such call; gloo then decides by itself.
    """
    if sys.platform != "linux":
        return None
    target = cluster.head if cluster.node else cluster.address_of(cluster.hosts[-1])
    try:
        family, _, _, _, address = socket.getaddrinfo(target, cluster.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            own = probe.getsockname()[0]
    except (OSError, UnicodeError):
        return None
    return interface_of(own)


def interface_of(address: str) -> str | None:
    """The network interface with this address, on Linux."""
    if sys.platform != "linux":
        return None
    return next((name for _, name in socket.if_nameindex() if _address_of(name) == address), None)


def _address_of(interface: str) -> str | None:
    import fcntl

    siocgifaddr = 0x8915
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            answer = fcntl.ioctl(sock.fileno(), siocgifaddr, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])
