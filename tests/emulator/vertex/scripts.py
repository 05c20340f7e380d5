"""Containers that do what a test says, in place of launch.py: PLAY holds Python."""

from __future__ import annotations

from typing import Any

from tests.emulator.vertex.clients import BUCKET, Clients
from tests.emulator.vertex.requests import custom_job

_LAUNCH = """
import json, os, signal, sys, time
from pathlib import Path

task = json.loads(os.environ["CLUSTER_SPEC"])["task"]
primary = task["type"] == "workerpool0"
bucket = Path(os.environ["CLOUDTRAIN_GCS_ROOT"], "cloudtrain-emulator")
ours = bucket / os.environ["PLAYGROUND"]
ours.mkdir(parents=True, exist_ok=True)


def until(name):
    while not (ours / name).exists():
        time.sleep(0.01)


def start():
    '''The number of this start, from 1.'''
    mine = ours / f"starts-{task['type']}-{task['index']}"
    with mine.open("a") as file:
        file.write("x")
    return mine.stat().st_size


exec(os.environ["PLAY"])
"""


def play(clients: Clients, name: str, script: str, nodes: int = 1, **scheduling: Any) -> Any:
    """Create a job whose containers run ``script``; they share a folder of the bucket, named as the job."""
    clients.bucket.blob("scripts/launch.py").upload_from_string(_LAUNCH)
    env = {"PLAY": script.replace("$", "$$"), "PLAYGROUND": name}
    return clients.create(custom_job(name, nodes, env, **scheduling))


def text(clients: Clients, name: str, file: str) -> str:
    """What they have left."""
    return str(clients.storage.bucket(BUCKET).blob(f"{name}/{file}").download_as_text())


def has(clients: Clients, name: str, file: str) -> bool:
    """Whether they have."""
    return bool(clients.storage.bucket(BUCKET).blob(f"{name}/{file}").exists())
