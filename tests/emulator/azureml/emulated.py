"""The control plane behind TLS on loopback, and clients that find it by environment variables alone."""

from __future__ import annotations

import base64
import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import requests

from cloudtrain.emulator import Emulator
from cloudtrain.emulator.azureml.plane import AzureMlPlane

LIMIT_SECONDS = 300.0
PATH = (
    "/subscriptions/00000000-0000-0000-0000-0000000000aa/resourceGroups/emulated"
    "/providers/Microsoft.MachineLearningServices/workspaces/emulated"
)


class Credential:
    """A token that is a JWT, as the vendor's client wants it, and of nobody."""

    def get_token(self, *_: str, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        def part(content: Mapping[str, str]) -> str:
            return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

        token = f"{part({'alg': 'none'})}.{part({'tid': 't', 'aud': 'https://management.azure.com'})}.{part({})}"
        return AccessToken(token, int(time.time()) + 3600)


def vendor() -> Any:
    """azure.ai.ml, which warns of what it imports, and logs each experimental field."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import azure.ai.ml

    logging.getLogger("azure.ai.ml").setLevel(logging.ERROR)
    return azure.ai.ml


def client() -> Any:
    """The vendor's, as any program makes it."""
    names = (os.environ[f"CLOUDTRAIN_AZUREML_{name}"] for name in ("SUBSCRIPTION", "RESOURCE_GROUP", "WORKSPACE"))
    return vendor().MLClient(Credential(), *names, enable_telemetry=False, show_progress=False)


class Emulated:
    """An open plane."""

    def __init__(self, emulator: Emulator) -> None:
        self.plane = cast("AzureMlPlane", emulator.plane("azureml"))
        self.url = emulator.url("azureml")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = emulator.env["REQUESTS_CA_BUNDLE"]
        self._session.headers["Authorization"] = "Bearer any"

    def close(self) -> None:
        self._session.close()

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> requests.Response:
        """One call below the workspace, or with ``history`` in front of it."""
        query = {"api-version": "2024-01-01-preview", **options.pop("params", {})}
        before = f"{self.url}/history/v1.0" if path.startswith(("/runs", "/rundata", "/experiments")) else self.url
        return self._session.request(method, f"{before}{PATH}{path}", json=body, params=query, **options)

    def follow(self, link: str) -> dict[str, Any]:
        """A next page, by its address."""
        found: dict[str, Any] = self._session.get(link).json()
        return found

    def job(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"/jobs/{name}").json()
        return found

    def details(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"/runs/{name}/details").json()
        return found

    def log(self, name: str, file: str, **headers: str) -> str:
        """A log file, by the address that run history gives: no token."""
        found = requests.get(self.details(name)["logFiles"][file], headers=headers, timeout=30)
        assert found.status_code in (200, 206), found.text
        return found.text

    def blob(self, name: str) -> bytes:
        """A blob of the default datastore."""
        with self._container() as container:
            content: bytes = container.download_blob(name).readall()
            return content

    def blobs(self, folder: str) -> list[str]:
        with self._container() as container:
            return list(container.list_blob_names(name_starts_with=folder))

    def put(self, name: str, content: bytes) -> None:
        with self._container() as container:
            container.upload_blob(name, content, overwrite=True)

    def _container(self) -> Any:
        """By what the plane says of it."""
        from azure.storage.blob import ContainerClient

        said = self.call("GET", "/datastores/workspaceblobstore").json()["properties"]
        key = self.call("POST", "/datastores/workspaceblobstore/listSecrets", {}).json()["key"]
        account = os.environ["CLOUDTRAIN_ENDPOINT_BLOB"].replace("{}", said["accountName"])
        return ContainerClient(account, said["containerName"], credential=key)

    def until(self, name: str, wanted: Callable[[dict[str, Any]], Any], limit: float = LIMIT_SECONDS) -> list[str]:
        """Look until ``wanted`` is true of the details. Returns the states that were seen, each once in a row."""
        seen: list[str] = []
        end = time.monotonic() + limit
        while time.monotonic() < end:
            details = self.details(name)
            if not seen or seen[-1] != details["status"]:
                seen.append(details["status"])
            if wanted(details):
                return seen
            time.sleep(0.02)
        raise AssertionError(f"{name} went through {seen}: {details}")

    def until_over(self, name: str) -> list[str]:
        return self.until(name, lambda details: details["status"] in ("Completed", "Failed", "Canceled"))

    def until_printed(self, name: str, file: str, text: str) -> None:
        self.until(name, lambda details: file in details["logFiles"] and text in self.log(name, file))


@contextmanager
def emulated(folder: Path, *, speed: float, faults: str = "") -> Iterator[Emulated]:
    """Open one; this process's environment leads to it for as long."""
    file = folder / "faults.yaml"
    file.write_text(faults or "{}")
    with Emulator(["azureml"], speed=speed, faults=file) as emulator, pytest.MonkeyPatch.context() as patch:
        for name, value in {**emulator.env, "NO_PROXY": "127.0.0.1"}.items():
            patch.setenv(name, value)
        patch.setenv("AZUREML_CURRENT_CLOUD", "AzureCloud")  # the vendor's client writes it, for good
        patch.chdir(folder)  # it looks for a git repository there
        with closing(Emulated(emulator)) as found:
            yield found
