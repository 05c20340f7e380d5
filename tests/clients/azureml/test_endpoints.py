"""Where the service is, by the variables that say so."""

from __future__ import annotations

import pytest

from cloudtrain.providers.azureml.endpoints import endpoints


def test_the_public_cloud_is_meant_unless_another_is() -> None:
    found = endpoints({})
    assert found.arm == "https://management.azure.com"
    assert found.scope == "https://management.azure.com/.default"
    assert not found.emulated


@pytest.mark.usefixtures("vendor")
@pytest.mark.parametrize("cloud", ["AzureCloud", "AzureChinaCloud", "AzureUSGovernment"])
def test_the_clouds_are_where_the_vendors_client_has_them(cloud: str) -> None:
    from azure.ai.ml._azure_environments import _environments

    known, found = _environments[cloud], endpoints({"AZUREML_CURRENT_CLOUD": cloud})
    assert f"{found.arm}/" == known["resource_manager"]
    assert f"https://{found.authority}/" == known["active_directory"]


def test_the_emulator_needs_no_login() -> None:
    found = endpoints({"CLOUDTRAIN_ENDPOINT_AZUREML": "https://127.0.0.1:1/", "AZUREML_DEV_URL_MFE": "https://x"})
    assert (found.arm, found.emulated) == ("https://127.0.0.1:1", True)
    assert not endpoints({"AZUREML_DEV_URL_MFE": "https://x"}).emulated


def test_a_users_own_authority_wins() -> None:
    assert endpoints({"AZURE_AUTHORITY_HOST": "login.example.org"}).authority == "login.example.org"
