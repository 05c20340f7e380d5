"""``cloudtrain catalog`` as a process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.running import cloudtrain


def report(*words: str) -> list[dict[str, Any]]:
    done = cloudtrain("catalog", *words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def shown(*words: str) -> list[str]:
    done = cloudtrain("catalog", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def row(lines: list[str], name: str) -> list[str]:
    """The cells of the row that has ``name`` in it; cells are two blanks apart."""
    (line,) = [line for line in lines if name in line.split()]
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_a_bare_a100_shows_both_sizes_of_all_clouds() -> None:
    found = report("instances", "--accelerator", "A100")
    assert {row["accelerator"] for row in found} == {"A100-40GB", "A100-80GB"}
    assert {row["provider"] for row in found} == {"sagemaker", "vertex", "azureml"}
    assert all(row["source"] and row["as_of"] for row in found)
    (machine,) = [row for row in found if row["name"] == "ml.p4de.24xlarge"]
    assert (machine["vcpus"], machine["memory_gib"], machine["network_gbps"], machine["rdma"]) == (96, 1152, 400, "EFA")
    assert machine["prices"] == []
    assert [price["what"] for price in machine["reference_prices"]] == [
        "infrastructure list price, managed fee not included"
    ] * len(machine["reference_prices"])


def test_columns_prices_and_their_sources() -> None:
    lines = shown("instances", "--accelerator", "NVIDIA_TESLA_T4", "--provider", "sagemaker")
    assert row(lines, "ml.g4dn.xlarge") == [
        "sagemaker", "ml.g4dn.xlarge", "1 x T4", "16 GiB", "4", "16 GiB", "-", "-", "0.7364 [1]", "0.526 [2]"
    ]  # fmt: skip
    starts = {line.find("T4") for line in lines if " x T4" in line}
    assert len(starts) == 1
    assert "infrastructure list price, managed fee not included" in "\n".join(lines)
    (source,) = [line for line in lines if line.startswith("[1]")]
    assert source.endswith("2026-05-05")


def test_unknown_prices_are_called_unknown() -> None:
    lines = shown("instances", "--accelerator", "A100-80GB", "--provider", "sagemaker")
    assert row(lines, "ml.p4de.24xlarge")[-2] == "unknown"


def test_a_region_of_one_cloud() -> None:
    lines = shown("instances", "--provider", "sagemaker", "--accelerator", "T4", "--region", "eu-west-1")
    assert row(lines, "ml.g4dn.xlarge")[-2] == "0.822 [1]"


def test_enough_accelerators() -> None:
    found = report("instances", "--provider", "vertex", "--min-accelerators", "16")
    assert [row["name"] for row in found] == ["a2-megagpu-16g"]
    assert shown("instances", "--min-accelerators", "99") == ["none"]


def test_accelerators() -> None:
    (chip,) = [chip for chip in report("accelerators") if chip["name"] == "A100-80GB"]
    assert chip["per_node"] == {"sagemaker": [8], "vertex": [1, 2, 4, 8], "azureml": [1, 2, 4, 8]}
    assert chip["memory_gib"] == 80 and "NVIDIA_A100_80GB" in chip["aliases"] and chip["source"] and chip["as_of"]
    assert row(shown("accelerators"), "B300") == ["B300", "262 GiB", "8", "-", "-", "NVIDIA_B300"]


def test_images() -> None:
    found = report("images")
    assert {(row["provider"], row["torch"]) for row in found if row["default"] and row["for"] == "gpu"} == {
        ("sagemaker", "2.10.0"), ("vertex", "2.4"), ("azureml", "2.8")
    }  # fmt: skip
    assert all(row["source"] and row["as_of"] for row in found)
    assert {row["torch"] for row in found if row["provider"] == "sagemaker" and row["over"]} == {"2.8.0", "2.9.0"}
    lines = shown("images", "--provider", "sagemaker", "--region", "cn-north-1")
    uri = "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/pytorch-training:2.10.0-gpu-py313"
    assert [line for line in lines if line.endswith(uri)]
    assert "2026-07-24 (over)" in "\n".join(shown("images", "--provider", "vertex"))


def test_features_are_those_that_the_providers_declare() -> None:
    found = report("features")
    assert {row["provider"] for row in found} == {"sagemaker", "vertex", "azureml"}
    assert {row["support"] for row in found} == {"native", "launcher", "client", "refused"}
    assert all(row["how"] for row in found)
    cells = row(shown("features"), "resources.shm_gib")
    assert cells == ["resources.shm_gib", "refused", "refused", "native"]
    (refused,) = [line for line in shown("features", "--provider", "vertex") if line.startswith("resources.shm_gib ")]
    assert "no field for shared memory" in refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["instances", "--accelerator", "H10-80GB"],
         "--accelerator: 'H10-80GB' is not in the catalogue, did you mean 'H100-80GB'?"),
        (["instances", "--provider", "sage"], "unknown provider 'sage'"),
        (["instances", "--region", "eu-west-1"], "--region goes with --provider"),
        (["instances", "--provider", "vertex", "--region", "mars"],
         "no prices of vertex in 'mars' are known; known: europe-west4"),
        (["images", "--provider", "sagemaker", "--region", "eu-wst-1"], "did you mean 'eu-west-1'?"),
        (["images", "--region", "eu-west-1"], "--region goes with --provider"),
        (["features", "--provider", "local"], "unknown provider 'local'"),
    ],
)  # fmt: skip
def test_questions_that_cannot_be_answered(words: list[str], message: str) -> None:
    done = cloudtrain("catalog", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_two_forms_at_once_are_refused() -> None:
    done = cloudtrain("catalog", "features", "--json", "--markdown")
    assert (done.returncode, done.stdout) == (2, "")
    assert "give one" in done.stderr


def test_what_is_no_accelerator_is_shown_in_few_words() -> None:
    done = cloudtrain("catalog", "instances", "--accelerator", "A" * 10_000)
    assert done.returncode == 2
    assert done.stderr.startswith("cloudtrain: --accelerator: 'AAAA")
    assert len(done.stderr) < 1000
