"""Variables that several nodes need to talk fast over their machine's network, by machine type.

Only what a source says of the machine; what is not there is left to the libraries. A job's own variables win.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from cloudtrain.catalog.tables import Row, rows

if TYPE_CHECKING:
    from cloudtrain.catalog.instances import Instance


def network_settings(instance: Instance, nodes: int) -> dict[str, str]:
    """NCCL, gloo and libfabric variables for ``nodes`` such machines; none for a single one."""
    if nodes < 2:
        return {}
    return {row["variable"]: row["value"] for row in rows("network") if _applies(row, instance)}


def _applies(row: Row, instance: Instance) -> bool:
    return (
        row["provider"] == instance.provider
        and row["rdma"] in ("", instance.rdma)
        and fnmatchcase(instance.name, row["instance_type"])
    )
