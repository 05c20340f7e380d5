"""Prices: those that a dated source gives, and None for all others."""

from __future__ import annotations

import pytest

from cloudtrain.catalog.instances import instances, rows_of
from cloudtrain.catalog.prices import price, reference_price, regions_with_prices


@pytest.mark.parametrize(
    ("provider", "region", "name", "on_demand", "as_of"),
    [
        ("sagemaker", "us-east-1", "ml.g5.xlarge", 1.4084, "2025-01-26"),
        ("sagemaker", "us-east-1", "ml.m5.xlarge", 0.23, "2026-05-05"),
        ("sagemaker", "eu-west-1", "ml.p3.2xlarge", 4.131, "2023-12"),
        ("vertex", "us-central1", "n1-standard-4", 0.21849885, "2026-10-07"),
        ("azureml", "eastus", "Standard_ND96isr_H100_v5", 98.32, ""),
        ("azureml", "westeurope", "Standard_D4s_v3", 0.24, "2025-03-02"),
    ],
)
def test_known_prices(provider: str, region: str, name: str, on_demand: float, as_of: str) -> None:
    found = price(provider, region, name)
    assert found is not None
    assert (found.on_demand, found.spot, found.as_of) == (on_demand, None, as_of)
    assert (found.currency, found.per) == ("USD", "node-hour")
    assert found.source


@pytest.mark.parametrize(
    ("provider", "region", "name"),
    [
        # The list price of January 2025, before AWS cut it: left out rather than shown too high.
        ("sagemaker", "us-east-1", "ml.p4d.24xlarge"),
        ("sagemaker", "us-east-1", "ml.p5.48xlarge"),
        ("sagemaker", "ap-south-1", "ml.g5.xlarge"),
        ("vertex", "us-central1", "a3-highgpu-8g"),
        ("azureml", "eastus", "Standard_D2s_v5"),
        ("azureml", "eastus", "nope"),
    ],
)
def test_unknown_prices_are_unknown(provider: str, region: str, name: str) -> None:
    assert price(provider, region, name) is None


def test_the_price_of_a_host_is_not_the_price_of_its_accelerators() -> None:
    bare, *others = rows_of("vertex", "n1-standard-4")
    assert price("vertex", "us-central1", bare) == price("vertex", "us-central1", "n1-standard-4") is not None
    assert [price("vertex", "us-central1", row) for row in others] == [None] * len(others)
    assert [reference_price("vertex", "us-central1", row) for row in others] == [None] * len(others)


def test_infrastructure_prices_are_kept_apart() -> None:
    """EC2's and Compute Engine's rates, and the spot rate of plain Azure VMs: none is what the services bill."""
    ec2 = reference_price("sagemaker", "us-west-2", "ml.p4de.24xlarge")
    assert ec2 is not None and ec2.on_demand == 27.44705
    gce = reference_price("vertex", "us-central1", rows_of("vertex", "a2-ultragpu-8g")[0])
    assert gce is not None and (gce.on_demand, gce.spot) == (40.221616, 16.08824)
    vm = reference_price("azureml", "eastus", "Standard_NC24ads_A100_v4")
    assert vm is not None and (vm.on_demand, vm.spot) == (None, 0.444433)
    assert price("sagemaker", "us-west-2", "ml.p4de.24xlarge") is None


def test_managed_prices_are_above_those_of_the_same_hardware() -> None:
    """AWS and Google add a fee to what the machine costs by itself; a price below that would be a wrong row."""
    compared = 0
    for row in instances():
        for region in regions_with_prices(row.provider):
            managed, bare = price(row.provider, region, row), reference_price(row.provider, region, row)
            if managed and managed.on_demand and bare and bare.on_demand:
                compared += 1
                assert 1.1 < managed.on_demand / bare.on_demand < 1.5, (row.name, region)
    assert compared >= 15


def test_regions_with_prices() -> None:
    assert regions_with_prices("azureml") == ("eastus", "westeurope", "westus2")
    assert regions_with_prices("vertex") == ("europe-west4", "us-central1", "us-east4")
