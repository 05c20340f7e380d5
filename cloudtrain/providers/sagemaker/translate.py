"""From a job to a ``CreateTrainingJob`` request. A pure function: plain dicts out, equal bytes for equal input.

One call does it all: the image's entry point is replaced by launch.py, which comes in a channel of its own beside the
spec. Neither hyperparameters nor AWS's training toolkit are used: both have limits, and the toolkit keeps SIGTERM from
the script.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.base import Chosen, Request, Shipped, refuse
from cloudtrain.providers.features import refusals
from cloudtrain.providers.identity import fingerprint, native_name
from cloudtrain.providers.machine import machine_for, network_choices
from cloudtrain.providers.nodes import FINGERPRINT, launch_spec
from cloudtrain.providers.overrides import overridden
from cloudtrain.providers.places import places_of
from cloudtrain.providers.sagemaker.account import ACCOUNT, account_notes, account_problems, vpc_of
from cloudtrain.providers.sagemaker.capabilities import CAPABILITIES
from cloudtrain.providers.sagemaker.channels import channel_notes, channel_problems, channels_of
from cloudtrain.providers.sagemaker.environment import environment_of, environment_problems
from cloudtrain.providers.sagemaker.image import algorithm_of, image_of
from cloudtrain.providers.sagemaker.isolation import isolation_problems
from cloudtrain.providers.sagemaker.ownership import ownership_problems
from cloudtrain.providers.sagemaker.places import CHECKPOINTS, place_notes, place_problems
from cloudtrain.providers.sagemaker.secret import secret_problems
from cloudtrain.providers.sagemaker.stopping import (
    retries_of,
    stopping_chosen,
    stopping_notes,
    stopping_of,
    stopping_problems,
)
from cloudtrain.providers.sagemaker.tags import tag_problems, tags_of
from cloudtrain.providers.sagemaker.volumes import (
    has_store,
    volume_chosen,
    volume_gib,
    volume_notes,
    volume_problems,
)

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.providers.image import Image
    from cloudtrain.providers.machine import Machine
    from cloudtrain.providers.places import Places
    from cloudtrain.spec.problems import Path


def translate(job: Job, context: Context) -> Request:
    """The request for one attempt. Raises JobFileError with all that SageMaker cannot do."""
    machine = machine_for(job, "sagemaker")
    image = image_of(job, context.settings["region"], machine)
    refuse(job, _problems(job, context, machine, image))
    places = places_of(job, context)
    spec = launch_spec(job, context, channels={})
    made = _training_job(job, context, machine, image, places)
    native = overridden(job, "sagemaker", made, ownership_problems)
    refuse(job, isolation_problems(job, native))
    return Request(
        provider="sagemaker",
        name=native_name(context.run_id, context.attempt),
        native=_marked(native, spec),
        spec=spec,
        ships=(Shipped("code", places.code), Shipped("spec", places.spec)),
        chosen=tuple(_chosen(job, machine, image)),
        notes=tuple(_notes(job, context, machine, image)),
        account={name: context.settings[name] for name in ACCOUNT},
    )


def _problems(job: Job, context: Context, machine: Machine, image: Image) -> Iterator[tuple[Path, str]]:
    yield from refusals(job, "sagemaker", CAPABILITIES)
    yield from machine.problems
    yield from image.problems
    yield from account_problems(context.settings)
    yield from volume_problems(job, machine)
    yield from channel_problems(job)
    yield from place_problems(job)
    yield from secret_problems(job)
    yield from environment_problems(job, context, machine)
    yield from stopping_problems(job)
    yield from tag_problems(job, context)


def _training_job(job: Job, context: Context, machine: Machine, image: Image, places: Places) -> dict[str, Any]:
    """In the order of the service's documentation; what is empty is not sent."""
    vpc, retries = vpc_of(context.settings), retries_of(job)
    return {
        "TrainingJobName": native_name(context.run_id, context.attempt),
        "AlgorithmSpecification": algorithm_of(image),
        "RoleArn": context.settings["role"],
        "InputDataConfig": channels_of(job, places),
        "OutputDataConfig": _output(context, places),
        "ResourceConfig": _resources(job, context, machine),
        **({"VpcConfig": vpc} if vpc else {}),
        "StoppingCondition": stopping_of(job, machine),
        "Tags": tags_of(job, context),
        **({"EnableManagedSpotTraining": True} if job.spot.enabled else {}),
        "CheckpointConfig": {"S3Uri": places.checkpoints, "LocalPath": CHECKPOINTS},
        "Environment": environment_of(job, context, machine),
        **({"RetryStrategy": retries} if retries else {}),
    }


def _output(context: Context, places: Places) -> dict[str, str]:
    """The service adds ``/<name of the attempt>/output/model.tar.gz`` itself: no slash at the end."""
    key = context.settings["kms_key"]
    return {**({"KmsKeyId": key} if key else {}), "S3OutputPath": places.run.rstrip("/")}


def _resources(job: Job, context: Context, machine: Machine) -> dict[str, Any]:
    volume, key = volume_gib(job, machine.name), context.settings["kms_key"]
    return {
        "InstanceType": machine.name,
        "InstanceCount": job.resources.nodes,
        **({"VolumeSizeInGB": volume} if volume else {}),
        # A machine with an instance store encrypts it by itself and must not be given a key.
        **({"VolumeKmsKeyId": key} if key and not has_store(machine.name) else {}),
    }


def _marked(native: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {**native, "Environment": {**native["Environment"], FINGERPRINT: fingerprint(native, spec)}}


def _chosen(job: Job, machine: Machine, image: Image) -> Iterator[Chosen]:
    yield from machine.chosen
    yield from image.chosen
    yield from volume_chosen(job, machine)
    yield from stopping_chosen(job)
    yield from network_choices(job, machine)


def _notes(job: Job, context: Context, machine: Machine, image: Image) -> Iterator[str]:
    yield from machine.notes
    yield from image.notes
    yield from volume_notes(job, machine)
    yield from place_notes(job)
    yield from channel_notes(job)
    yield from stopping_notes(job, machine)
    rdma = machine.instance.rdma if machine.instance else ""
    yield from account_notes(context.settings, job.resources.nodes, rdma)
