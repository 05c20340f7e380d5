"""A node's data where the provider only mounts it: copied to the node's disk, or this node's share of the objects."""

from __future__ import annotations

import os
import shutil

from cloudtrain_launch import objects
from cloudtrain_launch.errors import LaunchError


def bring(name: str, source: str, target: str, part: tuple[int, int], *, copy: bool) -> None:
    """Fill ``target`` with each N-th object of ``source``, from the k-th on, for ``part`` (k, N): as copies or links.

    Every node sorts the same keys in the same order, so that the shares are disjoint and complete. A ``source`` that is
    one file becomes a folder with that file.
    """
    if not os.path.exists(source):
        raise LaunchError(f"{name}: {source} is not there; check data's uri and what the job's identity may read")
    single = os.path.isfile(source)
    root = os.path.dirname(source) if single else source
    try:
        keys = [os.path.basename(source)] if single else objects.keys(source, name)
        mine = keys[part[0] :: part[1]]
        size = _take(root, target, mine, copy)
    except OSError as error:
        raise LaunchError(f"{name}: cannot {'copy' if copy else 'link'} {source}: {error}") from error
    done = f"{objects.size_text(size)} copied" if copy else "linked"
    print(f"{name}: {len(mine)} of {len(keys)} objects, {done} from {source}", flush=True)


def _take(root: str, target: str, keys: list[str], copy: bool) -> int:
    os.makedirs(target)
    for folder in {os.path.dirname(key) for key in keys}:
        os.makedirs(os.path.join(target, folder), exist_ok=True)

    def take(key: str) -> None:
        source, here = os.path.join(root, key), os.path.join(target, key)
        if copy:
            shutil.copyfile(source, here)
        else:
            os.symlink(source, here)

    objects.for_each(keys, take)
    return sum(os.path.getsize(os.path.join(target, key)) for key in keys) if copy else 0
