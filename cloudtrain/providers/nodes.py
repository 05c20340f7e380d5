"""What every node of a cloud job is given, the same for all providers: the launch spec and our own variables.

The counterpart is ``entrypoints/cloudtrain_launch``: ``spec.py`` reads the spec, ``environ.py`` and the resolvers the
variables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.base import Context

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.fields import Provider

GRACE_SECONDS = 25.0
"""From SIGTERM to SIGKILL for the workers, within what a container usually gets; most services promise nothing."""
_GRACE_SECONDS = {"sagemaker": 110.0}
"""Where a service promises more: SageMaker gives 120 s, some of them needed for the last upload."""
START_TIMEOUT_SECONDS = 1800.0
"""For all nodes to connect: clouds start them minutes apart (Google's own recipes wait for tens of minutes)."""

SECRET = "CLOUDTRAIN_SECRETREF_"
"""How the variables begin that name secrets; the secret's own name follows."""
FINGERPRINT = "CLOUDTRAIN_FINGERPRINT"
"""The variable that holds what ``identity.fingerprint`` says of the request without it, overrides included."""


def launch_spec(job: Job, context: Context, *, channels: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The content of spec.json. ``channels``: name -> mode and shard, where launch.py has to see to them."""
    spec: dict[str, Any] = {
        "version": 1,
        "run_id": context.run_id,
        "kind": "entry" if job.entry else "module" if job.module else "task",
        "target": job.start,
        "args": job.argv,
        "env": {**job.environment.env, **_checkpoint_policy(job)},
        "framework": job.framework,
        "nodes": job.resources.nodes,
        "processes_per_node": job.processes,
        "grace": _GRACE_SECONDS.get(context.settings.provider, GRACE_SECONDS),
        "start_timeout": START_TIMEOUT_SECONDS,
    }
    if job.environment.requirements:
        spec["requirements"] = job.environment.requirements
    if channels:
        spec["channels"] = {name: dict(channel) for name, channel in channels.items()}
    return spec


def launcher_channels(job: Job, *, downloads: bool) -> dict[str, dict[str, str]]:
    """The channels of which launch.py gives every node its share, or with ``downloads`` a copy, too.

    For services that mount or copy a folder whole, to every node.
    """
    return {
        name: {"mode": channel.mode or "mount", "shard": channel.shard}
        for name, channel in job.data.items()
        if channel.shard == "by-object" or (downloads and channel.mode == "download")
    }


def node_variables(
    job: Job, context: Context, provider: Provider, *, spec: str | None, code: str, further: Mapping[str, str]
) -> dict[str, str]:
    """The variables of a request, but for its fingerprint.

    ``spec`` and ``code`` are the paths of spec.json and code.tar.gz on the node (None where the command gives it),
    ``further`` the provider's own: folders, account, what the machine's network wants. The job's variables win over
    those.
    """
    references = {
        f"{SECRET}{name}": reference
        for name, reference in job.environment.secrets_for(provider).items()
        if reference is not None
    }
    return {
        "CLOUDTRAIN_PROVIDER": provider,
        **({"CLOUDTRAIN_SPEC": spec} if spec else {}),
        "CLOUDTRAIN_CODE": code,
        "CLOUDTRAIN_RUN_ID": context.run_id,
        "CLOUDTRAIN_ATTEMPT": str(context.attempt),
        "CLOUDTRAIN_POLICY": policy(job),
        **references,
        **further,
        **job.environment.env,
    }


def policy(job: Job) -> str:
    """What is for cloudtrain itself to keep while it follows the run, as compact JSON; it does not yet.

    In the request, so that any machine that finds the job can follow it by the same rules.
    """
    kept = {
        "retries": job.retries.model_dump(),
        "pending": job.limits.pending,
        "cost_usd": job.limits.cost_usd,
        "max_wait": job.spot.max_wait,
        "runtime": job.limits.runtime,
    }
    return json.dumps({name: value for name, value in kept.items() if value is not None}, separators=(",", ":"))


def _checkpoint_policy(job: Job) -> dict[str, str]:
    kept = {"CLOUDTRAIN_CHECKPOINT_KEEP": str(job.checkpoint.keep)}
    if job.checkpoint.every:
        kept["CLOUDTRAIN_CHECKPOINT_EVERY"] = str(job.checkpoint.every)
    return kept
