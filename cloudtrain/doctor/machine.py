"""This machine: what runs, submits and emulated clouds need here."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence

import cloudtrain
from cloudtrain.doctor.asking import answered
from cloudtrain.doctor.packages import installed
from cloudtrain.errors import CloudtrainError, MissingError
from cloudtrain.home import home
from cloudtrain.providers.questions import Check, Question

_LOADS = """
import json, warnings
warnings.simplefilter("ignore")
import torch
gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
print(json.dumps([torch.__version__, gpus]))
"""
_ENTERS = (
    "from cloudtrain.providers.local.isolation import enter, IsolationError\ntry: enter()\n"
    "except IsolationError as error: print(error)"
)
_SECONDS = 60.0
"""The first import of torch reads gigabytes."""
LOCAL = "pip install 'cloudtrain[local]'"


def checks() -> list[Check]:
    """All lines about this machine."""
    questions = (
        Question("cloudtrain", _cloudtrain),
        Question("Python", _python),
        Question("torch", _torch),
        Question("namespaces", _namespaces),
        Question("ledger", _ledger),
        Question("extra local", lambda: installed("local", needed=False)),
        Question("extra emulator", _emulator),
    )
    return answered(questions, (), _SECONDS + 5)


def _cloudtrain() -> Check:
    return Check("cloudtrain", "ok", f"{cloudtrain.__version__}, {cloudtrain.__path__[0]}")


def _python() -> Check:
    return Check("Python", "ok", f"{platform.python_version()}, {sys.executable}, {platform.platform(terse=True)}")


def _torch() -> Check:
    """In a process of its own: a broken one may end it."""
    code, out, err = _python_says(_LOADS)
    last = err.strip().splitlines()[-1:] or [f"ended with {code}"]
    if code or not out:
        missing = "No module named 'torch'" in last[0]
        return Check("torch", "warning", "missing: `cloudtrain run` and `emulate` need it" if missing else
                     f"cannot be loaded: {last[0]}", LOCAL if missing else f"install it anew: {LOCAL}")  # fmt: skip
    version, gpus = json.loads(out.splitlines()[-1])
    return Check("torch", "ok", f"{version}, {', '.join(gpus) if gpus else 'no GPU: runs here use the CPU'}")


def _namespaces() -> Check:
    code, out, err = _python_says(_ENTERS)
    if code == 0 and not out.strip():
        return Check("namespaces", "ok", "simulated nodes get a network, a host name and a process tree each")
    why = out.strip() or (err.strip().splitlines() or [f"ended with {code}"])[-1]
    how = "apt-get install iproute2" if "iproute2" in why else "nothing has to be done: --isolation none is used"
    return Check("namespaces", "warning", f"{why}; simulated nodes share this machine's network", how)


def _ledger() -> Check:
    from cloudtrain.runs.ledger import FILE, Ledger

    try:
        with Ledger.open(patience=5.0) as ledger:
            runs = len(ledger.runs(limit=1000))
        if not os.access(home() / FILE, os.W_OK):
            raise MissingError(f"the ledger of runs, {home() / FILE}, cannot be written")
    except CloudtrainError as error:
        return Check("ledger", "problem", error.message, error.hint or "set CLOUDTRAIN_HOME to a folder of your own")
    return Check("ledger", "ok", f"{home() / FILE}, {'1000 runs or more' if runs == 1000 else f'runs: {runs}'}")


def _emulator() -> Check:
    """Azurite comes from npm, so pip knows nothing of it."""
    from cloudtrain.emulator.servers import AZURITE, azurite_program

    check = installed("emulator", needed=False)
    try:
        program: Sequence[str] = azurite_program()
    except CloudtrainError:
        how = " and ".join(filter(None, (check.next, f"{AZURITE} (needs Node 20)")))
        return check._replace(verdict="warning", found=f"{check.found}, azurite is missing (for Azure ML)", next=how)
    return check._replace(found=f"{check.found}, {program[-1]}")


def _python_says(program: str) -> tuple[int, str, str]:
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL, errors="replace",
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr
    return 1, "", f"no answer within {_SECONDS:g} s"
