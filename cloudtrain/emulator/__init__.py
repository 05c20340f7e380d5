"""SageMaker, Vertex AI and Azure ML on this machine: control planes that answer the vendors' own clients.

    with Emulator(["vertex"], speed=60) as emulator:
        subprocess.run([sys.executable, "my_pipeline.py"], env=emulator.environment())

    cloudtrain emulate --provider sagemaker -- cloudtrain submit job.yaml --provider sagemaker

A job is checked as strictly as the service does it, goes through the service's states, and its containers are real
processes that run what was uploaded. Machines, images, quotas and prices are not there: any Python packages are those
of this interpreter. Everything is gone at the end.

``Emulator.environment()`` has the variables by which clients find it, and none of this shell's credentials. Most SDKs
and commands need nothing else. What has no such variable is told in code (whole programs: docs/emulate.md):

boto3, aws                  AWS_ENDPOINT_URL; nothing to do
google.cloud.storage        STORAGE_EMULATOR_HOST; ``Client(credentials=AnonymousCredentials(), project=...)``
aiplatform (high level)     ``aiplatform.init(api_endpoint=os.environ["CLOUDTRAIN_ENDPOINT_VERTEX"],
                            api_transport="rest", credentials=AnonymousCredentials())``
JobServiceClient            ``JobServiceClient(transport="rest", credentials=AnonymousCredentials(),
                            client_options={"api_endpoint": os.environ["CLOUDTRAIN_ENDPOINT_VERTEX"]})``
google.cloud.logging        ``Client(_use_grpc=False, credentials=AnonymousCredentials(), project=...,
                            client_options={"api_endpoint": os.environ["CLOUDTRAIN_ENDPOINT_LOGGING"]})``
azure.ai.ml                 AZUREML_DEV_URL_MFE; ``MLClient(credential, ...)`` with any object whose
                            ``get_token(*scopes, **_)`` returns an ``azure.core.credentials.AccessToken``
azure.storage.blob          the account's address is ``os.environ["CLOUDTRAIN_ENDPOINT_BLOB"].format(account)``
kubectl, gcloud, az         gcloud takes CLOUDSDK_API_ENDPOINT_OVERRIDES_*; az cannot be pointed elsewhere

Modules: base.py (what planes are given and have to give), emulator.py (all of it together), web.py, servers.py,
faults.py with faultfile.py, nodes.py with relay.py, keeper.py with keeping.py, shell.py (a command's environment),
pytest_plugin.py; a folder for each cloud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudtrain.emulator.emulator import Emulator

__all__ = ["Emulator"]


def __getattr__(name: str) -> object:
    """Loaded on first use: what is in this package beside it needs none of it."""
    if name == "Emulator":
        from cloudtrain.emulator.emulator import Emulator

        return Emulator
    raise AttributeError(f"module 'cloudtrain.emulator' has no attribute {name!r}")
