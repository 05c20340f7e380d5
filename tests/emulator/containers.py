"""The containers of a job as a cloud would start them, for tests of what starts them: translated, filled, planned."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from cloudtrain.emulator.base import NodePlan
from cloudtrain.emulator.nodes import Nodes
from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.providers.base import Context, Request
from cloudtrain.providers.shipping import bundle_of, entrypoints_digest, write_code, write_spec
from cloudtrain.settings import Settings
from tests.local.project import LIMIT_SECONDS
from tests.providers.contexts import ACCOUNTS

JOB = """\
name: test
entry: train.py
resources: {{nodes: {nodes}, processes_per_node: {processes}, instance: {instance}}}
environment: {{image: {image}, env: {env}{requirements}}}
"""
INSTANCES = {"sagemaker": "ml.m5.xlarge", "vertex": "n1-standard-4", "azureml": "Standard_DS3_v2"}
IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"


def plans(
    folder: Path,
    script: str,
    provider: str,
    *,
    nodes: int = 2,
    processes: int = 1,
    env: Mapping[str, str] | None = None,
    requirements: str = "",
    variables: Mapping[str, str] | None = None,
) -> list[NodePlan]:
    """What is to be started for ``script``; ``env`` is the job's, ``variables`` are the platform's beside it."""
    code = folder / "project"
    code.mkdir(exist_ok=True)
    (code / "train.py").write_text(script)
    text = JOB.format(
        nodes=nodes,
        processes=processes,
        instance=INSTANCES[provider],
        image=IMAGE,
        env=json.dumps(dict(env or {})),
        requirements=f", requirements: {requirements}" if requirements else "",
    )
    (code / "job.yaml").write_text(text)
    job = Job.load(code / "job.yaml")
    bundle = bundle_of(job)
    settings = Settings(provider, dict(ACCOUNTS[provider]))
    request = registry.translate(job, Context(settings, bundle.digest, entrypoints_digest(), "r1"))
    write_code(bundle, folder / "code")
    write_spec(request.spec, folder / "spec")
    return [_plan(folder, request, node, variables or {}) for node in range(nodes)]


def _plan(folder: Path, request: Request, node: int, variables: Mapping[str, str]) -> NodePlan:
    contract = registry.node_contract(request, node)
    root = folder / f"root-{node}"
    for name, text in contract.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shared = {"code": folder / "code", "spec": folder / "spec"}
    for name, what in sorted(contract.places.items()):
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if what in shared:
            place.symlink_to(shared[what])
        else:
            place.mkdir(exist_ok=True)
    code = root / next(name for name, what in contract.places.items() if what == "code")
    env = {name: value.replace("{root}", str(root)) for name, value in contract.env.items()}
    cwd = code if request.provider == "azureml" else root
    return NodePlan(root, code / "launch.py", cwd, {**env, **variables}, folder / f"node-{node}.log")


def said(plans: list[NodePlan]) -> str:
    """All that the nodes have printed."""
    return "".join(plan.log.read_text(errors="replace") for plan in plans if plan.log.exists())


def wait_for(condition: Callable[[], object], nodes: Nodes, plans: list[NodePlan]) -> None:
    """Wait until something is so; fail if the nodes end before."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert len(nodes.poll()) < len(plans), said(plans)
        assert time.monotonic() < deadline, said(plans)
        time.sleep(0.02)


def ends(nodes: Nodes, plans: list[NodePlan]) -> list[int]:
    """Wait for all nodes; their exit statuses."""
    assert nodes.wait(LIMIT_SECONDS), said(plans)
    return [status for _, status in sorted(nodes.poll().items())]
