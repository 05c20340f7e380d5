"""The calls about what a workspace holds: datastores, clusters, code and environments."""

from __future__ import annotations

from cloudtrain.emulator.azureml.asked import Answer, Asked, Calls, page
from cloudtrain.emulator.azureml.assets import Codes, Environments
from cloudtrain.emulator.azureml.workspace import Workspace


def calls(workspace: Workspace, codes: Codes, environments: Environments) -> Calls:
    """By the name of the operation."""

    def datastores(asked: Asked) -> Answer:
        only = asked.query.get("isDefault", "").lower() == "true"
        return page([store for store in workspace.datastores() if store["properties"]["isDefault"] or not only])

    def environment_versions(asked: Asked) -> Answer:
        return page(environments.versions(asked.name)[: asked.number("$top")])

    def put_environment(asked: Asked) -> Answer:
        return Answer(*environments.put(asked.name, asked.names["version"], asked.body))

    def put_code(asked: Asked) -> Answer:
        return Answer(*codes.put(asked.name, asked.names["version"], asked.body))

    return {
        "Discovery_Get": lambda _: Answer(200, workspace.discovery()),
        "Workspaces_Get": lambda _: Answer(200, workspace.document()),
        "Compute_Get": lambda asked: Answer(200, workspace.compute(asked.name)),
        "Datastores_List": datastores,
        "Datastores_Get": lambda asked: Answer(200, workspace.datastore(asked.name)),
        "Datastores_CreateOrUpdate": lambda asked: Answer(201, workspace.register(asked.name, asked.body)),
        "Datastores_ListSecrets": lambda asked: Answer(200, workspace.secrets(asked.name)),
        "CodeVersions_List": lambda asked: page(codes.with_hash(asked.query.get("hash", ""))),
        "CodeVersions_Get": lambda asked: Answer(200, codes.get(asked.name, asked.names["version"])),
        "CodeVersions_CreateOrUpdate": put_code,
        "CodeVersions_CreateOrGetStartPendingUpload": lambda asked: Answer(200, codes.begin_upload(asked.body)),
        "EnvironmentVersions_List": environment_versions,
        "EnvironmentVersions_Get": lambda asked: Answer(200, environments.get(asked.name, asked.names["version"])),
        "EnvironmentVersions_CreateOrUpdate": put_environment,
    }
