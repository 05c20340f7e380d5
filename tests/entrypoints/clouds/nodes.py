"""Nodes as each cloud starts them: the request's variables, the provider's own contract, and a disk per node.

Written after the fact sheets, apart from the code that is tested: what two real launchers on loopback find.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloudtrain_launch import processes
from tests.entrypoints.launch.nodes import Job, Node

HELLO = """
import json, os, pathlib, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
seen = {"sum": total.item(), "argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd()}
pathlib.Path(os.environ["PROJECT"], f"rank-{dist.get_rank()}.json").write_text(json.dumps(seen))
dist.destroy_process_group()
"""


@dataclass
class CloudJob(Job):
    """``provider`` decides what the nodes find; ``variables`` are the request's own beside it."""

    provider: str = "vertex"
    count: int = 2
    variables: dict[str, str] = field(default_factory=dict)
    archive: bytes | None = None
    """Instead of an archive with the script."""
    more_code: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.hosts = [f"algo-{n + 1}" if self.provider == "sagemaker" else f"host-{n}" for n in range(self.count)]

    @property
    def opt_ml(self) -> list[Path]:
        return [self.folder / f"node-{number}-disk" / "ml" for number in range(self.count)]

    @property
    def bucket(self) -> Path:
        return self.folder / "gcs" / "bucket"

    @property
    def mount(self) -> Path:
        """Azure's, the same on all nodes."""
        return self.folder / "mnt"

    def data(self, name: str, text: str) -> None:
        """An object of the channel ``train``."""
        for root in {
            "sagemaker": [root / "input/data/train" for root in self.opt_ml],
            "vertex": [self.bucket / "data/train"],
            "azureml": [self.mount / "train"],
        }[self.provider]:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def write(self, script: str = HELLO, **spec: Any) -> None:
        usual = {"version": 1, "run_id": "r1", "kind": "entry", "target": "hello.py", "args": [], "nodes": self.count}
        self.spec = {**usual, "processes_per_node": 2, "start_timeout": 60.0, "grace": 20.0, **spec}
        content = self.archive if self.archive is not None else packed({"hello.py": script, **self.more_code})
        for folder in self._places():
            folder[0].mkdir(parents=True, exist_ok=True)
            folder[1].mkdir(parents=True, exist_ok=True)
            (folder[0] / "code.tar.gz").write_bytes(content)
            (folder[1] / "spec.json").write_text(json.dumps(self.spec))

    def _places(self) -> list[tuple[Path, Path]]:
        """Folders of the code and of the spec."""
        if self.provider == "sagemaker":
            inputs = [root / "input/data" for root in self.opt_ml]
            return [(folder / "cloudtrain_code", folder / "cloudtrain_spec") for folder in inputs]
        if self.provider == "vertex":
            return [(self.bucket / "code/0123", self.bucket / "runs/r1/spec")]
        return [(self.folder / "snapshot", self.mount / "INPUT_cloudtrain_spec")]

    def environment(self, number: int, changed: Mapping[str, str | None]) -> dict[str, str]:
        env: dict[str, str | None] = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CLOUDTRAIN_")},
            "CT_TEST_MARK": self.project.mark,
            "PROJECT": str(self.folder),
            "CLOUDTRAIN_PROVIDER": self.provider,
            "CLOUDTRAIN_RUN_ID": "r1",
            "CLOUDTRAIN_ATTEMPT": "3",
            "CLOUDTRAIN_HOSTMAP": ",".join(f"{host}=127.0.0.1" for host in self.hosts),
            "CLOUDTRAIN_NODE_DIR": str(self.folder / f"node-{number}"),
            "CLOUDTRAIN_NODE_DEVICE": "cpu",
            **getattr(self, f"_{self.provider}")(number),
            **self.variables,
            **changed,
        }
        return {name: value for name, value in env.items() if value is not None}

    def _sagemaker(self, number: int) -> dict[str, str]:
        root = self.opt_ml[number]
        channel = {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"}
        resources = {
            "current_host": self.hosts[number], "current_instance_type": "ml.m5.xlarge",
            "current_group_name": "homogeneousCluster", "hosts": sorted(self.hosts), "network_interface_name": "lo",
            "instance_groups": [{"instance_group_name": "homogeneousCluster", "instance_type": "ml.m5.xlarge",
                                 "hosts": sorted(self.hosts, reverse=True)}],
        }  # fmt: skip
        config = root / "input/config"
        config.mkdir(parents=True, exist_ok=True)
        (config / "resourceconfig.json").write_text(json.dumps(resources))
        channels = dict.fromkeys(["train", "cloudtrain_code", "cloudtrain_spec"], channel)
        (config / "inputdataconfig.json").write_text(json.dumps(channels))
        (config / "hyperparameters.json").write_text("{}")
        return {
            "TRAINING_JOB_NAME": "r1-a3",
            "TRAINING_JOB_ARN": "arn:aws:sagemaker:eu-west-1:111122223333:training-job/r1-a3",
            "CLOUDTRAIN_SM_ROOT": str(root),
            "CLOUDTRAIN_SPEC": "/opt/ml/input/data/cloudtrain_spec/spec.json",
            "CLOUDTRAIN_CODE": "/opt/ml/input/data/cloudtrain_code/code.tar.gz",
            "CLOUDTRAIN_PORT": str(self.port),
        }

    def _vertex(self, number: int) -> dict[str, str]:
        addresses = [f"{host}:{self.port}" for host in self.hosts]
        pools = {"workerpool0": addresses[:1], **({"workerpool1": addresses[1:]} if self.count > 1 else {})}
        task = {"type": "workerpool1" if number else "workerpool0", "index": max(0, number - 1), "trial": ""}
        spec = {"cluster": pools, "environment": "cloud", "task": task, "job": json.dumps({"python_module": ""})}
        several = {"MASTER_ADDR": self.hosts[0], "MASTER_PORT": "3333", "RANK": str(number), "WORLD_SIZE": "2"}
        return {
            "CLUSTER_SPEC": json.dumps(spec), "CLOUD_ML_JOB_ID": "4711", "CLOUD_ML_PROJECT_ID": "123",
            "AIP_MODEL_DIR": "gs://bucket/runs/r1/model/", **(several if self.count > 1 else {}),
            "CLOUDTRAIN_GCS_ROOT": str(self.folder / "gcs"),
            "CLOUDTRAIN_SPEC": "/gcs/bucket/runs/r1/spec/spec.json",
            "CLOUDTRAIN_CODE": "/gcs/bucket/code/0123/code.tar.gz",
            "CLOUDTRAIN_DATA_TRAIN": "gs://bucket/data/train/",
            **{f"CLOUDTRAIN_{name}": f"gs://bucket/runs/r1/{folder}/" for name, folder in FOLDERS.items()},
        }  # fmt: skip

    def _azureml(self, number: int) -> dict[str, str]:
        several = {
            "MASTER_ADDR": self.hosts[0], "MASTER_PORT": str(self.port), "NODE_RANK": str(number),
            "RANK": str(number), "LOCAL_RANK": "0", "WORLD_SIZE": str(self.count),
        }  # fmt: skip
        snapshot = self.folder / "snapshot"
        return {
            "AZUREML_RUN_ID": "r1-a3", "AZUREML_EXPERIMENT_ID": "e", "AZUREML_RUN_TOKEN": "t0ken",
            **(several if self.count > 1 else {}),
            "CLOUDTRAIN_SPEC": str(self.mount / "INPUT_cloudtrain_spec/spec.json"),
            "CLOUDTRAIN_CODE": str(snapshot / "code.tar.gz"),
            "CLOUDTRAIN_DATA_TRAIN": str(self.mount / "train"),
            **{f"CLOUDTRAIN_{name}": str(self.mount / folder) for name, folder in FOLDERS.items()},
        }  # fmt: skip

    def seen(self, rank: int) -> dict[str, Any]:
        """What HELLO has seen."""
        data: dict[str, Any] = json.loads((self.folder / f"rank-{rank}.json").read_text())
        return data

    @property
    def said(self) -> str:
        """All that the nodes have printed."""
        return "".join(node.out + node.err for node in self.nodes)


FOLDERS = {"CHECKPOINT_DIR": "checkpoints", "MODEL_DIR": "model", "OUTPUT_DIR": "output", "METRICS_DIR": "metrics"}


def is_prepared(node: Node) -> bool:
    """Whether torch elastic's agent runs; the node has tried to reach node 0 before that."""
    commands = [Path(f"/proc/{pid}/cmdline") for pid in processes.descendants(node.process.pid)]
    return any(b"cloudtrain_launch.agent" in command.read_bytes() for command in commands if command.exists())


def packed(files: Mapping[str, str]) -> bytes:
    """A code.tar.gz."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()
