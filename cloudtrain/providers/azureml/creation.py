"""Creates jobs with the vendor's own client, azure-ai-ml: what it makes of a form is what goes out.

The form is the request as ``render`` shows it, but for ``code``, which names the snapshot that ``upload`` has made.
Loading the package takes seconds (2 to 4 here), so nothing else uses it.
"""

from __future__ import annotations

import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cloudtrain.errors import CloudtrainError, MissingError, RefusedError, UnreachableError
from cloudtrain.providers.azureml.calls import CONNECT_SECONDS, READ_SECONDS, TRIES, pause
from cloudtrain.providers.azureml.endpoints import ARM, CLOUD, Endpoints
from cloudtrain.providers.azureml.errors import THROTTLED, is_login, of_response, shown
from cloudtrain.providers.azureml.schema import quiet, written_form
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.vendor import importing

if TYPE_CHECKING:
    from cloudtrain.providers.port import Description

_LONGEST_WAIT = 30.0
_GIT = tuple(f"AZUREML_GIT_{name}" for name in ("REPOSITORY_URI", "BRANCH", "COMMIT", "DIRTY", "BUILD_ID", "BUILD_URI"))
"""Variables from which the package takes the same facts."""
_ALONE = threading.Lock()
"""The environment belongs to the whole process."""
_AGAIN = THROTTLED | {401}
"""Also after a token that has expired: the one that was refused has been dropped, and the next call gets another."""


class Creator:
    """Makes jobs in one workspace."""

    def __init__(self, account: Mapping[str, str], endpoints: Endpoints, credential: Any) -> None:
        self._account = account
        self._endpoints = endpoints
        self._credential = credential

    def create(self, name: str, form: Mapping[str, Any], find: Callable[[], Description | None]) -> Description | None:
        """Make the job of a form, once: after every try whose outcome is not known, ``find`` is asked before the next.

        None where the job was made and cannot be seen yet.
        """
        doing = f"create job {name}"
        with self._vendors_ground():
            client, job = self._client(), _loaded(form)
        for number in range(1, TRIES + 1):
            failure, wait = self._tried(client, job, doing)
            found = find()
            if failure is None or found is not None:
                return found
            if wait is None or number == TRIES:
                raise failure
            time.sleep(min(_LONGEST_WAIT, wait) if wait else pause(number))
        raise UnreachableError(f"cannot {doing}")

    def _tried(self, client: Any, job: Any, doing: str) -> tuple[CloudtrainError | None, float | None]:
        """The failure, None for success; and the seconds to wait for another try, 0 for as many as usual, None for
        none."""
        from azure.ai.ml.exceptions import MlException
        from azure.core.exceptions import AzureError, HttpResponseError

        try:
            with self._vendors_ground():
                client.jobs.create_or_update(job)
        except MlException as error:
            return _refused(error), None
        except HttpResponseError as error:
            return of_response(error, doing), _wait_after(error)
        except AzureError as error:
            return UnreachableError(f"cannot {doing}: no answer ({type(error).__name__})"), 0.0
        return None, None

    @contextmanager
    def _vendors_ground(self) -> Iterator[None]:
        """Loads the package, keeps it from talking, and this process from what it would leave behind.

        It would add facts of the git repository in which this process happens to stand, and ask git for them five
        times; what ``render`` has shown is what is to go out.
        """
        variables: dict[str, str | None] = {**dict.fromkeys(_GIT), "GIT_DIR": os.devnull}
        if self._endpoints.emulated:
            variables[ARM] = self._endpoints.arm
        with _ALONE, _environment(variables), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on what it imports, and of experimental fields
            try:
                with importing():
                    import azure.ai.ml  # noqa: F401
            except ImportError as error:
                raise MissingError(f"azure-ai-ml cannot be loaded: {error}", hint=EXTRAS["azureml"]) from error
            with quiet():
                yield

    def _client(self) -> Any:
        from azure.ai.ml import MLClient

        return MLClient(
            self._credential,
            self._account["subscription"],
            self._account["resource_group"],
            self._account["workspace"],
            enable_telemetry=False,
            show_progress=False,
            retry_total=0,  # see create: it would send a job again without looking
            connection_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
        )


def _loaded(form: Mapping[str, Any]) -> Any:
    """The package's job object. Raises RefusedError."""
    from azure.ai.ml import load_job

    with written_form(form) as file:
        try:
            return load_job(file)
        except Exception as error:  # noqa: BLE001 - of several families, and some of Python's own
            raise _refused(error) from None


def _refused(error: Exception) -> RefusedError:
    """What is wrong, out of a page of coloured advice: the lines that begin with ``(x)``."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error) or type(error).__name__)
    marked = " ".join(re.findall(r"^\(x\) (.+)$", plain, re.M)) or plain
    return RefusedError(f"azure-ai-ml refuses the form: {shown(marked)}", cause="invalid")


@contextmanager
def _environment(wanted: Mapping[str, str | None]) -> Iterator[None]:
    """Variables for a while, None for one that is not to be there. Afterwards they, and the name of the cloud, which
    the package writes for all that comes later, are as they were."""
    before = {name: os.environ.get(name) for name in (CLOUD, *wanted)}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _wait_after(error: Any) -> float | None:
    """Seconds until another try may be made, 0 where the service leaves it open, None where none is of use."""
    if error.response is None:  # half an answer, or no credentials to ask with
        return None if is_login(error) else 0.0
    if 400 <= error.status_code < 600 and error.status_code not in _AGAIN:
        return None
    wanted = error.response.headers.get("Retry-After", "")
    return float(wanted) if re.fullmatch(r"[0-9]{1,6}", wanted) else 0.0
