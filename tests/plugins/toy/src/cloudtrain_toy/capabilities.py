"""What becomes of every field of the job file."""

from __future__ import annotations

from cloudtrain.providers.base import Capability
from cloudtrain.providers.features import COMMON

_NO_CHOICE = "a toy has one kind of machine, which is this one; leave it out"
_NO_LIMIT = "a toy keeps no limits; leave it out"

CAPABILITIES: tuple[Capability, ...] = (
    *COMMON,
    Capability("name", "native", "name begins with it"),
    Capability("code", "launcher", "code; unpacked by launch.py on every node"),
    Capability("resources.nodes", "native", "nodes, at most 8"),
    Capability("resources.accelerator", "refused", _NO_CHOICE),
    Capability("resources.accelerators_per_node", "refused", _NO_CHOICE),
    Capability("resources.instance", "refused", _NO_CHOICE),
    Capability("resources.disk_gib", "refused", _NO_CHOICE),
    Capability("resources.shm_gib", "refused", _NO_CHOICE),
    Capability("environment.image", "refused", "a toy has no containers; leave it out"),
    Capability("environment.torch", "refused", "a toy has the torch of this Python; leave it out"),
    Capability("environment.env", "native", "variables"),
    Capability("environment.secrets", "refused", "a toy keeps no secrets"),
    Capability("data.*.uri", "native", "file://, read in place"),
    Capability("data.*.mode", "launcher", "mount: read in place; download: copied before the ranks start"),
    Capability("data.*.mode=stream", "refused", "a toy has no streams; use mount or download"),
    Capability("data.*.shard", "launcher", "by-object: launch.py gives every node each N-th object by name"),
    Capability("outputs.*", "launcher", "file://, written in place"),
    Capability("checkpoint.uri", "launcher", "file://, the same folder for all attempts"),
    Capability("spot.enabled", "refused", "a toy never takes a machine away; leave it out"),
    Capability("retries.preemption", "refused", "a toy never takes a machine away; leave it out"),
    Capability("retries.failure", "client", "CLOUDTRAIN_POLICY"),
    Capability("limits.runtime", "refused", _NO_LIMIT),
    Capability("limits.pending", "refused", _NO_LIMIT),
    Capability("tags", "refused", "a toy has no labels; leave them out"),
    Capability("overrides", "native", "fields of the request, merged last"),
)
