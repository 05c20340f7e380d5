"""The plane's own way to S3 and to the logs: AWS's clients, at a port that no call fault stands before.

What the service does inside must not fail, or be counted, as a user's call is.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.emulator.faults import Faults
from cloudtrain.emulator.web import Server
from cloudtrain.errors import MissingError
from cloudtrain.providers.registry import EXTRAS

if TYPE_CHECKING:
    from cloudtrain.emulator.base import WsgiApp
    from cloudtrain.emulator.sagemaker.services import Services

ACCESS_KEY = "AKIACLOUDTRAINEMULATE"
SECRET_KEY = "cloudtrain-emulator"
_CONNECTIONS = 32
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


class Clients:
    """Clients for any number of threads, until ``close``."""

    def __init__(self, services: Services, region: str) -> None:
        """Raises MissingError without boto3."""
        self._session = _session()
        self._account = services.account
        self._server = Server(_Within(services), Faults.none(), "sagemaker inside")
        self._logs: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.s3 = self._client("s3", region)

    def logs(self, region: str) -> Any:
        """CloudWatch Logs of a region."""
        with self._lock:
            if region not in self._logs:
                self._logs[region] = self._client("logs", region)
            return self._logs[region]

    def make_role(self, arn: str) -> None:
        """A role that SageMaker may assume. One of another account than the emulator's is somebody else's business."""
        number, name = arn.split(":")[4], arn.rpartition("/")[2]
        if number != self._account:
            return
        iam = self._client("iam", "us-east-1")
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(_TRUST))
        iam.close()

    def close(self) -> None:
        """End the connections, and the server."""
        for client in (self.s3, *self._logs.values()):
            client.close()
        self._server.close()

    def _client(self, service: str, region: str) -> Any:
        from botocore.config import Config

        config = Config(
            proxies={},
            max_pool_connections=_CONNECTIONS,
            retries={"total_max_attempts": 1},
            parameter_validation=False,  # a third of the time of PutLogEvents
        )
        return self._session.client(
            service,
            region_name=region,
            endpoint_url=self._server.url,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=config,
        )


def _session() -> Any:
    """One that knows nothing of the user's own configuration: its profile may not even exist."""
    try:
        import boto3
        from botocore.session import Session
    except ImportError as error:
        raise MissingError(f"the emulator of SageMaker needs boto3: {error}", hint=EXTRAS["sagemaker"]) from error
    nothing: Mapping[str, Any] = {
        "profile": (None, None, None, None),
        "config_file": (None, None, os.devnull, None),
        "credentials_file": (None, None, os.devnull, None),
    }
    return boto3.session.Session(botocore_session=Session(session_vars=nothing))


class _Within:
    """``Services`` as ``web.py`` takes it."""

    def __init__(self, services: Services) -> None:
        self.app: WsgiApp = services

    def operation(self, _: Mapping[str, Any]) -> str:
        return ""

    def fault_response(self, _status: int, _code: str, message: str) -> tuple[bytes, Mapping[str, str]]:
        return message.encode(), {}
