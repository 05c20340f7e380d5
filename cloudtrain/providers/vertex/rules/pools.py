"""Rules of a worker pool that its message types do not hold: tasks, machines, disks, variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.catalog.instances import Instance, rows_of
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.image import is_reference
from cloudtrain.providers.nodes import FINGERPRINT
from cloudtrain.providers.reading import at, entries, section, text
from cloudtrain.providers.vertex.environment import MOST as MOST_VARIABLES
from cloudtrain.providers.vertex.environment import RESERVED
from cloudtrain.providers.vertex.pools import LEAST_DISK, MOST_DISK
from cloudtrain.providers.vertex.reading import environment, int64, named
from cloudtrain.spec.problems import Path, shown

TASKS = ("containerSpec", "pythonPackageSpec")
MOST_POOLS = 4
MOST_PACKAGES = 100
DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")
REDUCTION_SERVER = "/reductionserver"
"""In the name of Google's image for a pool that adds up gradients."""

ACCELERATORS: Mapping[int, str] = {
    1: "NVIDIA_TESLA_K80", 2: "NVIDIA_TESLA_P100", 3: "NVIDIA_TESLA_V100", 4: "NVIDIA_TESLA_P4", 5: "NVIDIA_TESLA_T4",
    6: "TPU_V2", 7: "TPU_V3", 8: "NVIDIA_TESLA_A100", 9: "NVIDIA_A100_80GB", 10: "TPU_V4_POD", 11: "NVIDIA_L4",
    12: "TPU_V5_LITEPOD", 13: "NVIDIA_H100_80GB", 14: "NVIDIA_H100_MEGA_80GB", 15: "NVIDIA_H200_141GB",
    16: "NVIDIA_B200", 17: "NVIDIA_GB200", 18: "NVIDIA_RTX_PRO_6000",
}  # fmt: skip
AFFINITIES: Mapping[int, str] = {1: "NO_RESERVATION", 2: "ANY_RESERVATION", 3: "SPECIFIC_RESERVATION"}

