"""Which machine a job gets."""

from __future__ import annotations

import pytest

from cloudtrain.catalog.accelerators import UnknownAccelerator, accelerator, meant
from cloudtrain.catalog.instances import NoInstance, choose, instances, rows_of


@pytest.mark.parametrize(
    ("provider", "accelerator", "count", "processes", "name"),
    [
        ("sagemaker", "A100-80GB", 8, 8, "ml.p4de.24xlarge"),
        ("vertex", "A100-80GB", 8, 8, "a2-ultragpu-8g"),
        ("azureml", "A100-80GB", 8, 8, "Standard_ND96amsr_A100_v4"),
        ("sagemaker", "T4", 1, 1, "ml.g4dn.xlarge"),
        ("vertex", "T4", 1, 1, "n1-standard-4"),
        ("azureml", "T4", 1, 1, "Standard_NC4as_T4_v3"),
        ("sagemaker", "A10G", 4, 4, "ml.g5.12xlarge"),
        ("vertex", "L4", 2, 2, "g2-standard-24"),
        ("vertex", "V100-16GB", 8, 8, "n1-standard-8"),
        ("vertex", "H100-80GB", 8, 8, "a3-highgpu-8g"),
        ("vertex", "A100-40GB", 16, 16, "a2-megagpu-16g"),
        ("azureml", "V100-16GB", 2, 2, "Standard_NC12s_v3"),
        ("sagemaker", None, 0, 1, "ml.m5.large"),
        ("vertex", None, 0, 1, "n1-standard-4"),
        ("azureml", None, 0, 1, "Standard_D2s_v5"),
        ("sagemaker", None, 0, 3, "ml.m5.xlarge"),
        ("azureml", None, 0, 16, "Standard_D16s_v5"),
        ("sagemaker", None, 0, 32, "ml.m7i.8xlarge"),
    ],
)
def test_the_smallest_that_fits(provider: str, accelerator: str | None, count: int, processes: int, name: str) -> None:
    assert choose(provider, accelerator, count, processes=processes).instance.name == name


def test_the_row_of_a_host_is_the_one_with_the_accelerators() -> None:
    row = choose("vertex", "T4", 2, processes=2).instance
    assert (row.native_accelerator, row.accelerators) == ("NVIDIA_TESLA_T4", 2)


def test_reasons() -> None:
    assert choose("sagemaker", "A100-80GB", 8).reason == "smallest with 8 x A100-80GB: 96 vCPU, 1152 GiB"
    assert choose("sagemaker", "A100-80GB", 2).reason == (
        "smallest with at least 2 x A100-80GB: it has 8; 96 vCPU, 1152 GiB"
    )
    assert choose("azureml", None, 0, processes=5).reason == (
        "smallest general-purpose type with at least 5 vCPU: 8 vCPU, 32 GiB"
    )


@pytest.mark.parametrize("provider", ["sagemaker", "vertex", "azureml"])
def test_nothing_smaller_fits(provider: str) -> None:
    """By search: every other machine with enough accelerators has more of them, or more vCPU, or more memory."""
    for chip in {row.accelerator for row in instances(provider) if row.purpose == "gpu"}:
        assert chip is not None
        for count in (1, 2, 4, 8):
            try:
                best = choose(provider, chip, count, processes=count, spot=True).instance
            except NoInstance:
                assert not [row for row in instances(provider, accelerator=chip) if row.accelerators >= count]
                continue
            for row in instances(provider):
                if row.accelerator == chip and row.accelerators >= count and row.vcpus >= max(4, count):
                    size = (row.accelerators, row.vcpus, row.memory_gib)
                    assert (best.accelerators, best.vcpus, best.memory_gib) <= size


@pytest.mark.parametrize(
    ("provider", "accelerator", "count", "processes", "text"),
    [
        ("sagemaker", "A100-80GB", 16, 16,
         "sagemaker has A100-80GB 8 per node (ml.p4de.24xlarge); 16 is too many"),
        ("vertex", "T4", 8, 8, "vertex has T4 1, 2 or 4 per node (n1-highmem-2); 8 is too many"),
        ("vertex", "L40S", 1, 1,
         "vertex has no L40S (sagemaker has); it has T4, P4, V100-16GB, L4, A100-40GB, A100-80GB, H100-80GB, "
         "RTX-PRO-6000, H200, B200"),
        ("sagemaker", "GB200", 4, 4,
         "sagemaker has no GB200 (azureml has); it has T4, A10G, L4, L40S, RTX-PRO-4500, V100-16GB, RTX-PRO-6000, "
         "H100-80GB, V100-32GB, A100-40GB, A100-80GB, H200, B200, B300"),
        ("azureml", "T4", 1, 65, "azureml has T4 1 or 4 per node (Standard_NC64as_T4_v3); none has a vCPU for each "
         "of 65 processes"),
        ("azureml", None, 0, 97, "azureml's largest general-purpose type here is Standard_D96s_v5 with 96 vCPU; "
         "97 processes are too many for one node"),
        ("vertex", "H100-80GB", 2, 2,
         "vertex has 2 x H100-80GB as a3-highgpu-2g, which is reported to be rented as Spot or Flex-start only: "
         "set spot.enabled, or name a larger one: resources.instance: a3-highgpu-8g (8 x H100-80GB)"),
    ],
)  # fmt: skip
def test_what_there_is_instead(provider: str, accelerator: str | None, count: int, processes: int, text: str) -> None:
    with pytest.raises(NoInstance) as caught:
        choose(provider, accelerator, count, processes=processes)
    assert str(caught.value) == text


def test_interruptible_machines_are_chosen_for_spot_jobs() -> None:
    assert choose("vertex", "H100-80GB", 2, spot=True).instance.name == "a3-highgpu-2g"


def test_a_question_may_mean_more_than_one_size() -> None:
    assert {row.accelerator for row in instances(accelerator="A100")} == {"A100-40GB", "A100-80GB"}
    assert {row.accelerator for row in instances("sagemaker", accelerator="nvidia_tesla_a100")} == {"A100-40GB"}
    assert [chip.name for chip in meant("H100")] == ["H100-80GB", "H100-NVL"]
    assert [chip.name for chip in meant("A100-80GB")] == ["A100-80GB"]
    for spelling in ("", "A", "A1000"):
        with pytest.raises(UnknownAccelerator):
            meant(spelling)


@pytest.mark.parametrize("spelling", ["P100", "nvidia_tesla_p100"])
def test_accelerators_that_are_no_longer_rented(spelling: str) -> None:
    with pytest.raises(UnknownAccelerator, match="is no longer rented: Vertex AI's support ended 2026-09-15"):
        accelerator(spelling)
    with pytest.raises(UnknownAccelerator, match="is no longer rented"):
        meant("K80")


def test_unknown_names() -> None:
    assert rows_of("sagemaker", "ml.nope.xlarge") == ()
    with pytest.raises(ValueError, match="no machines of 'oracle' here; there are those of sagemaker, vertex, azureml"):
        instances("oracle")
    assert len(instances()) == sum(len(instances(cloud)) for cloud in ("sagemaker", "vertex", "azureml"))
