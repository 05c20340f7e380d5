"""What Vertex AI cannot do is refused at its place in the job file, with the limit or the reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.vertex.jobs import CPU, GPU, job, refused, requested

TOO_MANY = {f"V{number}": "x" for number in range(100)}
LIST = [{"replicaCount": "1", "containerSpec": {"imageUri": "a/b"}}]


def _pools(**fields: Any) -> dict[str, Any]:
    return {"overrides": {"vertex": {"jobSpec": {"workerPoolSpecs": fields}}}}


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"resources": {"shm_gib": 8}}, "resources.shm_gib", "/dev/shm"),
        ({"resources": {"disk_gib": 99}}, "resources.disk_gib", "100 to 64000"),
        ({"resources": {"disk_gib": 64_001}}, "resources.disk_gib", "100 to 64000"),
        ({"data": {"t": {"uri": "gs://bucket/x/", "mode": "stream"}}}, "data.t.mode", "mount reads"),
        ({"data": {"t": {"uri": "s3://bucket/x"}}}, "data.t.uri", "gs:// URI"),
        ({"data": {"t": {"uri": "/gcs/bucket/x"}}}, "data.t.uri", "gs://bucket/x"),
        ({"data": {"t": {"uri": {"sagemaker": "s3://bucket/x"}}}}, "data.t.uri", "data.t.uri.vertex"),
        ({"data": {"t": {"uri": {"vertex": "gs://B/x"}}}}, "data.t.uri.vertex", "no bucket"),
        ({"data": {"t": {"uri": "gs://bucket/a//b"}}}, "data.t.uri", "mounted bucket"),
        ({"data": {"t": {"uri": "gs://bucket/../b"}}}, "data.t.uri", "mounted bucket"),
        ({"data": {"t": {"uri": "gs://bucket/*.csv"}}}, "data.t.uri", "one folder"),
        ({"data": {"t": {"uri": "gs://bucket/a\nb"}}}, "data.t.uri", "control character"),
        ({"outputs": {"m": "gs://bucket/12:30"}}, "outputs.m", "colon"),
        ({"checkpoint": {"uri": {"vertex": "ck"}}}, "checkpoint.uri.vertex", "gs://"),
        ({"environment": {"image": "https://x/y"}}, "environment.image", "no image reference"),
        ({"environment": {"image": {"vertex": "repo/Train"}}}, "environment.image.vertex", "no image reference"),
        ({"environment": {"env": {"AIP_MODEL_DIR": "x"}}}, "environment.env.AIP_MODEL_DIR", "set by Vertex AI"),
        ({"environment": {"env": {"CLUSTER_SPEC": "x"}}}, "environment.env.CLUSTER_SPEC", "set by Vertex AI"),
        ({"environment": {"env": {"TF_CONFIG": "x"}}}, "environment.env.TF_CONFIG", "set by Vertex AI"),
        ({"environment": {"secrets": {"CLOUD_ML_X": "k"}}}, "environment.secrets.CLOUD_ML_X", "set by Vertex AI"),
        ({"environment": {"env": TOO_MANY}}, "environment.env", "at most 100"),
        ({"environment": {"secrets": {"K": {"azureml": "k"}}}}, "environment.secrets.K", "K.vertex"),
        ({"environment": {"secrets": {"K": "https://vault/k"}}}, "environment.secrets.K", "Secret Manager"),
        ({"environment": {"secrets": {"K": {"vertex": "a b"}}}}, "environment.secrets.K.vertex", "Secret Manager"),
        ({"tags": {"Team": "x"}}, "tags.Team", "'T'"),
        ({"tags": {"team": "a.b"}}, "tags.team", "'.'"),
        ({"tags": {"1team": "x"}}, "tags.1team", "begin with a letter"),
        ({"tags": {"t" * 65: "x"}}, "tags.'" + "t" * 49 + "...tttt'", "65 characters, at most 64"),
        ({"tags": {"t": "v" * 65}}, "tags.t", "65 characters, at most 64"),
        ({"tags": {"cloudtrain_run": "x"}}, "tags.cloudtrain_run", "cloudtrain finds its runs"),
        ({"tags": {f"t{number}": "x" for number in range(62)}}, "tags", "at most 64"),
        ({"limits": {"runtime": "999999999d"}}, "limits.runtime", "315576000000 s"),
        ({"framework": "jax"}, "framework", "one process per node"),
        ({"overrides": {"vertex": {"displayName": "x"}}}, "overrides.vertex.displayName", "name:"),
        ({"overrides": {"vertex": {"displayName": None}}}, "overrides.vertex.displayName", "name:"),
        (
            {"overrides": {"vertex": {"labels": {"cloudtrain_run": "x"}}}},
            "overrides.vertex.labels.cloudtrain_run",
            "finds its runs",
        ),
        (_pools(**{"0": {"replicaCount": "2"}}), "overrides.vertex.jobSpec.workerPoolSpecs", "resources.nodes"),
        (_pools(**{"*": {"containerSpec": {"command": ["sh"]}}}), "overrides.vertex.jobSpec.workerPoolSpecs", "'*'"),
        (_pools(**{"1": {"containerSpec": {"args": ["x"]}}}), "overrides.vertex.jobSpec.workerPoolSpecs", "pool 1"),
        (
            _pools(**{"*": {"containerSpec": {"env": []}}}),
            "overrides.vertex.jobSpec.workerPoolSpecs",
            "environment.env",
        ),
        (
            {"overrides": {"vertex": {"jobSpec": {"workerPoolSpecs": LIST}}}},
            "overrides.vertex.jobSpec.workerPoolSpecs",
            "instead of a list",
        ),
        ({"overrides": {"vertex": {"jobSpec": None}}}, "overrides.vertex.jobSpec.workerPoolSpecs", "is gone"),
        (_pools(**{"1": None}), "overrides.vertex.jobSpec.workerPoolSpecs", "pool 1 is gone"),
    ],
)
def test_a_field_is_refused(changes: dict[str, Any], key: str, said: str) -> None:
    (problem,) = (problem for problem in refused(GPU, **changes) if problem.startswith(f"{key}: "))
    assert said in problem


def test_all_reasons_come_at_once() -> None:
    problems = refused(
        GPU,
        resources={"shm_gib": 8, "disk_gib": 10},
        data={"t": {"uri": "s3://bucket/x"}},
        tags={"Team": "x"},
        environment={"image": "a b", "env": {"AIP_X": "y"}},
    )
    assert len(problems) == 6


def test_a_secret_that_is_no_reference_is_not_repeated() -> None:
    (problem,) = refused(CPU, environment={"secrets": {"KEY": {"vertex": "hunter2!"}}})
    assert "hunter2" not in problem


def test_gone_accelerators_are_refused() -> None:
    with pytest.raises(Exception, match="P100"):
        job(CPU, resources={"accelerator": "P100", "accelerators_per_node": 1})


def test_an_unknown_machine_needs_an_accelerator_with_one_name() -> None:
    resources = {"instance": "a9-newgpu-8g", "accelerator": "H100-80GB"}
    (problem,) = refused(CPU, resources=resources)
    assert "NVIDIA_H100_80GB or NVIDIA_H100_MEGA_80GB" in problem
    (problem,) = refused(CPU, resources={"instance": "a9-newgpu-8g", "accelerators_per_node": 8})
    assert problem.startswith("resources.accelerators_per_node: ")


def test_a_number_of_accelerators_is_no_name_of_one() -> None:
    """Google attaches several kinds to N1; two of which kind would be a guess."""
    (problem,) = refused(CPU, resources={"instance": "n1-standard-16", "accelerators_per_node": 2})
    assert problem.startswith("resources.instance: ")
    assert "2 x T4 or 2 x P4 or 2 x V100-16GB" in problem
    assert requested(CPU, resources={"instance": "n1-standard-16", "accelerators_per_node": 8})  # V100 alone


def test_variables_up_to_the_limit_pass() -> None:
    ours = 100 - len(requested(CPU).native["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"])
    fitting = {f"V{number}": "x" for number in range(ours)}
    request = requested(CPU, environment={"env": fitting})
    assert len(request.native["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"]) == 100
    assert refused(CPU, environment={"env": {**fitting, "ONE": "more"}})


def test_letters_of_other_alphabets_make_labels() -> None:
    tags = {"équipe": "größe", "团队": "視覚_1"}
    assert requested(CPU, tags=tags).native["labels"].items() >= tags.items()


def test_places_of_other_clouds_are_none_of_vertex_business() -> None:
    request = requested(CPU, checkpoint={"uri": {"sagemaker": "s3://bucket/ck"}}, overrides={"azureml": {"x": 1}})
    assert "s3://" not in str(request.native)
