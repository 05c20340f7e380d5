"""What Vertex AI gives one replica of a CustomJob: variables alone, and buckets mounted under /gcs.

CLUSTER_SPEC is what counts. The rest is there since it is there on the service, where it has led many a script astray:
RANK and WORLD_SIZE count replicas, TF_CONFIG names TensorFlow's roles, and a job of one replica has neither.
What is not known of the service is made up so that nobody can rely on it: host names and addresses, numbers of jobs
and projects, MASTER_PORT.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.providers.base import NodeContract
from cloudtrain.providers.reading import entries, text
from cloudtrain.providers.vertex.expansion import expanded
from cloudtrain.providers.vertex.places import FOLDERS, MOUNT, SCHEME, mounted
from cloudtrain.providers.vertex.reading import int64

if TYPE_CHECKING:
    from cloudtrain.providers.base import Request

PORT = 2222
_OTHER_PORT = 3333
"""Also open behind a replica's service name; MASTER_PORT is one of the two, which one is unknown."""
_STATUS_PORT = 6000

_ROLES = ("chief", "worker", "ps", "evaluator")
"""TensorFlow's names of the pools."""
_OURS = ("CLOUDTRAIN_SPEC", "CLOUDTRAIN_CODE")
_NAMED = re.compile(r"CLOUDTRAIN_(DATA|OUTPUT)_(\w+)")


class _Replica(NamedTuple):
    pool: int
    number: int
    host: str

    @property
    def address(self) -> str:
        return f"{self.host}:{PORT}"


def node_contract(request: Request, node: int) -> NodeContract:
    """What replica ``node`` finds, counted through the pools. Raises IndexError if there are not so many."""
    pools = entries(request.native, "jobSpec", "workerPoolSpecs")
    replicas = list(_replicas(request.name, pools))
    platform = {
        **_services(replicas),
        **_cluster(replicas, node),
        **_job(request),
        **_output(text(request.native, "jobSpec", "baseOutputDirectory", "outputUriPrefix")),
    }
    container = _container(entries(pools[replicas[node].pool], "containerSpec", "env"), platform)
    root = "{root}" + MOUNT.rstrip("/")
    here = {name: f"{{root}}{container[name]}" for name in _OURS if _is_mounted(container, name)}
    env = {**platform, **container, **here, "CLOUDTRAIN_GCS_ROOT": root}
    return NodeContract(env, {}, dict(_places(container)))


def _replicas(name: str, pools: list[Any]) -> Iterator[_Replica]:
    """All replicas, pool by pool. The service makes host names of ten hex digits and the places in the pools."""
    mark = _made_up(name, "host")[:10]
    for pool, spec in enumerate(pools):
        for number in range(int64(spec, "replicaCount") or 0):
            yield _Replica(pool, number, f"cmle-training-workerpool{pool}-{mark}-{number}")


def _cluster(replicas: list[_Replica], node: int) -> dict[str, str]:
    """Who is there. The keys of PyTorch and TensorFlow are for jobs of several replicas only."""
    me = replicas[node]
    cluster: dict[str, list[str]] = {}
    for replica in replicas:
        cluster.setdefault(f"workerpool{replica.pool}", []).append(replica.address)
    task = {"type": f"workerpool{me.pool}", "index": me.number, "trial": ""}
    # The documentation calls job an object; jobs in the field found text.
    job = _json({"python_module": "", "package_uris": [], "job_args": []})
    found = {"CLUSTER_SPEC": _json({"cluster": cluster, "environment": "cloud", "task": task, "job": job})}
    if len(replicas) == 1:
        return found
    roles = {_ROLES[int(pool[-1])]: hosts for pool, hosts in cluster.items()}
    role = {"type": _ROLES[me.pool], "index": me.number, "cloud": "", "trial": ""}
    return {
        **found,
        "TF_CONFIG": _json({"cluster": roles, "environment": "cloud", "task": role, "job": job}),
        "MASTER_ADDR": replicas[0].host,
        "MASTER_PORT": str(_OTHER_PORT),
        "RANK": str(node),
        "WORLD_SIZE": str(len(replicas)),
    }


def _services(replicas: list[_Replica]) -> dict[str, str]:
    """Kubernetes' variables of the services by which replicas reach each other."""
    found: dict[str, str] = {}
    for number, replica in enumerate(replicas):
        name = replica.host.upper().replace("-", "_")
        found |= {
            f"{name}_SERVICE_HOST": f"10.0.{number // 250}.{number % 250 + 1}",
            f"{name}_SERVICE_PORT": str(PORT),
            f"{name}_SERVICE_PORT_TF_PORT": str(PORT),
            f"{name}_SERVICE_PORT_TRAINING_PORT": str(_OTHER_PORT),
            f"{name}_SERVICE_PORT_STATUSZ": str(_STATUS_PORT),
        }
    return found


def _job(request: Request) -> dict[str, str]:
    """The job's number, and the project's: its id is never told."""
    network = re.match(r"projects/([0-9]+)/", text(request.native, "jobSpec", "network"))
    project = network.group(1) if network else _digits(request.name, "project", 12)
    return {"CLOUD_ML_JOB_ID": _digits(request.name, "job", 19), "CLOUD_ML_PROJECT_ID": project}


def _output(prefix: str) -> dict[str, str]:
    """The folders that the service names below baseOutputDirectory."""
    if not prefix:
        return {}
    base = prefix if prefix.endswith("/") else f"{prefix}/"
    return {
        "AIP_MODEL_DIR": f"{base}model/",
        "AIP_CHECKPOINT_DIR": f"{base}checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": f"{base}logs/",
    }


def _container(variables: list[Any], platform: Mapping[str, str]) -> dict[str, str]:
    """The request's own variables, each with those before it put in for ``$(NAME)``."""
    found: dict[str, str] = {}
    for item in variables:
        found[text(item, "name")] = expanded(text(item, "value"), {**platform, **found})
    return found


def _is_mounted(container: Mapping[str, str], name: str) -> bool:
    return container.get(name, "").startswith(MOUNT)


def _places(container: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names of data and outputs are in the small letters of their variables' names."""
    for name, what in zip(_OURS, ("spec", "code"), strict=True):
        if _is_mounted(container, name):
            yield container[name].lstrip("/").rpartition("/")[0], what
    for name, value in container.items():
        if not value.startswith(SCHEME):
            continue
        place = mounted(value).strip("/")
        if name in FOLDERS:
            yield place, FOLDERS[name]
        elif found := _NAMED.fullmatch(name):
            yield place, f"{found.group(1).lower()}:{found.group(2).lower()}"


def _made_up(name: str, what: str) -> str:
    return hashlib.sha256(f"{what} of {name}".encode()).hexdigest()


def _digits(name: str, what: str, count: int) -> str:
    """A number of ``count`` digits, the same for the same job."""
    return str(10 ** (count - 1) + int(_made_up(name, what), 16) % (9 * 10 ** (count - 1)))


def _json(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"))
