"""What a user of the vendor's client has: a form, with the code beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from cloudtrain.job import Job
from cloudtrain.providers.base import Request
from cloudtrain.providers.shipping import bundle_of, write_code, write_spec
from cloudtrain.rendering.request import render

SCRIPT = """
import os, pathlib, sys, time
rank, steps = os.environ["RANK"], int(sys.argv[1])
saved = pathlib.Path(os.environ["CLOUDTRAIN_CHECKPOINT_DIR"], f"rank-{rank}.txt")
first = int(saved.read_text()) if saved.is_file() else 0
print(f"rank {rank} begins at {first}", flush=True)
for file in pathlib.Path(os.environ.get("CLOUDTRAIN_DATA_TRAIN", "nowhere")).glob("*"):
    print(f"{file.name}: {file.read_text()}", flush=True)
for step in range(first, steps):
    saved.with_suffix(".new").write_text(str(step + 1))
    saved.with_suffix(".new").rename(saved)
    print(f"rank {rank} step {step}", flush=True)
    time.sleep(float(sys.argv[2]))
pathlib.Path(os.environ["CLOUDTRAIN_MODEL_DIR"], f"model-{rank}.txt").write_text(f"made by {rank}")
"""


def training(
    folder: Path,
    *,
    nodes: int = 1,
    steps: int = 3,
    pause: float = 0.0,
    script: str = SCRIPT,
    job: str = "name: small\n",
) -> Request:
    """Write ``form.yml``, ``code/`` and ``spec/`` below ``folder``. The form is what `render` shows: where it says, the
    spec is still to be put."""
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "train.py").write_text(script)
    text = f"entry: train.py\nargs: ['{steps}', '{pause}']\nresources: {{nodes: {nodes}}}\n{job}"
    (project / "job.yaml").write_text(text)
    parsed = Job.load(project / "job.yaml")
    request = render(parsed, "azureml")
    write_code(bundle_of(parsed), folder / "code")
    write_spec(request.spec, folder / "spec")
    write_form(folder, request.native)
    return request


def write_form(folder: Path, form: Any) -> Path:
    file = folder / "form.yml"
    file.write_text(yaml.safe_dump(form, sort_keys=False))
    return file
