"""The data files: whole, dated, spelt as the vendors' own packages spell it, and equal to what the vendors publish."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from cloudtrain.catalog.accelerators import accelerators
from cloudtrain.catalog.instances import Instance, instances, rows_of
from tests.local.project import require

FILES = sorted(path.name for path in Path(str(files("cloudtrain.catalog"))).glob("*.csv"))
DATED = re.compile(r"20\d\d-\d\d(-\d\d)?")
MAY_BE_UNDATED = "github skypilot-org/skypilot-catalog catalogs/v6/azure/vms.csv commit 098741e"
NOT_NAMED_IN_JOBS = {"Trainium"}
"""Chips that jobs cannot ask for: torch runs on them only through another stack."""


def table(name: str) -> list[dict[str, str]]:
    with Path(str(files("cloudtrain.catalog"))).joinpath(name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


def printed_by(program: str) -> list[str]:
    """A JSON list that a program of its own prints; its imports may warn, which is no matter of ours."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    found: list[str] = json.loads(done.stdout)
    return found


def installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def test_the_files_are_those_that_the_modules_read() -> None:
    assert FILES == [
        "accelerators.csv", "accelerators_ended.csv", "accounts_sagemaker.csv", "image_needs.csv",
        "images_azureml.csv", "images_sagemaker.csv", "images_vertex.csv", "instances_azureml.csv",
        "instances_sagemaker.csv", "instances_vertex.csv", "network.csv", "prices.csv", "reference_prices.csv",
        "registries_vertex.csv",
    ]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_rows_are_whole(name: str) -> None:
    rows = table(name)
    assert rows
    for row in rows:
        assert None not in row
        assert all(cell is not None and cell == cell.strip() for cell in row.values()), row
    assert len({tuple(row.values()) for row in rows}) == len(rows)


@pytest.mark.parametrize("name", FILES)
def test_every_row_has_a_source_and_a_date(name: str) -> None:
    for row in table(name):
        assert row["source"], row
        if not row["source"].startswith(MAY_BE_UNDATED):
            assert DATED.fullmatch(row["as_of"]), row


def test_a_machine_has_one_row_for_every_accelerator_and_count() -> None:
    for provider in ("sagemaker", "vertex", "azureml"):
        keys = [(row.name, row.accelerator, row.accelerators) for row in instances(provider)]
        assert len(set(keys)) == len(keys)
        if provider != "vertex":
            assert len({name for name, _, _ in keys}) == len(keys)


def test_accelerators_have_our_spelling_and_every_one_is_rented_somewhere() -> None:
    rented = {row.accelerator for row in instances() if row.accelerator}
    assert rented - NOT_NAMED_IN_JOBS == {row.name for row in accelerators()}


def test_only_machines_with_accelerators_have_what_belongs_to_one() -> None:
    for row in instances():
        if row.accelerator is None:
            assert (row.accelerators, row.accelerator_memory_gib, row.native_accelerator) == (0, None, "")
            assert row.purpose in {"general", "compute", "memory", "burstable", "flex"}
        elif row.accelerator not in NOT_NAMED_IN_JOBS:
            assert row.accelerators > 0
            assert row.purpose == "gpu"
            assert bool(row.native_accelerator) == (row.provider == "vertex")


def one(provider: str, name: str, accelerators: int | None = None) -> Instance:
    (row,) = [row for row in rows_of(provider, name) if accelerators in (None, row.accelerators)]
    return row


# As AWS, Google and Microsoft publish them: accelerator, count, memory of each, vCPU, memory, network, RDMA.
PUBLISHED = [
    ("sagemaker", "ml.g4dn.xlarge", ("T4", 1, 16, 4, 16, None, "")),
    ("sagemaker", "ml.g4dn.12xlarge", ("T4", 4, 16, 48, 192, 50, "EFA")),
    ("sagemaker", "ml.p3dn.24xlarge", ("V100-32GB", 8, 32, 96, 768, 100, "EFA")),
    ("sagemaker", "ml.p4d.24xlarge", ("A100-40GB", 8, 40, 96, 1152, 400, "EFA")),
    ("sagemaker", "ml.p4de.24xlarge", ("A100-80GB", 8, 80, 96, 1152, 400, "EFA")),
    ("sagemaker", "ml.p5.48xlarge", ("H100-80GB", 8, 80, 192, 2048, 3200, "EFA")),
    ("sagemaker", "ml.p5en.48xlarge", ("H200", 8, 141, 192, 2048, 3200, "EFA")),
    ("sagemaker", "ml.g7.12xlarge", ("RTX-PRO-4500", 2, 32, 48, 192, 175, "EFA")),
    ("sagemaker", "ml.m5.large", (None, 0, None, 2, 8, None, "")),
    ("vertex", "a2-ultragpu-8g", ("A100-80GB", 8, 80, 96, 1360, None, "")),
    ("vertex", "a2-megagpu-16g", ("A100-40GB", 16, 40, 96, 1360, 100, "")),
    ("vertex", "a3-highgpu-8g", ("H100-80GB", 8, 80, 208, 1872, 1000, "GPUDirect-TCPX")),
    ("vertex", "a3-ultragpu-8g", ("H200", 8, 141, 224, 2952, 3600, "RDMA")),
    ("vertex", "g2-standard-24", ("L4", 2, 24, 24, 96, None, "")),
    ("vertex", "g2-standard-32", ("L4", 1, 24, 32, 128, None, "")),
    ("vertex", "e2-standard-4", (None, 0, None, 4, 16, None, "")),
    ("azureml", "Standard_ND96amsr_A100_v4", ("A100-80GB", 8, 80, 96, 1900, 24, "InfiniBand")),
    ("azureml", "Standard_NC40ads_H100_v5", ("H100-NVL", 1, 94, 40, 320, 40, "")),
    ("azureml", "Standard_NC6s_v3", ("V100-16GB", 1, 16, 6, 112, None, "")),
    ("azureml", "Standard_D96s_v5", (None, 0, None, 96, 384, 35, "")),
]


