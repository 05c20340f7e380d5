"""Google's RDMA machines bring a script that sets NCCL's variables for them; the docs say to source it first."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from cloudtrain_launch.errors import LaunchError

SCRIPT = "/usr/local/gib/scripts/set_nccl_env.sh"
_SHELLS_OWN = {"_", "SHLVL", "PWD", "OLDPWD"}


def variables(env: Mapping[str, str], of_the_job: Mapping[str, str], script: str = SCRIPT) -> dict[str, str]:
    """What the script sets, less what the environment or the job has set already; empty where there is no script.

    A value that goes on with what was there before (a search path) is taken, too.
    """
    if not os.path.exists(script):
        return {}
    command = ["bash", "-c", 'source "$1" >&2 && env -0', "bash", script]
    try:
        ran = subprocess.run(
            command, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or b""
        raise LaunchError(f"{script} failed: {error} {said.decode(errors='replace')[-300:]}".strip()) from error
    found = dict(
        entry.split("=", 1) for entry in ran.stdout.decode(errors="surrogateescape").split("\0") if "=" in entry
    )
    taken = {name: value for name, value in found.items() if _is_news(name, value, env) and name not in of_the_job}
    print(f"{script}: " + (" ".join(f"{name}={value}" for name, value in sorted(taken.items())) or "sets nothing new"))
    return taken


def _is_news(name: str, value: str, env: Mapping[str, str]) -> bool:
    if name in _SHELLS_OWN:
        return False
    before = env.get(name, "")
    return not before or (value != before and before in value)
