"""Which process of which world this is, read from the variables torchrun sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cloudtrain_job.errors import WorldError

IDENTITY = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class World:
    """The place of one process. ``alone`` means: started without a launcher, so there is nobody to meet."""

    rank: int = 0
    local_rank: int = 0
    size: int = 1
    local_size: int = 1
    node: int = 0
    nodes: int = 1
    hosts: tuple[str, ...] = ()
    alone: bool = True


def read_world(environ: Mapping[str, str]) -> World:
    """The world that ``environ`` describes; without any of torchrun's variables, a world of one.

    Raises WorldError for a half-set environment: some platforms set RANK and WORLD_SIZE per node, and a script that
    fell back to world size 1 there would train N unrelated models.
    """
    given = [name for name in IDENTITY if environ.get(name, "") != ""]
    if not given:
        return World()
    missing = [name for name in IDENTITY if name not in given]
    if missing:
        raise WorldError(
            f"{_names(given)} set in the environment, {' '.join(missing)} not: this is half of what a launcher sets. "
            "Start the script with `cloudtrain run` or `torchrun`, or unset the former to train in one process."
        )
    return _checked(_world(environ))


def _world(environ: Mapping[str, str]) -> World:
    size, local_size = _whole(environ, "WORLD_SIZE"), _whole(environ, "LOCAL_WORLD_SIZE")
    _whole(environ, "MASTER_PORT")
    node = next((name for name in ("NODE_RANK", "GROUP_RANK") if environ.get(name)), None)
    return World(
        rank=_whole(environ, "RANK"),
        local_rank=_whole(environ, "LOCAL_RANK"),
        size=size,
        local_size=local_size,
        node=_whole(environ, node) if node else 0,
        nodes=_whole(environ, "CLOUDTRAIN_NODES")
        if environ.get("CLOUDTRAIN_NODES")
        else -(-size // max(local_size, 1)),
        hosts=tuple(host for host in environ.get("CLOUDTRAIN_HOSTS", "").split(",") if host),
        alone=False,
    )


def _checked(world: World) -> World:
    if not 0 <= world.rank < world.size:
        raise WorldError(f"RANK={world.rank} does not lie in a world of WORLD_SIZE={world.size}")
    if not 0 <= world.local_rank < world.local_size:
        raise WorldError(f"LOCAL_RANK={world.local_rank} does not lie in LOCAL_WORLD_SIZE={world.local_size}")
    if world.local_size > world.size:
        raise WorldError(f"LOCAL_WORLD_SIZE={world.local_size} is more than WORLD_SIZE={world.size}")
    return world


def _whole(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError:
        raise WorldError(f"{name}={environ[name]!r} in the environment is not a whole number") from None


def _names(names: list[str]) -> str:
    return f"{' '.join(names)} {'is' if len(names) == 1 else 'are'}"
