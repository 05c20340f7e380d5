"""What ``cloudtrain doctor`` asks of Google Cloud: the bucket, the service account, Vertex AI, Cloud Logging."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from cloudtrain.errors import CloudtrainError, UnreachableError
from cloudtrain.providers.questions import NO_JOB, Check, Question, Signed, Unknown
from cloudtrain.providers.reading import at, text
from cloudtrain.providers.vertex.endpoints import LOG_IN, VERTEX, Endpoints
from cloudtrain.providers.vertex.errors import Told, clean, message_of
from cloudtrain.settings import Settings

_KEY_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_VARIABLES = (_KEY_FILE, VERTEX)
_TIMEOUT = (3.0, 8.0)
"""To connect, and to hear something; seconds."""
_SECONDS = 10.0
_MODULES = (
    "google.api_core.retry", "google.auth", "google.auth.transport.requests", "google.cloud.logging",
    "google.cloud.aiplatform_v1.services.job_service", "google.cloud.storage",
)  # fmt: skip
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_IAM = "https://iam.googleapis.com/v1/projects/-/serviceAccounts"
_ACT_AS = "iam.serviceAccounts.actAs"
_WRITES = ("storage.objects.create", "storage.objects.get", "storage.objects.list", "storage.objects.delete")
_AREAS = {"US": "us-", "EU": "europe-", "ASIA": "asia-"}


class Google(NamedTuple):
    """The clients' maker, and who asks; None: nobody, of the emulator."""

    endpoints: Endpoints
    credentials: Any


def traces() -> Iterator[str]:
    """See ``check.Doctor``."""
    yield from (name for name in _VARIABLES if os.environ.get(name))
    if (file := _login_file()).is_file():
        yield str(file)


def load() -> None:
    """See ``check.Doctor``."""
    for name in _MODULES:
        import_module(name)


def sign_in(settings: Settings) -> Signed:
    """google.auth's own search, and one token, which is thrown away."""
    if where := os.environ.get(VERTEX):
        check = Check("credentials", "ok", f"none are needed: Vertex AI is emulated at {where} ({VERTEX})")
        return Signed((check,), Google(Endpoints(settings["project"], settings["region"]), None))
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    try:
        credentials, project = google.auth.default(scopes=[_SCOPE])
    except (GoogleAuthError, OSError, ValueError) as error:
        return Signed((Check("credentials", "problem", f"google.auth finds none: {message_of(error)}", LOG_IN),))
    found = f"{_who(credentials)}, {_source(credentials)}"
    project = f"; its own project is {project}" if project else ""
    flaw = _flaw_of(credentials)
    check = Check("credentials", "problem" if flaw else "ok", f"{found}{project}{flaw}", LOG_IN if flaw else "")
    endpoints = Endpoints(settings["project"], settings["region"], credentials=credentials)
    return Signed((check,), None if flaw else Google(endpoints, credentials))


def _who(credentials: Any) -> str:
    for name in ("service_account_email", "signer_email", "account"):
        if found := getattr(credentials, name, None):
            return clean(str(found))
    return f"a login ({type(credentials).__module__.rpartition('.')[2]})"


def _source(credentials: Any) -> str:
    if file := os.environ.get(_KEY_FILE):
        return f"from {file} ({_KEY_FILE})"
    if "compute_engine" in type(credentials).__module__:
        return "from this machine's metadata service"
    return f"from {_login_file()}" if _login_file().is_file() else "found by google.auth"


def _flaw_of(credentials: Any) -> str:
    """Whether they give a token; "" if so."""
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import Request

    try:
        credentials.refresh(partial(Request(), timeout=_SECONDS))
    except (GoogleAuthError, OSError, ValueError, TypeError) as error:
        return f"; they give no token: {message_of(error)}"
    return ""


def _login_file() -> Path:
    """Where gcloud puts its application default credentials."""
    given = os.environ.get("CLOUDSDK_CONFIG")
    windows = os.environ.get("APPDATA") if os.name == "nt" else None
    folder = Path(given) if given else Path(windows, "gcloud") if windows else Path("~/.config/gcloud").expanduser()
    return folder / "application_default_credentials.json"


def questions(settings: Settings, caller: Any, native: Mapping[str, Any] | None) -> Sequence[Question]:
    """See ``check.Doctor``."""
    google: Google = caller
    return (
        Question("bucket", lambda: _bucket(google, settings), ("project", "bucket", "region")),
        Question("writing", lambda: _writing(google, settings), ("project", "bucket")),
        Question("service account", lambda: _service_account(google, settings)),
        Question("Vertex AI", lambda: _service(google, settings), ("project", "region")),
        Question("Cloud Logging", lambda: _logging(google, settings), ("project",)),
        Question("image", lambda: _image(native)),
        Question("quota", _quota),
    )


