"""Where the three services are that a run needs, and with which credentials they are asked.

Each is Google's own, with the credentials that Google's libraries find, or what a variable names, with none:

CLOUDTRAIN_ENDPOINT_VERTEX   http://HOST:PORT (REST), grpc://HOST:PORT (without TLS), https://HOST:PORT (gRPC)
CLOUDTRAIN_ENDPOINT_LOGGING  http://HOST:PORT
STORAGE_EMULATOR_HOST        http://HOST:PORT, the variable of Google's own library

Only here are Google's packages loaded, each when it is first needed: that takes 1.7 s for the job service, 0.3 s for
storage, 0.5 s for logs (measured on 2 cores).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from cloudtrain.errors import MissingError, SpecError
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.vendor import importing
from cloudtrain.spec.problems import shown

VERTEX = "CLOUDTRAIN_ENDPOINT_VERTEX"
LOGGING = "CLOUDTRAIN_ENDPOINT_LOGGING"
STORAGE = "STORAGE_EMULATOR_HOST"
LOG_IN = "log in with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file"
_NO_METADATA = "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA"
"""Else google-cloud-storage asks for each bucket's own data from a thread of its own, for traces that nobody wants."""
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class Endpoints:
    """Makes the clients of one account. Raises MissingError for packages and credentials that are not there."""

    def __init__(
        self, project: str, region: str, environ: Mapping[str, str] = os.environ, credentials: Any = None
    ) -> None:
        """``credentials``: those that have been found already."""
        self._project = project
        self._region = region
        self._environ = environ
        self._found = credentials
        self._made: list[Any] = []
        """Each has a ``close``."""

    @property
    def vertex(self) -> str:
        """Where the job service is, as a message shows it."""
        return self._environ.get(VERTEX) or f"{self._region}-aiplatform.googleapis.com"

    def job_service(self) -> Any:
        """A JobServiceClient."""
        with _loading():
            made = self._job_service()
        self._made.append(made.transport)
        return made

    def _job_service(self) -> Any:
        service = _module("google.cloud.aiplatform_v1.services.job_service")
        given = self._environ.get(VERTEX)
        if not given:
            return service.JobServiceClient(
                credentials=self._credentials(), client_options={"api_endpoint": self.vertex}
            )
        scheme, _, address = given.rstrip("/").partition("://")
        if scheme == "http":
            options = {"api_endpoint": given.rstrip("/")}
            return service.JobServiceClient(credentials=_anonymous(), client_options=options, transport="rest")
        if scheme == "https":
            return service.JobServiceClient(credentials=_anonymous(), client_options={"api_endpoint": address})
        if scheme == "grpc":
            return service.JobServiceClient(transport=_without_tls(address))
        raise SpecError(f"{VERTEX} must begin with http://, grpc:// or https://, not {shown(given)}")

    def log_service(self) -> Any:
        """A client of Cloud Logging, by REST: Google's own way to it by gRPC can be pointed at no other place."""
        with _loading():
            logging = _module("google.cloud.logging")
            given = self._environ.get(LOGGING)
            options = {"api_endpoint": given.rstrip("/")} if given else None
            credentials = self._credentials_for(LOGGING)
            made = logging.Client(
                project=self._project, credentials=credentials, client_options=options, _use_grpc=False
            )
        self._made.append(made)
        return made

    def store(self) -> Any:
        """A client of Cloud Storage, which reads its own variable."""
        os.environ.setdefault(_NO_METADATA, "true")
        with _loading():
            storage = _module("google.cloud.storage")
            made = storage.Client(project=self._project, credentials=self._credentials_for(STORAGE))
        self._made.append(made)
        return made

    def close(self) -> None:
        """Give back the connections of all clients that were made."""
        for made in self._made:
            made.close()

    def _credentials_for(self, variable: str) -> Any:
        return _anonymous() if self._environ.get(variable) else self._credentials()

    def _credentials(self) -> Any:
        """Those that Google's libraries find: one object for all services, so that a token is fetched once."""
        if self._found is None:
            auth, errors = _module("google.auth"), _module("google.auth.exceptions")
            try:
                self._found, _ = auth.default(scopes=[_SCOPE])
            except (errors.GoogleAuthError, OSError, ValueError) as error:
                raise MissingError(
                    f"no usable credentials for Google Cloud: {_first_line(error)}", hint=LOG_IN
                ) from error
        return self._found


def _without_tls(address: str) -> Any:
    transports = _module("google.cloud.aiplatform_v1.services.job_service.transports")
    return transports.JobServiceGrpcTransport(channel=_module("grpc").insecure_channel(address))


def _anonymous() -> Any:
    return _module("google.auth.credentials").AnonymousCredentials()


def _module(name: str) -> Any:
    with importing():
        return import_module(name)


@contextmanager
def _loading() -> Iterator[None]:
    """Google's packages warn on import of Python versions near their end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except ImportError as error:
            raise _missing(error) from error


def _missing(error: ImportError) -> MissingError:
    return MissingError(f"Google's packages for Vertex AI cannot be loaded: {error}", hint=EXTRAS["vertex"])


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
