"""What Azure ML gives a node: the working directory with the code, the folders' paths in the command, the variables.

The layout is that of the common runtime, as far as public dumps of nodes show it: the command runs in the snapshot, the
folders are mounted elsewhere. MASTER_ADDR and its kind exist for a PyTorch distribution only, and count nodes: every
node has one process. Of the AZ_BATCH variables it is not known which ones today's clusters set, so there are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.azureml.folders import FOLDERS, SPEC_INPUT
from cloudtrain.providers.azureml.form import REFERENCE
from cloudtrain.providers.azureml.reading import cluster, is_spot, nodes, plain
from cloudtrain.providers.base import NodeContract
from cloudtrain.providers.reading import at, section

if TYPE_CHECKING:
    from cloudtrain.providers.base import Request

PORT = 6105
"""MASTER_PORT, as Microsoft documents it."""
_RUNTIME = "mnt/azureml/cr/j/{name}"
_FIRST_ADDRESS = 4
"""Azure keeps the first four addresses of a network for itself."""


def node_contract(request: Request, node: int) -> NodeContract:
    """What node ``node`` finds. The command's own working directory is the place that holds ``code``."""
    runtime = _RUNTIME.format(name=request.name)
    folders = {reference: f"{runtime}/{place}" for reference, place in _mounts(request.native)}
    work = f"{runtime}/exe/wd"
    return NodeContract(
        env={
            **_platform(request, node, work, folders),
            **_distribution(request.native, node),
            **section(request.native, "environment_variables"),
            **dict(_given_by_command(request.native["command"], folders)),
        },
        files={},
        places={work: "code"} | dict(_places(request.native, folders)),
    )


def address(node: int) -> str:
    """A node's private address."""
    number = node + _FIRST_ADDRESS
    return f"10.0.{number // 256}.{number % 256}"


def _mounts(native: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a reference in the command stands for, below the runtime's folder."""
    for kind, prefix in (("inputs", "INPUT"), ("outputs", "OUTPUT")):
        for name in section(native, kind):
            yield f"{kind}.{name}", f"cap/data-capability/wd/{prefix}_{name}"


def _places(native: Mapping[str, Any], folders: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in section(native, "inputs"):
        yield folders[f"inputs.{name}"], "spec" if name == SPEC_INPUT else f"data:{name}"
    for name in section(native, "outputs"):
        ours = FOLDERS.get(name)
        yield folders[f"outputs.{name}"], ours[1] if ours else f"output:{name}"


def _given_by_command(command: str, folders: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The variables that the command sets for launch.py: the service has put the paths in before."""
    for name, reference, below in re.findall(rf'(\w+)="{REFERENCE}([^"]*)"', command):
        if reference in folders:
            yield name, "{root}/" + folders[reference] + below


def _distribution(native: Mapping[str, Any], node: int) -> dict[str, str]:
    """How the nodes find each other: none of these variables for a single one."""
    kind = plain(at(native, "distribution", "type"))
    if kind == "mpi":  # mpirun, which Azure starts itself
        return {
            "OMPI_COMM_WORLD_RANK": str(node),
            "OMPI_COMM_WORLD_SIZE": str(nodes(native)),
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
            "AZ_BATCH_MASTER_NODE": f"{address(0)}:{PORT}",
        }
    if kind != "pytorch":
        return {}
    return {
        "MASTER_ADDR": address(0),
        "MASTER_PORT": str(PORT),
        "WORLD_SIZE": str(nodes(native)),
        "NODE_RANK": str(node),
        "RANK": str(node),
        "LOCAL_RANK": "0",
        "AZUREML_NODE_COUNT": str(nodes(native)),
    }


def _platform(request: Request, node: int, work: str, folders: Mapping[str, str]) -> dict[str, str]:
    """What the service sets besides: noise, as far as cloudtrain goes."""
    account, native = request.account, request.native
    context = {
        "cluster_name": cluster(native),
        "vm_size": at(native, "resources", "instance_type") or "",
        "vm_priority": "LowPriority" if is_spot(native) else "Dedicated",
        "run_attempt_count": 1,
    }
    return {
        "AZUREML_RUN_ID": request.name,
        "AZUREML_ROOT_RUN_ID": request.name,
        "AZUREML_ARM_SUBSCRIPTION": account["subscription"],
        "AZUREML_ARM_RESOURCEGROUP": account["resource_group"],
        "AZUREML_ARM_WORKSPACE_NAME": account["workspace"],
        "AZUREML_ARM_PROJECT_NAME": str(native.get("experiment_name", "")),
        "AZUREML_RUN_TOKEN": "simulated",
        "AZUREML_CR_EXECUTION_WORKING_DIR_PATH": f"{{root}}/{work}",
        "AZUREML_CR_DATA_CAPABILITY_PATH": f"{{root}}/{work.removesuffix('exe/wd')}cap/data-capability",
        "AZUREML_CR_COMPUTE_CONTEXT": json.dumps(context, separators=(",", ":")),
        "AZUREML_PROCESS_NAME": f"rank_{node}" if "distribution" in native else "main",
        **dict(_data_variables(native, folders)),
    }


def _data_variables(native: Mapping[str, Any], folders: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each folder under further names, a bare one among them."""
    for name in section(native, "inputs"):
        path = "{root}/" + folders[f"inputs.{name}"]
        yield f"AZURE_ML_INPUT_{name}", path
        yield f"AZUREML_DATAREFERENCE_{name}", path
    for name in section(native, "outputs"):
        path = "{root}/" + folders[f"outputs.{name}"]
        yield f"AZURE_ML_OUTPUT_{name}", path
        yield name, path
