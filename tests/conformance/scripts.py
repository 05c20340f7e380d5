"""Scripts of small jobs, which end in the ways that jobs do. None of them needs torch."""

from __future__ import annotations

QUIET = "print('there is nothing to do')\n"

LONG = """
import time
time.sleep(600)
"""

PREEMPTABLE = """
import os, time
time.sleep(5)
print(f"rank {os.environ['RANK']} is done")
"""
"""Takes longer than a machine is there that is taken away."""

RAISING = """
import os, time
if os.environ["RANK"] == "1":
    raise ValueError("the numbers do not add up")
time.sleep(600)
"""

SAVING = """
import os, pathlib, signal, sys, time
rank, attempt = os.environ["RANK"], os.environ["CLOUDTRAIN_ATTEMPT"]
saved = pathlib.Path(os.environ["CLOUDTRAIN_CHECKPOINT_DIR"], f"rank-{rank}")
print(f"attempt {attempt} found {saved.read_text() if saved.exists() else 'nothing'}", flush=True)
if attempt == "2":
    pathlib.Path(os.environ["CLOUDTRAIN_MODEL_DIR"], f"model-{rank}").write_text(saved.read_text())
    sys.exit()

def save(*_):
    saved.write_text(f"step {steps}")
    sys.exit(143)

steps = 7
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""
"""Saves when it is told to end; the second attempt makes a model of what the first one saved."""

CHATTY = """
import os
for number in range(LINES):
    print(f"line {number} of rank {os.environ['RANK']}")
"""
