"""The job service: the five calls that cloudtrain makes, with jobs as plain JSON in the form of the REST API.

``aiplatform.CustomJob`` is not used: its ``wait`` returns at once, its waiter never returns on two final states, and it
loads twice as much.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from cloudtrain.errors import CloudtrainError, UnreachableError
from cloudtrain.providers.paging import Tokens
from cloudtrain.providers.vertex.calls import effect, retry
from cloudtrain.providers.vertex.endpoints import Endpoints
from cloudtrain.providers.vertex.errors import Told, told

Job = dict[str, Any]
"""A CustomJob as JSON: names of enums, int64 and times as text; what is empty is left out."""

_SECONDS = 30.0
"""Of one try of a call that only reads."""
_CREATE_SECONDS = 90.0
_PATIENCE_SECONDS = 60.0
"""After which no new try is made."""
_PAGE = 100
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
"""Seconds between two creates: throttling counts the calls of a minute."""
_LOOKS = (0.5, 1.0, 2.0)
"""Seconds before each look for a job of which it is not clear whether it has been made."""
_AT_ONCE = (0.0,)


class Jobs:
    """The custom jobs of a project in one region."""

    def __init__(self, endpoints: Endpoints, parent: str) -> None:
        """``parent``: ``projects/P/locations/R``."""
        self._endpoints = endpoints
        self._parent = parent

    def get(self, name: str) -> Job:
        """Raises RefusedError if there is none."""
        with self._told:
            found = self._client.get_custom_job(name=name, timeout=_SECONDS, retry=retry(_PATIENCE_SECONDS))
            return _as_json(found)

    def cancel(self, name: str) -> None:
        """Ask for its end."""
        with self._told:
            self._client.cancel_custom_job(name=name, timeout=_SECONDS, retry=retry(_PATIENCE_SECONDS))

    def list(self, chosen: str) -> Iterator[Job]:
        """Those that the filter ``chosen`` fits, in any order."""
        request = {"parent": self._parent, "filter": chosen, "page_size": _PAGE}
        with self._told:
            pager = self._client.list_custom_jobs(request=request, timeout=_SECONDS, retry=retry(_PATIENCE_SECONDS))
            tokens = Tokens(f"list jobs of {self._name}")
            for page in pager.pages:
                tokens.next(page.next_page_token)
                yield from map(_as_json, page.custom_jobs)

    def create(self, native: Mapping[str, Any], made: Callable[[], Job | None]) -> Job:
        """Make the job: once, whatever becomes of the answers. ``made`` looks whether it is there.

        The service takes no token that would make the call safe to repeat. So it is sent again only where it has
        certainly not been done, or where the service has given up on it and no job is found.
        """
        for pause in (*_PAUSES, None):
            try:
                return self._sent(native)
            except CloudtrainError:
                raise
            except Exception as error:  # a broken answer can raise anything
                found = self._after(error, made)
                if found is not None:
                    return found
                if pause is None:
                    raise told(error, self._name) from error
                time.sleep(pause * random.uniform(0.5, 1.5))
        raise AssertionError("not reached")

    def _after(self, error: Exception, made: Callable[[], Job | None]) -> Job | None:
        """The job, if a create that failed has made it; None if it may be sent again."""
        came_to = effect(error)
        if came_to == "refused":
            raise told(error, self._name) from error
        try:
            found = _looked_for(made, _AT_ONCE if came_to == "none" else _LOOKS)
        except UnreachableError as lost:
            raise _unclear(lost) from error
        if found is None and came_to == "unclear":
            raise _unclear(told(error, self._name)) from error
        return found

    @cached_property
    def _client(self) -> Any:
        return self._endpoints.job_service()

    @property
    def _name(self) -> str:
        return f"Vertex AI ({self._endpoints.vertex})"

    @property
    def _told(self) -> Told:
        return Told(self._name)

    def _sent(self, native: Mapping[str, Any]) -> Job:
        from google.cloud.aiplatform_v1.types.custom_job import CustomJob
        from google.protobuf import json_format

        job = CustomJob.pb()()
        json_format.ParseDict(native, job)
        request = {"parent": self._parent, "custom_job": CustomJob.wrap(job)}
        return _as_json(self._client.create_custom_job(request=request, timeout=_CREATE_SECONDS, retry=None))


def _as_json(job: Any) -> Job:
    from google.protobuf import json_format

    found: Job = json_format.MessageToDict(type(job).pb(job))
    return found


def _looked_for(made: Callable[[], Job | None], pauses: tuple[float, ...]) -> Job | None:
    for pause in pauses:
        time.sleep(pause)
        if found := made():
            return found
    return None


def _unclear(error: CloudtrainError) -> UnreachableError:
    return UnreachableError(
        f"whether the job has been created is not known: {error.message}",
        hint="run the same command again: it takes up the job if it is there by then",
    )
