"""SageMaker's control plane on this machine, with S3, CloudWatch Logs and STS beside it behind one address.

request -> SageMaker.*  -> api.py -> verbs.py -> one thread for each job (job.py)
        -> all else     -> services.py (moto)

job.py   Starting -> containers.py, channels.py: what lies where on every node, from S3
         Training -> watch.py: until the nodes end; logstreams.py, checkpoints.py: what they print and save
         Uploading -> artefacts.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from werkzeug.wrappers import Response

from cloudtrain.emulator.sagemaker import reach
from cloudtrain.emulator.sagemaker.api import SERVICE, TARGET, Api, as_json
from cloudtrain.emulator.sagemaker.clients import Clients
from cloudtrain.emulator.sagemaker.job import World
from cloudtrain.emulator.sagemaker.logfaults import EmptyPages
from cloudtrain.emulator.sagemaker.operations import operation_of, service_of
from cloudtrain.emulator.sagemaker.services import Services
from cloudtrain.emulator.sagemaker.verbs import Verbs
from cloudtrain.errors import SpecError

if TYPE_CHECKING:
    from cloudtrain.emulator.base import Site, TakenJob, WsgiApp

_CODES: Mapping[str, Mapping[str, str]] = {
    "throttle": {"s3": "SlowDown", "": "ThrottlingException"},
    "expired-token": {"s3": "ExpiredToken", "": "ExpiredTokenException"},
    "error": {"s3": "InternalError", "": "InternalFailure"},
    "busy": {"": "ServiceUnavailable"},
    "fault": {"s3": "InternalError", "": "InternalFailure"},
}
"""What the faults of calls are called, by service."""
_WITH_XML = ("s3", "sts", "iam")


def open_plane(site: Site) -> SageMakerPlane:
    """Raises MissingError without moto or boto3, SpecError for settings of this machine that are ill-formed."""
    return SageMakerPlane(site)


class SageMakerPlane:
    """See ``base.Plane``."""

    needs_tls = False

    def __init__(self, site: Site) -> None:
        self._site = site
        self._services = Services()
        self._settings, self._completing = reach.account_settings(self._services.account)
        self._clients = Clients(self._services, self._settings["region"])
        self._rest: WsgiApp = self._services
        if "empty-pages" in site.faults.logs("sagemaker"):
            self._rest = EmptyPages(self._services)
        self._verbs: Verbs | None = None
        self._api: Api | None = None
        self._asked = threading.local()
        """``service``: of the call that this thread is answering."""
        self.app: WsgiApp = self._answer

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Every CreateTrainingJob, as it was received."""
        return self._verbs.requests if self._verbs else []

    def operation(self, environ: Mapping[str, Any]) -> str:
        """Of any of AWS's services."""
        self._asked.service = service_of(environ)
        return operation_of(environ)

    def fault_response(self, status: int, code: str, message: str) -> tuple[bytes, Mapping[str, str]]:
        """As the service words it that the last call of this thread was for."""
        service = getattr(self._asked, "service", "")
        codes = _CODES["busy" if code == "error" and status == 503 else code]
        return self._worded(codes.get(service) or codes[""], message)

    def _worded(self, code: str, message: str) -> tuple[bytes, Mapping[str, str]]:
        service = getattr(self._asked, "service", "")
        if service not in _WITH_XML:
            return as_json(code, message)
        error = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
        if service != "s3":
            error = f"<ErrorResponse>{error}</ErrorResponse>"
        return error.encode(), {"Content-Type": "application/xml"}

    def opened(self, url: str) -> Mapping[str, str]:
        """AWS's variables, and our settings where nobody has set them. Makes the settings' bucket, and raises SpecError
        if that cannot be."""
        region = self._settings["region"]
        world = World(self._site, self._clients, reach.for_nodes(url, region))
        self._verbs = Verbs(world)
        self._api = Api(self._verbs)
        self._make_bucket(region, self._settings["bucket"])
        self._clients.make_role(self._settings["role"])
        return {**reach.for_clients(url, region, self._site.folder), **self._completing}

    def jobs(self) -> list[TakenJob]:
        """See the protocol."""
        return self._verbs.jobs() if self._verbs else []

    def close(self) -> None:
        """End all jobs, and forget everything."""
        if self._verbs:
            self._verbs.close()
        self._clients.close()
        self._services.close()

    def _make_bucket(self, region: str, bucket: str) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        try:
            self._clients.s3.create_bucket(Bucket=bucket, **place)
        except (BotoCoreError, ClientError) as error:
            raise SpecError(f"setting sagemaker.bucket: {bucket} cannot be made in {region}: {error}") from error

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        is_ours = environ.get(TARGET, "").startswith(SERVICE) and self._api
        try:
            return (self._api if is_ours and self._api else self._rest)(environ, start_response)
        except NotImplementedError as error:  # moto's word for a call that it does not have
            environ["wsgi.input"].seek(0)
            what = operation_of(environ) or str(error)
            body, headers = self._worded("NotEmulated", f"the emulator does not have {what}")
            return Response(body, 400, headers)(environ, start_response)
