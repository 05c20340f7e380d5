"""Which of a shell's variables a worker is kept from, and what is put in for `${...}`."""

from __future__ import annotations

import pytest

from cloudtrain_launch.cluster import Cluster
from cloudtrain_launch.environ import substitute, threads_per_process, without_foreign, worker_environment
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.spec import LaunchSpec

# As set by torchrun, Accelerate, DeepSpeed, Slurm, Open MPI, Intel MPI, the three clouds, Kubernetes operators, JAX.
FOREIGN = [
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME",
    "ROLE_WORLD_SIZE", "NODE_RANK", "CROSS_RANK", "MASTER_ADDR", "MASTER_PORT", "PET_NNODES", "PET_RDZV_ENDPOINT",
    "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "ACCELERATE_USE_FSDP", "FSDP_VERSION", "SLURM_PROCID",
    "SLURM_JOB_NODELIST", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MPIEXEC_HOSTNAME", "HYDI_CONTROL_FD",
    "TF_CONFIG", "CLUSTER_SPEC", "SM_HOSTS", "SM_CURRENT_HOST", "SAGEMAKER_JOB_NAME", "CURRENT_HOST",
    "TRAINING_JOB_NAME", "AZUREML_RUN_ID", "AZ_BATCH_NODE_LIST", "AIP_MODEL_DIR", "CLOUD_ML_JOB_ID",
    "JAX_COORDINATOR_ADDRESS", "CLOUDTRAIN_NODE_RANK", "CLOUDTRAIN_SPEC", "CLOUDTRAIN_DATA_OLD",
]  # fmt: skip

# Looks like one of them, or decides how a training runs without deciding who takes part.
OWN = [
    "PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "NCCL_SOCKET_IFNAME",
    "GLOO_SOCKET_IFNAME", "TORCH_HOME", "TORCH_LOGS", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_DISTRIBUTED_DEBUG",
    "OMP_NUM_THREADS", "AWS_REGION", "AWS_ACCESS_KEY_ID", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_ID",
    "WANDB_API_KEY", "HF_HOME", "JAX_PLATFORMS", "KERAS_BACKEND", "SMALL", "SMOKE_TEST", "PETS", "RANKS", "MY_RANK",
    "RANK_OF_MATRIX", "FRANK", "MASTER", "OMPI", "LOCAL", "HTTP_PROXY", "MLFLOW_TRACKING_URI",
]  # fmt: skip


def test_who_takes_part_is_forgotten_and_all_else_kept() -> None:
    env = dict.fromkeys([*FOREIGN, *OWN], "x")
    assert without_foreign(env) == dict.fromkeys(OWN, "x")


FOLDERS = {
    "CLOUDTRAIN_DATA_TRAIN": "/d/t", "CLOUDTRAIN_DATA_BIG_ONE": "/d/$HOME/${data.train}", "CLOUDTRAIN_OUTPUT_M": "/o/m",
    "CLOUDTRAIN_CHECKPOINT_DIR": "/c", "CLOUDTRAIN_MODEL_DIR": "/m", "CLOUDTRAIN_OUTPUT_DIR": "/o",
}  # fmt: skip
CLUSTER = Cluster("local", 0, ("127.0.0.1",), 1, folders=FOLDERS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${data.train}", "/d/t"),
        ("--in=${data.train}/a --out=${outputs.m}", "--in=/d/t/a --out=/o/m"),
        ("${checkpoint}${model}${output}", "/c/m/o"),
        ("${data.big_one}", "/d/$HOME/${data.train}"),  # what was put in is not looked at again
        ("$${model}", "$/m"),
    ],
)
def test_folders_are_put_in(text: str, expected: str) -> None:
    assert substitute(text, CLUSTER) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "$HOME", "${HOME}", "${{data.train}}", "${ data.train }", "${data.train", "$data.train", "${model.x}",
        "${models}", "${DATA.train}", "${output s}", "$(model)", "{model}", "\\$", "%s", "\n",
    ],
)  # fmt: skip
def test_all_other_text_is_left_alone(text: str) -> None:
    assert substitute(text, CLUSTER) == text


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("x${data.trian}", "CLOUDTRAIN_DATA_TRIAN"),
        ("${outputs.train}", "CLOUDTRAIN_OUTPUT_TRAIN"),
        ("${data.a-b}", "CLOUDTRAIN_DATA_A-B"),
        ("${data.}", "CLOUDTRAIN_DATA_"),
    ],
)
def test_a_name_that_is_not_there_is_an_error(text: str, variable: str) -> None:
    with pytest.raises(LaunchError, match=f"names no folder of this job \\({variable} is not set\\)"):
        substitute(text, CLUSTER)


@pytest.mark.parametrize(("cores", "processes", "threads"), [("8", 2, 4), ("8", 3, 2), ("2", 4, 1), ("1", 1, 1)])
def test_threads_share_the_nodes_cores(cores: str, processes: int, threads: int) -> None:
    assert threads_per_process(processes, {"CLOUDTRAIN_NODE_CORES": cores}) == threads


def test_what_the_user_has_set_stays() -> None:
    spec = LaunchSpec("r", "entry", "t.py", 1, env={"A": "${model}", "B": "$HOME", "RANK_FILE": "x"})
    base = {"OMP_NUM_THREADS": "3", "GLOO_SOCKET_IFNAME": "eth7", "A": "shell", "C": "shell", "WORLD_SIZE": "9"}
    env = worker_environment(base, spec, CLUSTER)
    assert (env["OMP_NUM_THREADS"], env["GLOO_SOCKET_IFNAME"]) == ("3", "eth7")
    assert (env["A"], env["B"], env["C"], env["RANK_FILE"]) == ("/m", "$HOME", "shell", "x")
    assert "WORLD_SIZE" not in env
    assert env["CLOUDTRAIN_DATA_TRAIN"] == "/d/t"
