"""Where a run's data and folders lie in Azure, and how the node learns their paths.

Every channel is an input of the job and every folder an output. The service mounts them and puts their paths into the
command, there and nowhere else: a ``${{outputs.x}}`` in an environment variable stays text, and a job then writes its
checkpoints into a folder of that name. So the command gives them to launch.py, as variables of its own.

spec.json is an input as well, and no part of the code: what is in the snapshot names it, and a job whose arguments
alone have changed would send all of its code again. It is downloaded, not mounted as data are: one small file that is
read once lies on the node's own disk before the command starts, and where it is missing the service says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.azureml.form import DATASTORE_PATH, INPUT_FORMS, INPUT_PATH, OUTPUT_FORM
from cloudtrain.providers.azureml.reading import fits
from cloudtrain.providers.base import at_value
from cloudtrain.providers.places import output_places, places_of, unusable_places
from cloudtrain.providers.shipping import SPEC
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Channel, Job
    from cloudtrain.providers.base import Context
    from cloudtrain.spec.problems import Path

OURS = "cloudtrain_"
"""How our input, outputs, tags and variables (in capitals) begin."""
SPEC_INPUT = f"{OURS}spec"
"""The input that is the folder of spec.json."""
FOLDERS = {
    "cloudtrain_checkpoint": ("CLOUDTRAIN_CHECKPOINT_DIR", "checkpoints"),
    "cloudtrain_model": ("CLOUDTRAIN_MODEL_DIR", "model"),
    "cloudtrain_output": ("CLOUDTRAIN_OUTPUT_DIR", "output"),
    "cloudtrain_metrics": ("CLOUDTRAIN_METRICS_DIR", "metrics"),
}
"""Our outputs -> the variable that names each to the script, and its folder beside the run."""

_MODES = {"mount": "ro_mount", "download": "download"}
# The platform also sets a variable of each output's bare name (seen in a dump of a node's environment).
_TAKEN = frozenset(
    {
        "PATH", "HOME", "USER", "SHELL", "LANG", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD",
        "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "NODE_RANK", "RANK", "LOCAL_RANK",
    }
)  # fmt: skip


def inputs_of(job: Job, context: Context) -> dict[str, Any]:
    """The folder of spec.json, and the job's channels. Where launch.py copies a node's share, the whole is mounted and
    not downloaded."""
    spec = {"type": "uri_folder", "path": places_of(job, context).spec, "mode": "download"}
    return {SPEC_INPUT: spec, **{name: _input(channel) for name, channel in job.data.items()}}


def outputs_of(job: Job, context: Context) -> dict[str, Any]:
    """The folders of the run, each at a place of its own that the next attempt finds again, and the named outputs.

    ./outputs would be uploaded too, but it is not brought back after a restart.
    """
    places = places_of(job, context)
    ours = {name: f"{places.run}{folder}/" for name, (_, folder) in FOLDERS.items()}
    ours["cloudtrain_checkpoint"] = places.checkpoints
    named = output_places(job, "azureml", places.run)
    return {name: {"type": "uri_folder", "path": path, "mode": "rw_mount"} for name, path in {**ours, **named}.items()}


def command_of(job: Job) -> str:
    """Starts launch.py with the paths of spec.json and all folders, as the shell's own process: signals reach it."""
    spec = f'CLOUDTRAIN_SPEC="${{{{inputs.{SPEC_INPUT}}}}}/{SPEC}"'
    data = {f"CLOUDTRAIN_DATA_{name.upper()}": f"inputs.{name}" for name in job.data}
    ours = {variable: f"outputs.{name}" for name, (variable, _) in FOLDERS.items()}
    named = {f"CLOUDTRAIN_OUTPUT_{name.upper()}": f"outputs.{name}" for name in job.outputs}
    paths = (f'{variable}="${{{{{place}}}}}"' for variable, place in {**data, **ours, **named}.items())
    return f"exec env {' '.join([spec, *paths])} python3 -u launch.py"


def folder_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Places that Azure ML cannot read or write, and names that are taken."""
    yield from unusable_places(job, "azureml", "azureml://datastores/NAME/paths/FOLDER", _flaw_of)
    for name in job.outputs:
        if name in _TAKEN:
            text = f"Azure ML sets a variable called {name} to the output's path on the node; take another name"
            yield ("outputs", name), text
    if "${{" in (job.checkpoint.uri_for("azureml") or ""):
        text = "holds ${{, which Azure ML replaces: the next attempt of a run would look for its checkpoints elsewhere"
        yield at_value(("checkpoint", "uri"), job.checkpoint.uri, "azureml"), text
    for section, names, added in (("data", job.data, "input does"), ("outputs", job.outputs, "outputs do")):
        for name in names:
            if name.lower().startswith(OURS):
                yield (section, name), f"begins with {OURS}, as the {added} that cloudtrain adds; take another name"


def _input(channel: Channel) -> dict[str, Any]:
    mode = "mount" if channel.shard == "by-object" else channel.mode or "mount"
    return {"type": "uri_folder", "path": channel.uri_for("azureml"), "mode": _MODES.get(mode, mode)}


def _flaw_of(uri: str, written: bool) -> str | None:
    if written:
        unfit, what = not fits(DATASTORE_PATH, uri), f"Azure ML writes to; write {OUTPUT_FORM}"
    else:
        unfit, what = not fits(INPUT_PATH, uri), f"Azure ML reads; it reads {INPUT_FORMS}"
    return f"{shown(uri)} is no place that {what}" if unfit else None
