"""One workspace: its jobs, code and datastores (resource manager), and what the run history knows of a job.

Paths and API versions are those of azure-ai-ml 1.35.2, each traced from the call of it that does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from cloudtrain.errors import RefusedError, UnreachableError
from cloudtrain.providers.azureml.calls import Caller
from cloudtrain.providers.azureml.endpoints import Endpoints
from cloudtrain.providers.paging import Tokens
from cloudtrain.providers.reading import mappings, text

_JOBS = "2024-01-01-preview"
_CANCEL = "2023-04-01-preview"
_CODES = "2023-04-01"
_DATASTORES = _WORKSPACES = "2024-10-01-preview"
_SECRETS = {"expirableSecret": True, "expireAfterHours": 1}


class Workspace:
    """The calls. Answers are the service's JSON; None is: there is no such thing."""

    def __init__(
        self,
        account: Mapping[str, str],
        endpoints: Endpoints,
        credential: Any,
        caller: Callable[..., Caller] = Caller,
    ) -> None:
        """``caller``: makes what calls, of a credential and a scope."""
        self._subscription = account["subscription"]
        self.name = account["workspace"]
        self.path = (
            f"/subscriptions/{account['subscription']}/resourceGroups/{account['resource_group']}"
            f"/providers/Microsoft.MachineLearningServices/workspaces/{account['workspace']}"
        )
        self.files = caller()
        """For addresses that hold the right to use them."""
        self._arm = endpoints.arm
        self._caller = caller(credential, endpoints.scope)
        self._history = ""

    def about(self) -> Any:
        """The workspace itself."""
        return self._call("GET", "", _WORKSPACES, f"look at workspace {self.name}")

    def compute(self, name: str) -> Any:
        """A cluster."""
        return self._call("GET", f"/computes/{_step(name)}", _WORKSPACES, f"look at compute {name}")

    def usages(self, location: str) -> Any:
        """Quotas of the subscription in a region, and what is used of them."""
        provider = f"/subscriptions/{self._subscription}/providers/Microsoft.MachineLearningServices"
        url = f"{self._arm}{provider}/locations/{_step(location)}/usages"
        return self._caller.json("GET", url, "look at quotas", params={"api-version": _WORKSPACES})

    def job(self, name: str) -> Any:
        """A job."""
        return self._call("GET", f"/jobs/{_step(name)}", _JOBS, f"look at job {name}")

    def jobs(self, tag: str) -> Iterator[Mapping[str, Any]]:
        """All command jobs that are not archived and have the tag, in the service's order."""
        doing = f"list the jobs of workspace {self.name}"
        params = {"listViewType": "ActiveOnly", "jobType": "Command", "tag": tag}
        page, links = self._call("GET", "/jobs", _JOBS, doing, params=params), Tokens(doing)
        while True:
            if page is None:
                raise RefusedError(f"there is no workspace {self.name}, or it is not shown to you", cause="permission")
            for _, job in mappings(page, "value"):
                yield job
            if not (link := links.next(text(page, "nextLink"))):
                return
            page = self._caller.json("GET", link, doing)

    def cancel(self, name: str) -> Any:
        """Ask for the end of a job."""
        return self._call("POST", f"/jobs/{_step(name)}/cancel", _CANCEL, f"stop job {name}")

    def code(self, name: str) -> Any:
        """Version 1 of a code snapshot."""
        return self._call("GET", f"/codes/{name}/versions/1", _CODES, "look for the code")

    def begin_code(self, name: str) -> Any:
        """An address at which to put the files of a snapshot that is not there yet."""
        body = {"pendingUploadType": "TemporaryBlobReference"}
        path = f"/codes/{name}/versions/1/startPendingUpload"
        return self._call("POST", path, _CODES, "upload the code", body=body)

    def make_code(self, name: str, properties: Mapping[str, Any]) -> Any:
        """Say that all files of a snapshot are there."""
        body = {"properties": properties}
        return self._call("PUT", f"/codes/{name}/versions/1", _CODES, "upload the code", body=body)

    def datastore(self, name: str) -> Any:
        """A datastore, without its secrets."""
        return self._call("GET", f"/datastores/{_step(name)}", _DATASTORES, f"look at datastore {name}")

    def secrets(self, name: str) -> Any:
        """What opens a datastore for an hour."""
        path = f"/datastores/{_step(name)}/listSecrets"
        return self._call("POST", path, _DATASTORES, f"open datastore {name}", body=_SECRETS)

    def details(self, name: str) -> Any:
        """What the run history has of a job: its error, times and the addresses of its log files."""
        url = f"{self._history_address()}/history/v1.0{self.path}/runs/{_step(name)}/details"
        return self._caller.json("GET", url, f"read the history of job {name}")

    def close(self) -> None:
        """Give the connections back."""
        self._caller.close()
        self.files.close()

    def _history_address(self) -> str:
        """Of the region's run history, which the workspace names by way of a list of addresses."""
        if not self._history:
            doing = f"look at workspace {self.name}"
            workspace = self.about()
            if workspace is None:
                raise RefusedError(f"there is no workspace {self.name}, or it is not shown to you", cause="permission")
            known = self.files.json("GET", text(workspace, "properties", "discoveryUrl"), doing)
            self._history = text(known, "api").rstrip("/")
            if not self._history.startswith("https://"):  # it is sent a token
                self._history = ""
                raise UnreachableError(f"workspace {self.name} does not say where its run history is")
        return self._history

    def _call(
        self,
        method: str,
        path: str,
        version: str,
        doing: str,
        *,
        body: Any = None,
        params: Mapping[str, str] = {},
    ) -> Any:
        url = f"{self._arm}{self.path}{path}"
        return self._caller.json(method, url, doing, body=body, params={**params, "api-version": version})


def _step(name: str) -> str:
    return quote(name, safe="")
