"""boto3's clients for one region: made when they are first used, each loads a model of its own."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from cloudtrain.errors import MissingError
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.sagemaker.errors import asking
from cloudtrain.providers.vendor import importing

CONNECT_SECONDS = 10
READ_SECONDS = 60
ATTEMPTS = 10
"""Of one call, the first included: botocore's default of 3 gives up within seconds of throttling. AWS's own SDK for
SageMaker takes as many (read in sagemaker-core 2.x)."""


class Services:
    """The clients that the port needs."""

    def __init__(self, region: str) -> None:
        """Raises MissingError without boto3, or without credentials."""
        try:
            with importing():
                import botocore.session
                from boto3.session import Session
                from botocore.config import Config
        except ImportError as error:
            raise MissingError(f"SageMaker needs boto3: {error}", hint=EXTRAS["sagemaker"]) from error
        self.region = region
        self._made: list[Any] = []
        with asking("find credentials", region):
            core = botocore.session.get_session()
            self._session = Session(botocore_session=core, region_name=region)
            if self._session.get_credentials() is None:
                from botocore.exceptions import NoCredentialsError

                raise NoCredentialsError
            self._config = Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries=_retries(core),
                user_agent_extra="cloudtrain",
            )

    @cached_property
    def sagemaker(self) -> Any:
        """Training jobs."""
        return self._client("sagemaker")

    @cached_property
    def s3(self) -> Any:
        """Files. May be used by several threads, as all of boto3's clients."""
        return self._client("s3")

    @cached_property
    def logs(self) -> Any:
        """Lines of the nodes."""
        return self._client("logs")

    def _client(self, name: str) -> Any:
        with asking(f"use {name}", self.region):
            self._made.append(made := self._session.client(name, config=self._config))
        return made

    def close(self) -> None:
        """Give the connections back."""
        for client in self._made:
            client.close()


def _retries(core: Any) -> dict[str, Any]:
    """Standard mode backs off with jitter, and knows the many names of throttling; adaptive does so, too, and older
    versions have another one by default. A user's own AWS_MAX_ATTEMPTS wins."""
    mode = "adaptive" if core.get_config_variable("retry_mode") == "adaptive" else "standard"
    return {"mode": mode, **({} if core.get_config_variable("max_attempts") else {"total_max_attempts": ATTEMPTS})}