_GONE = {
    "NVIDIA_TESLA_K80": "K80 is no longer offered",
    "NVIDIA_TESLA_P100": "support of P100 ended on 2026-09-15",
}
_NOT_TAKEN = re.compile(r"(c3|c2d|n2d|t2d|m2|m3)-.*|n1-standard-[12]|(.*-)?custom-.*")
_MACHINE = re.compile(r"[a-zA-Z0-9-]{1,100}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NODE_LEVEL = re.compile(r"MASTER_(ADDR|PORT)|RANK|WORLD_SIZE")
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_RESERVATION = re.compile(r"projects/[^/]+/zones/[^/]+/reservations/[^/]+")


def pools_problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """All that is wrong with the pools."""
    pools = entries(native, "jobSpec", "workerPoolSpecs")
    path: Path = ("jobSpec", "workerPoolSpecs")
    if not 1 <= len(pools) <= MOST_POOLS:
        yield NativeProblem(path, f"has {len(pools)} pools; there must be 1 to {MOST_POOLS}")
    for number, pool in enumerate(pools):
        if pool or number in (0, len(pools) - 1):
            yield from _pool_problems(pool, number, (*path, number))
    private = bool(at(native, "jobSpec", "network") or at(native, "jobSpec", "pscInterfaceConfig"))
    for number, pool in enumerate(pools):
        if entries(pool, "nfsMounts") and not private:
            yield NativeProblem((*path, number, "nfsMounts"), "needs a private network: set jobSpec.network")


def _pool_problems(pool: Any, number: int, path: Path) -> Iterator[NativeProblem]:
    if not isinstance(pool, Mapping) or not pool:
        yield NativeProblem(path, "is empty; only a pool between others may be" if number else "is empty")
        return
    yield from _replica_problems(pool, number, path)
    yield from _task_problems(pool, path)
    yield from _machine_problems(section(pool, "machineSpec"), (*path, "machineSpec"))
    yield from _disk_problems(section(pool, "diskSpec"), (*path, "diskSpec"))
    yield from _reservation_problems(pool, (*path, "machineSpec", "reservationAffinity"))
    yield from _reducer_problems(pool, number, path)


def _replica_problems(pool: Any, number: int, path: Path) -> Iterator[NativeProblem]:
    count = int64(pool, "replicaCount")
    if number == 0 and count != 1:
        told = "is missing" if at(pool, "replicaCount") is None else f"is {shown(at(pool, 'replicaCount'))}"
        yield NativeProblem((*path, "replicaCount"), f"{told}; pool 0 has exactly 1 replica")
    elif count is None or count < 1:
        yield NativeProblem((*path, "replicaCount"), "must be at least 1; take the pool out to have none")


def _task_problems(pool: Any, path: Path) -> Iterator[NativeProblem]:
    given = [task for task in TASKS if task in pool]
    if len(given) != 1:
        what = " and ".join(given) or "no task"
        yield NativeProblem(path, f"has {what}; exactly one of {' and '.join(TASKS)} must be given")
    if "containerSpec" in given:
        yield from _container_problems(section(pool, "containerSpec"), (*path, "containerSpec"))
    if "pythonPackageSpec" in given:
        yield from _package_problems(section(pool, "pythonPackageSpec"), (*path, "pythonPackageSpec"))


def _container_problems(container: Mapping[str, Any], path: Path) -> Iterator[NativeProblem]:
    image = text(container, "imageUri")
    if not image:
        yield NativeProblem((*path, "imageUri"), "is missing: a container needs an image")
    elif not is_reference(image):
        yield NativeProblem((*path, "imageUri"), f"{shown(image)} is no image reference")
    yield from _variable_problems(container, (*path, "env"))
    if any(isinstance(word, str) and word.endswith("/launch.py") for word in entries(container, "command")):
        names = environment({"containerSpec": container})
        missing = [name for name in ("CLOUDTRAIN_PROVIDER", "CLOUDTRAIN_SPEC", "CLOUDTRAIN_CODE") if name not in names]
        if missing:
            text_ = f"lacks {', '.join(missing)}, which launch.py needs: give variables in environment.env instead"
            yield NativeProblem((*path, "env"), text_)


def _package_problems(package: Mapping[str, Any], path: Path) -> Iterator[NativeProblem]:
    for field in ("executorImageUri", "pythonModule"):
        if not text(package, field):
            yield NativeProblem((*path, field), "is missing")
    uris = entries(package, "packageUris")
    if len(uris) > MOST_PACKAGES:
        yield NativeProblem((*path, "packageUris"), f"has {len(uris)} packages, at most {MOST_PACKAGES}")
    for number, uri in enumerate(uris):
        if isinstance(uri, str) and not uri.startswith("gs://"):
            yield NativeProblem((*path, "packageUris", number), f"must be a gs:// URI, not {shown(uri)}")
    yield from _variable_problems(package, (*path, "env"))


def _variable_problems(task: Mapping[str, Any], path: Path) -> Iterator[NativeProblem]:
    variables = entries(task, "env")
    if len(variables) > MOST_VARIABLES:
        yield NativeProblem(path, f"has {len(variables)} variables, at most {MOST_VARIABLES}")
    seen: set[str] = set()
    for number, item in enumerate(variables):
        name = text(item, "name")
        if flaw := _name_flaw(name, seen):
            yield NativeProblem((*path, number, "name"), flaw)
        seen.add(name)


def _name_flaw(name: str, seen: set[str]) -> str:
    if not _IDENTIFIER.fullmatch(name):
        return f"{shown(name)} is no C identifier: A-Z a-z 0-9 _ and no digit first"
    if RESERVED.fullmatch(name) or _NODE_LEVEL.fullmatch(name):
        return f"{name} is set by Vertex AI on every node and cannot be given"
    return f"{name} is given twice" if name in seen else ""


def _machine_problems(machine: Mapping[str, Any], path: Path) -> Iterator[NativeProblem]:
    kind = text(machine, "machineType")
    if not kind:
        yield NativeProblem((*path, "machineType"), "is missing")
    elif not _MACHINE.fullmatch(kind):
        yield NativeProblem((*path, "machineType"), f"{shown(kind)} is no name of a machine type")
    elif _NOT_TAKEN.fullmatch(kind):
        yield NativeProblem((*path, "machineType"), f"{kind} is not offered for training")
    has_type, has_count = "acceleratorType" in machine, "acceleratorCount" in machine
    if has_type != has_count:
        given, lacking = ("acceleratorType", "acceleratorCount")[:: 1 if has_type else -1]
        yield NativeProblem((*path, lacking), f"is missing: {given} is given, and both or neither must be")
        return
    native = named(machine, ACCELERATORS, "acceleratorType")
    if native in _GONE:
        yield NativeProblem((*path, "acceleratorType"), f"{native}: {_GONE[native]}")
    elif kind and (rows := rows_of("vertex", kind)):
        yield from _pairing_problems(rows, native, int64(machine, "acceleratorCount") or 0, path)


def _pairing_problems(rows: tuple[Instance, ...], native: str, count: int, path: Path) -> Iterator[NativeProblem]:
    """The machine is in the catalogue: which accelerators it may carry is known."""
    if any((row.native_accelerator, row.accelerators) == (native, count) for row in rows):
        return
    given = f"{count} x {native}" if native else "no accelerator"
    same = [row for row in rows if row.native_accelerator == native]
    takes = " or ".join(f"{row.accelerators} x {row.native_accelerator}" for row in (same or rows) if row.accelerators)
    yield NativeProblem(path, f"{rows[0].name} takes {takes or 'no accelerator'}; here it has {given}")


def _disk_problems(disk: Mapping[str, Any], path: Path) -> Iterator[NativeProblem]:
    size = int64(disk, "bootDiskSizeGb")
    if size is not None and not LEAST_DISK <= size <= MOST_DISK:
        yield NativeProblem((*path, "bootDiskSizeGb"), f"is {size}; must be {LEAST_DISK} to {MOST_DISK}")
    kind = at(disk, "bootDiskType")
    if isinstance(kind, str) and kind not in DISK_TYPES:
        yield NativeProblem((*path, "bootDiskType"), f"{shown(kind)} is none of {', '.join(DISK_TYPES)}")


def _reservation_problems(pool: Any, path: Path) -> Iterator[NativeProblem]:
    affinity = section(pool, "machineSpec", "reservationAffinity")
    specific = named(affinity, AFFINITIES, "reservationAffinityType") == "SPECIFIC_RESERVATION"
    if specific and text(affinity, "key") != _RESERVATION_KEY:
        yield NativeProblem((*path, "key"), f"must be {_RESERVATION_KEY} for a specific reservation")
    for number, name in enumerate(entries(affinity, "values")):
        if isinstance(name, str) and not _RESERVATION.fullmatch(name):
            wanted = "projects/PROJECT/zones/ZONE/reservations/NAME"
            yield NativeProblem((*path, "values", number), f"must be {wanted}, not {shown(name)}")
    if text(pool, "machineSpec", "machineType").startswith("a4x-") and not specific:
        yield NativeProblem(path, "A4X machines come from a shared reservation only: name it")


def _reducer_problems(pool: Any, number: int, path: Path) -> Iterator[NativeProblem]:
    if REDUCTION_SERVER not in text(pool, "containerSpec", "imageUri"):
        return
    if number != 2:
        yield NativeProblem(path, "is a Reduction Server, whose place is pool 2")
    if "acceleratorType" in section(pool, "machineSpec"):
        yield NativeProblem((*path, "machineSpec"), "is of a Reduction Server, which takes no accelerator")
    if FINGERPRINT in environment(pool) or "command" in section(pool, "containerSpec"):
        yield NativeProblem(
            (*path, "containerSpec"), "is a Reduction Server, which has no command and needs none of ours"
        )
