"""Valid jobs at random, from a seed: what each provider can do, in any combination."""

from __future__ import annotations

import string
from collections.abc import Iterator
from random import Random
from typing import Any

from cloudtrain.catalog.instances import Instance, instances
from cloudtrain.job import Job

# Machines that every job may ask for without further conditions (a3-highgpu-1g to -4g want spot, for example).
_LEFT_OUT = (
    "a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g", "a4x-highgpu-4g", "Standard_NV6", "Standard_NV12",
    "Standard_NV18", "ml.trn", "ml.p6e",
)  # fmt: skip
# Accelerators that not every prebuilt image serves: such a job names one of its own.
_NEWEST = ("B200", "B300", "GB200", "MI300X", "RTX")
_PLACES = {"sagemaker": "s3://", "vertex": "gs://", "azureml": "azureml://datastores/data/paths/"}
_IMAGES = {
    "sagemaker": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/train:{}",
    "vertex": "europe-west4-docker.pkg.dev/my-project/images/train:{}",
    "azureml": "myregistry.azurecr.io/train:{}",
}
_SECRETS = {
    "sagemaker": "arn:aws:secretsmanager:eu-west-1:111122223333:secret:{}-AbCdEf",
    "vertex": "projects/my-project/secrets/{}/versions/1",
    "azureml": "https://my-vault.vault.azure.net/secrets/{}",
}
_SPECIAL = " '\"$`\\!#&;|<>()[]{}*?~%^=+,./:@-_äß漢🙂\t"


def jobs(provider: str, number: int, seed: int) -> Iterator[Job]:
    """``number`` jobs that ``provider`` can do."""
    random = Random(f"{provider} {seed}")
    for _ in range(number):
        yield Job.model_validate(job_data(random, provider))


def job_data(random: Random, provider: str) -> dict[str, Any]:
    """One job as plain data."""
    spot = random.random() < 0.3
    resources = _resources(random, provider)
    data: dict[str, Any] = {
        "name": _name(random),
        **_start(random),
        "args": _args(random),
        "framework": random.choice(["pytorch", "accelerate", "lightning", "deepspeed"]),
        "resources": resources,
        "environment": _environment(random, provider, resources.get("accelerator", "")),
        "data": {f"channel_{n}": _channel(random, provider) for n in range(random.randint(0, 4))},
        "outputs": {f"out_{n}": _uri(random, provider) for n in range(random.randint(0, 3))},
        "checkpoint": {"keep": random.randint(1, 9)},
        "retries": {"preemption": random.randint(0, 20), "capacity": random.randint(0, 5)},
        "limits": {"runtime": f"{random.randint(1, 140)}h", "cost_usd": random.randint(1, 10_000)},
        "tags": {_tag(random): _tag(random) for _ in range(random.randint(0, 8))},
    }
    if random.random() < 0.5:
        data["checkpoint"] |= {"uri": {provider: _uri(random, provider)}, "every": f"{random.randint(1, 90)}m"}
    if spot:
        data["spot"] = {"enabled": True} | ({"max_wait": "160h"} if random.random() < 0.5 else {})
    return data


def _name(random: Random) -> str:
    middle = "".join(random.choice(string.ascii_lowercase + string.digits + "-") for _ in range(random.randint(0, 38)))
    return random.choice(string.ascii_lowercase) + middle + random.choice(string.ascii_lowercase + string.digits)


def _start(random: Random) -> dict[str, str]:
    return random.choice([{"entry": "train.py"}, {"entry": "src/my train.py"}, {"module": "a.b"}, {"task": "t.py:T"}])


def _text(random: Random, longest: int) -> str:
    letters = string.ascii_letters + string.digits + _SPECIAL
    return "".join(random.choice(letters) for _ in range(random.randint(0, longest)))


def _args(random: Random) -> Any:
    if random.random() < 0.5:
        return [_text(random, 60) for _ in range(random.randint(0, 6))]
    return {f"opt-{n}": random.choice([_text(random, 300), True, [_text(random, 5), "x"]]) for n in range(4)}


def _resources(random: Random, provider: str) -> dict[str, Any]:
    rows = [row for row in instances(provider) if row.accelerator and not row.name.startswith(_LEFT_OUT)]
    row = random.choice(rows)
    made: dict[str, Any] = {"nodes": random.choice([1, 1, 2, 3, 16, 64])}
    if random.random() < 0.6:
        made |= {"accelerator": row.accelerator, "accelerators_per_node": row.accelerators}
        made |= {"processes_per_node": random.randint(1, row.accelerators)} if random.random() < 0.3 else {}
        made |= {"instance": {provider: row.name}} if random.random() < 0.4 else {}
    else:
        made |= {"processes_per_node": random.choice([1, 2, 4])}
    return made | _sizes(random, provider, row if "accelerator" in made else None)


def _sizes(random: Random, provider: str, row: Instance | None) -> dict[str, Any]:
    """Disk and shared memory, where the provider has a knob for them."""
    if provider == "azureml":
        most = min(64, int(row.memory_gib)) if row else 64
        return {"shm_gib": random.randint(1, most)} if random.random() < 0.4 else {}
    on_instance_store = provider == "sagemaker" and row is not None and row.local_disk_gib
    return {"disk_gib": 110 if on_instance_store else random.randint(100, 2000)} if random.random() < 0.4 else {}


def _environment(random: Random, provider: str, accelerator: str) -> dict[str, Any]:
    made: dict[str, Any] = {"env": {f"MY_VAR_{n}": _value(random, provider) for n in range(random.randint(0, 20))}}
    if accelerator.startswith(_NEWEST) or random.random() < 0.4:
        made["image"] = {provider: _IMAGES[provider].format(random.randint(1, 9))}
    if random.random() < 0.3:
        made["requirements"] = "requirements.txt"
    if random.random() < 0.3:
        made["secrets"] = {f"SECRET_{n}": {provider: _SECRETS[provider].format(f"s{n}")} for n in range(3)}
    return made


def _value(random: Random, provider: str) -> str:
    text = _text(random, random.choice([20, 256]))
    return text.replace("{{", "{") if provider == "azureml" else text


def _channel(random: Random, provider: str) -> dict[str, Any]:
    made: dict[str, Any] = {"uri": {provider: _uri(random, provider)}}
    if random.random() < 0.7:
        made["mode"] = random.choice(["mount", "download"])
    if random.random() < 0.3:
        made["shard"] = "by-object"
    return made


def _uri(random: Random, provider: str) -> str:
    parts = ["".join(random.choice(string.ascii_lowercase + string.digits) for _ in range(6)) for _ in range(3)]
    return _PLACES[provider] + "/".join(parts) + random.choice(["", "/"])


def _tag(random: Random) -> str:
    """Of the alphabet that all three share."""
    letters = string.ascii_lowercase + string.digits + "_-"
    return random.choice(string.ascii_lowercase) + "".join(random.choice(letters) for _ in range(random.randint(0, 40)))
