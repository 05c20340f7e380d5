"""Jobs and requests that the tests of this folder start from."""

from __future__ import annotations

import copy
from typing import Any

from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.providers.base import Request
from tests.providers.contexts import context

DATASTORE = "azureml://datastores/data/paths/"
TRAIN = {"train": {"uri": {"azureml": f"{DATASTORE}train/"}}}
GPUS = {"nodes": 2, "accelerator": "A100-80GB", "accelerators_per_node": 8}


def job(**fields: Any) -> Job:
    """A small job with ``fields`` over it."""
    return Job(**{"name": "digits", "entry": "train.py", **fields})


def request(*, compute: str = "", identity: str = "", attempt: int = 1, **fields: Any) -> Request:
    """The request of that job."""
    made = job(**fields)
    return registry.translate(made, context(made, "azureml", attempt=attempt, compute=compute, identity=identity))


def native(**fields: Any) -> dict[str, Any]:
    """What is sent of it."""
    return request(**fields).native


def changed(form: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the value at a dotted path; None takes it out."""
    made = copy.deepcopy(form)
    *above, last = path.split(".")
    holder = made
    for step in above:
        holder = holder.setdefault(step, {})
    if value is None:
        holder.pop(last, None)
    else:
        holder[last] = value
    return made
