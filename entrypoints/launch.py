"""The first process of every node, on every cloud, in the emulator and in local mode.

    find the cluster -> prepare the node -> start the workers -> watch -> deliver -> report the end

The environment says which provider's contract holds (``CLOUDTRAIN_PROVIDER``) and where the job is
(``CLOUDTRAIN_SPEC``, a JSON file: see ``cloudtrain_launch/spec.py``). Exit codes are in ``cloudtrain_launch/exits.py``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Mapping

from cloudtrain_launch import cluster, exits, node, report
from cloudtrain_launch.contracts import places
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.sink import EventSink, Sink, TextSink
from cloudtrain_launch.spec import LaunchSpec


def main(env: Mapping[str, str]) -> int:
    """Run this node's part of the job; returns its exit code."""
    try:
        env = places.relocated(env)
        spec_path = env.get("CLOUDTRAIN_SPEC")
        if not spec_path:
            raise LaunchError("CLOUDTRAIN_SPEC is not set")
        spec = LaunchSpec.load(spec_path, env.get("CLOUDTRAIN_ATTEMPT", ""))
        here = cluster.resolve(env, spec)
    except LaunchError as error:
        print(f"cloudtrain launch: {error}", file=sys.stderr)
        report.write_failure(places.failure_file(env), str(error))
        return exits.given_to(env.get("CLOUDTRAIN_PROVIDER", ""), error.exit_code)
    code = node.main(env, spec, here, _sink(env, here.node))
    given = exits.given_to(here.provider, code)
    if given != code:
        why = f"for which {here.provider} would run the whole job again"
        print(f"cloudtrain launch: leaves with {given} instead of {code}, {why}", flush=True)
    return given


def _sink(env: Mapping[str, str], number: int) -> Sink:
    fd = env.get("CLOUDTRAIN_EVENTS_FD")
    return EventSink(number, int(fd)) if fd else TextSink(number)


if __name__ == "__main__":
    code = exits.LAUNCHER
    try:
        code = main(dict(os.environ))
    except BaseException:  # noqa: BLE001 - os._exit below would swallow it
        traceback.print_exc()
    finally:
        # Not sys.exit: nothing that was imported may keep the container's first process alive.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)