@pytest.mark.parametrize(("provider", "name", "expected"), PUBLISHED)
def test_machines_are_as_published(provider: str, name: str, expected: tuple[object, ...]) -> None:
    row = one(provider, name)
    found = (row.accelerator, row.accelerators, row.accelerator_memory_gib, row.vcpus, row.memory_gib,
             row.network_gbps, row.rdma)  # fmt: skip
    assert found == expected


def test_n1_hosts_carry_what_google_allows() -> None:
    allowed = {
        ("n1-standard-4", "T4"): {1, 2, 4}, ("n1-highmem-2", "V100-16GB"): {1, 2, 4, 8},
        ("n1-standard-16", "V100-16GB"): {2, 4, 8}, ("n1-highcpu-32", "T4"): {2, 4},
        ("n1-standard-96", "P4"): {4}, ("n1-highmem-64", "V100-16GB"): {8},
    }  # fmt: skip
    for (name, chip), counts in allowed.items():
        assert {row.accelerators for row in rows_of("vertex", name) if row.accelerator == chip} == counts
    assert rows_of("vertex", "n1-standard-8")[0].accelerator is None
    assert not {row.native_accelerator for row in instances("vertex")} & {"NVIDIA_TESLA_P100", "NVIDIA_TESLA_K80"}
    assert rows_of("vertex", "n1-standard-1") == rows_of("vertex", "c3-standard-4") == ()


def test_instance_store_is_given_in_gib() -> None:
    assert one("sagemaker", "ml.p4de.24xlarge").local_disk_gib == 7450  # 8 x 1000 GB
    assert one("sagemaker", "ml.p3.2xlarge").local_disk_gib is None


@pytest.mark.parametrize(
    ("family", "per_vcpu"), [("m5", 4), ("m7i", 4), ("m6i", 4), ("c7i", 2), ("c6i", 2), ("r7i", 8)]
)
def test_the_names_of_ec2_fix_vcpu_and_memory(family: str, per_vcpu: int) -> None:
    """The rule by which rows without published hardware were made holds for those that have it, m5 and m7i."""
    rows = [row for row in instances("sagemaker") if row.name.startswith(f"ml.{family}.")]
    assert rows
    for row in rows:
        size = row.name.rpartition(".")[2]
        vcpus = 2 if size == "large" else 4 * int(size.removesuffix("xlarge") or 1)
        assert (row.vcpus, row.memory_gib) == (vcpus, vcpus * per_vcpu)


def test_sagemaker_s_machines_are_in_the_service_s_own_model() -> None:
    require(installed("botocore"), "botocore is not installed")
    known = printed_by(
        "import botocore.session, json\n"
        "model = botocore.session.get_session().get_service_model('sagemaker')\n"
        "print(json.dumps(model.shape_for('TrainingInstanceType').enum))"
    )
    assert {row.name for row in instances("sagemaker")} <= set(known)


def test_vertex_s_accelerators_are_in_the_api_s_own_enum() -> None:
    require(installed("google.cloud.aiplatform_v1"), "google-cloud-aiplatform is not installed")
    known = printed_by(
        "import json\n"
        "from google.cloud.aiplatform_v1.types import AcceleratorType\n"
        "print(json.dumps(list(AcceleratorType.__members__)))"
    )
    named = {row.native_accelerator for row in instances("vertex")} - {""}
    assert named <= set(known)
    assert {spelling for chip in accelerators() for spelling in chip.aliases} >= named
