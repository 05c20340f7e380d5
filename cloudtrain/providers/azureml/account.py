"""What of the settings says whom a call to Azure ML is for, and where cloudtrain keeps its files."""

from __future__ import annotations

ACCOUNT = ("subscription", "resource_group", "workspace")
"""The settings that ``Request.account`` holds."""
STORE = "azureml://datastores/{datastore}/paths/{prefix}"
"""The folder under which cloudtrain keeps all."""
