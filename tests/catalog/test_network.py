"""The variables of a machine's network."""

from __future__ import annotations

import pytest

from cloudtrain.catalog.instances import instances, rows_of
from cloudtrain.catalog.network import network_settings

EFA = {"FI_PROVIDER": "efa", "RDMAV_FORK_SAFE": "1"}
RDMA = {**EFA, "FI_EFA_USE_DEVICE_RDMA": "1"}
ETH0 = {"NCCL_SOCKET_IFNAME": "eth0", "GLOO_SOCKET_IFNAME": "eth0"}
AZURE_GPU = {**ETH0, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_IB_PCI_RELAXED_ORDERING": "1"}


@pytest.mark.parametrize(
    ("provider", "name", "expected"),
    [
        ("sagemaker", "ml.p4d.24xlarge", RDMA),
        ("sagemaker", "ml.p4de.24xlarge", RDMA),
        ("sagemaker", "ml.p5.4xlarge", RDMA),
        ("sagemaker", "ml.p5en.48xlarge", RDMA),
        ("sagemaker", "ml.p6-b300.48xlarge", RDMA),
        ("sagemaker", "ml.g5.48xlarge", EFA),
        ("sagemaker", "ml.g6e.12xlarge", EFA),
        ("sagemaker", "ml.p3dn.24xlarge", EFA),
        ("sagemaker", "ml.g5.xlarge", {}),
        ("sagemaker", "ml.m5.large", {}),
        ("vertex", "a2-ultragpu-8g", {}),
        ("vertex", "a3-ultragpu-8g", {}),
        ("azureml", "Standard_ND96amsr_A100_v4", {**AZURE_GPU, "NCCL_IB_DISABLE": "0"}),
        ("azureml", "Standard_NC24rs_v3", {**AZURE_GPU, "NCCL_IB_DISABLE": "0"}),
        ("azureml", "Standard_NC24s_v3", AZURE_GPU),
        ("azureml", "Standard_D2s_v5", ETH0),
    ],
)
def test_several_nodes(provider: str, name: str, expected: dict[str, str]) -> None:
    assert network_settings(rows_of(provider, name)[-1], 2) == expected


def test_one_node_needs_none() -> None:
    assert all(network_settings(row, 1) == {} for row in instances())


def test_what_is_for_efa_is_on_no_machine_without() -> None:
    """libfabric told to use EFA fails where there is none."""
    for row in instances():
        if row.rdma != "EFA":
            assert not set(network_settings(row, 2)) & set(RDMA)