def _bucket(google: Google, settings: Settings) -> Check:
    from google.api_core.exceptions import NotFound

    name, region = settings["bucket"], settings["region"]
    with Told(f"Cloud Storage (bucket {name})"):
        try:
            bucket = google.endpoints.store().get_bucket(name, timeout=_TIMEOUT, retry=None)
        except NotFound:
            how = f"gcloud storage buckets create gs://{name} --location={region}, or set vertex.bucket"
            return Check("bucket", "problem", f"there is no bucket gs://{name}", how)
        location = clean(str(bucket.location or ""))
    if location.lower() == region:
        return Check("bucket", "ok", f"gs://{name}, in {region}")
    if location in _AREAS and region.startswith(_AREAS[location]):
        return Check("bucket", "ok", f"gs://{name}, in {location}, of which {region} is a part")
    found = f"gs://{name} lies in {location or 'a place that is not said'}, and the settings' region is {region}"
    return Check("bucket", "problem", found, "set vertex.bucket or vertex.region: a bucket must be where the jobs run")


def _writing(google: Google, settings: Settings) -> Check:
    bucket = settings["bucket"]
    try:
        with Told(f"Cloud Storage (bucket {bucket})"):
            store = google.endpoints.store()
            allowed = store.bucket(bucket).test_iam_permissions(list(_WRITES), timeout=_TIMEOUT, retry=None)
    except CloudtrainError as error:
        raise Unknown(f"it needs {', '.join(_WRITES)} on gs://{bucket}; {error.message}") from None
    missing = [name for name in _WRITES if name not in allowed]
    if missing:
        how = f"ask for the role Storage Object Admin on gs://{bucket}"
        return Check("writing", "problem", f"these credentials lack {', '.join(missing)} on gs://{bucket}", how)
    return Check("writing", "ok", f"objects of gs://{bucket} may be written, read, listed and deleted")


def _service_account(google: Google, settings: Settings) -> Check:
    account = settings["service_account"]
    if not account:
        return Check("service account", "ok", "none is set: jobs run as Vertex AI's own for custom code")
    if google.credentials is None:
        raise Unknown(f"{account}: the emulator has no IAM")
    from google.auth.transport.requests import AuthorizedSession

    make: Any = AuthorizedSession
    with Told("IAM"), make(google.credentials) as session:
        url = f"{_IAM}/{account}:testIamPermissions"
        answer = session.post(url, json={"permissions": [_ACT_AS]}, timeout=_TIMEOUT)
        content = answer.json()
    if answer.status_code == 404:
        return Check("service account", "problem", f"there is no {account}", "make it, or set vertex.service_account")
    if answer.status_code != 200:
        raise Unknown(f"{account}: {clean(text(content, 'error', 'message')) or answer.status_code}")
    if _ACT_AS not in (at(content, "permissions") or ()):
        how = f"ask for the role Service Account User on {account}"
        return Check("service account", "problem", f"these credentials may not run jobs as {account}", how)
    return Check("service account", "ok", f"{account}, as which these credentials may run jobs")


def _service(google: Google, settings: Settings) -> Check:
    parent = f"projects/{settings['project']}/locations/{settings['region']}"
    with Told(f"Vertex AI ({google.endpoints.vertex})"):
        client = google.endpoints.job_service()
        client.list_custom_jobs(request={"parent": parent, "page_size": 1}, timeout=_SECONDS, retry=None)
    return Check("Vertex AI", "ok", f"answers, and lists the custom jobs of {parent}")


def _logging(google: Google, settings: Settings) -> Check:
    asked: dict[str, Any] = {
        "resourceNames": [f"projects/{settings['project']}"],
        "pageSize": 1,
        "orderBy": "timestamp desc",
    }
    asked["filter"] = 'resource.type="ml_job"'
    with Told("Cloud Logging"):
        call = google.endpoints.log_service().logging_api.api_request
        answer = call(method="POST", path="/entries:list", data=asked, timeout=_TIMEOUT)
    if not isinstance(answer, Mapping):
        raise UnreachableError("the answer of Cloud Logging makes no sense")
    return Check("Cloud Logging", "ok", f"answers, and lists the entries of {settings['project']}")


def _image(native: Mapping[str, Any] | None) -> Check:
    pools = at(native, "jobSpec", "workerPoolSpecs")
    uri = text(pools[0], "containerSpec", "imageUri") if isinstance(pools, list) and pools else ""
    if not uri:
        raise Unknown(NO_JOB)
    raise Unknown(f"{uri}: Vertex AI's service agent reads it, and whether that may is not to be asked from here")


def _quota() -> Check:
    raise Unknown("Google shows quotas of custom training only to who has switched on a further API; "
                  "see the console: IAM & Admin, Quotas, Vertex AI, Custom model training")  # fmt: skip
