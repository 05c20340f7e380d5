"""Vertex AI on loopback: JobService, the log of its jobs, and the buckets that they work with.

rest.py, rpc.py   calls by HTTP and by gRPC -> service.py, logs.py: what they do
service.py        keeps the jobs; validation.py: what it refuses
life.py           one job's life, in a thread; start.py: one start of its containers; restarts.py: when there is
                  another one; wording.py: what the service says
storage.py        Cloud Storage, and the same buckets under /gcs
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from cloudtrain.emulator.base import Plane, Site, TakenJob, WsgiApp
from cloudtrain.emulator.vertex.errors import HTTP_STATUS, code_of, envelope
from cloudtrain.emulator.vertex.life import Surroundings
from cloudtrain.emulator.vertex.logs import EntryLog
from cloudtrain.emulator.vertex.rest import Rest
from cloudtrain.emulator.vertex.rpc import Rpc
from cloudtrain.emulator.vertex.service import JobService
from cloudtrain.emulator.vertex.storage import Storage
from cloudtrain.errors import MissingError
from cloudtrain.providers.vertex.schema import custom_job_type

PROJECT, REGION, BUCKET = "cloudtrain-emulator", "us-central1", "cloudtrain-emulator"
"""Any project and region will do; these are for whoever has none."""


_NEEDED = ("google.cloud.aiplatform_v1", "google.cloud.logging_v2", "google_crc32c", "grpc", "trustme")


class VertexPlane:
    """See ``Plane``."""

    needs_tls = False

    def __init__(self, site: Site) -> None:
        self._log = EntryLog(site.faults.logs("vertex"))
        self._storage = Storage(site.folder / "gcs")
        self._services: dict[str, str] = {}
        around = Surroundings(site, self._log, self._storage, threading.Event(), self._services)
        self._jobs = JobService(around)
        self._rest = Rest(self._jobs, self._log)
        self.app: WsgiApp = self._rest.answer
        self._rpc = Rpc(self._jobs, self._log, site.faults)
        self._folder = site.folder
        self._loading = threading.Thread(target=custom_job_type, name="vertex types")

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The CustomJobs of all creates; see ``JobService``."""
        return self._jobs.requests

    def operation(self, environ: Mapping[str, Any]) -> str:
        """``CreateCustomJob`` and so on, ``ListLogEntries``."""
        return self._rest.operation(environ)

    def fault_response(self, status: int, code: str, message: str) -> tuple[bytes, Mapping[str, str]]:
        """Google's code, if ``code`` is none of Google's own but the emulator's word for the fault, is the status's."""
        known = code if code in HTTP_STATUS else code_of(status)
        return envelope(status, known, message), {"Content-Type": "application/json; charset=UTF-8"}

    def opened(self, url: str) -> Mapping[str, str]:
        """Starts the object server, and the one for gRPC."""
        self._loading.start()  # takes seconds, which the first create would have to wait for
        self._storage.start()
        self._storage.create_bucket(BUCKET)
        address = self._rpc.start(self._folder)
        host = url.partition("://")[2]
        self._services |= {
            "STORAGE_EMULATOR_HOST": self._storage.url,
            "GCE_METADATA_HOST": host,
            "GCE_METADATA_IP": host,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"{url}/",
        }
        return {
            "STORAGE_EMULATOR_HOST": self._storage.url,
            "GOOGLE_CLOUD_PROJECT": PROJECT,
            "NO_GCE_CHECK": "true",
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(self._folder / "roots.pem"),
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": f"{url}/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING": f"{url}/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"{url}/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{self._storage.url}/storage/v1/",
            "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
            "CLOUDSDK_CORE_PROJECT": PROJECT,
            "CLOUDTRAIN_ENDPOINT_VERTEX": url,
            "CLOUDTRAIN_ENDPOINT_VERTEX_GRPC": address,
            "CLOUDTRAIN_ENDPOINT_LOGGING": url,
            "CLOUDTRAIN_VERTEX_PROJECT": PROJECT,
            "CLOUDTRAIN_VERTEX_REGION": REGION,
            "CLOUDTRAIN_VERTEX_BUCKET": BUCKET,
        }

    def jobs(self) -> Sequence[TakenJob]:
        """See the protocol."""
        return self._jobs.jobs()

    def close(self) -> None:
        """End all jobs and both servers."""
        self._jobs.close()
        self._rpc.close()
        self._storage.close()
        if self._loading.ident:
            self._loading.join()


def open_plane(site: Site) -> Plane:
    """Vertex AI's control plane. Raises MissingError without the packages that it needs beside this module's own."""
    for name in _NEEDED:
        if not _is_installed(name):
            hint = "pip install 'cloudtrain[emulator,vertex]'"
            raise MissingError(f"Vertex AI cannot be emulated without the package of {name}", hint=hint)
    return VertexPlane(site)


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # not even what it is a part of
        return False
