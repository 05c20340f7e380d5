"""The way out: Google's types and, where it is installed, gcloud itself read what is written.

The flags are those of ``gcloud ai custom-jobs create`` as gcloud 578.0.0 defines them
(googlecloudsdk/command_lib/ai/custom_jobs/flags.py).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloudtrain.providers import registry
from cloudtrain.providers.base import Request
from tests.providers.vertex.jobs import CPU, GPU, google_types, requested

FLAGS = {
    "--args", "--command", "--config", "--display-name", "--enable-dashboard-access", "--enable-web-access",
    "--kms-key", "--kms-keyring", "--kms-location", "--kms-project", "--labels", "--network",
    "--persistent-resource-id", "--project", "--python-package-uris", "--region", "--service-account",
    "--worker-pool-spec",
}  # fmt: skip
KEY = "projects/keys/locations/europe-west4/keyRings/r/cryptoKeys/k"
# Text that some version of YAML, or a shell, takes for something else.
ODD = {
    "FLOAT": "1e3", "BOOL": "no", "SHORT": "y", "NULL": "~", "OCTAL": "0o17", "TIME": "12:30:45", "DATE": "2020-01-01",
    "EMPTY": "", "QUOTES": "it's \"so\" \\n", "SPACE": " a\tb\n c ", "LINE": "a\u2028b\u0085c\x7f", "FACE": "🙂 漢",
    "SHELL": "$(id) `id` ${HOME} ; & | > #", "YAML": "*a &b !c %d @e", "DASH": "- a: b",
}  # fmt: skip


def everything() -> Request:
    return requested(
        GPU,
        {"kms_key": KEY, "network": "projects/1/global/networks/n"},
        environment={"env": ODD},
        tags={"team": "vision", "größe": "l"},
        overrides={"vertex": {"jobSpec": {"enableWebAccess": True}}},
    )


def flags(command: str) -> dict[str, str]:
    words = shlex.split(command.replace("\\\n", ""))
    return {name: value for name, _, value in (word.partition("=") for word in words[4:])}


def test_the_config_is_the_spec_as_google_reads_it() -> None:
    request = everything()
    text = registry.export(request).files["config.yaml"]
    assert "&" not in text.replace(ODD["SHELL"], "").replace(ODD["YAML"], ""), "no aliases"
    assert yaml.safe_load(text) == request.native["jobSpec"]
    read = google_types().CustomJobSpec.from_json(json.dumps(yaml.safe_load(text)), ignore_unknown_fields=False)
    found = {item.name: item.value for item in read.worker_pool_specs[1].container_spec.env}
    assert {name: found[name] for name in ODD if "$" not in ODD[name]} == {
        name: value for name, value in ODD.items() if "$" not in value
    }


def test_what_no_config_holds_is_a_flag() -> None:
    request = everything()
    *uploads, create = registry.export(request).commands
    assert create.split()[:4] == ["gcloud", "ai", "custom-jobs", "create"]
    given = flags(create)
    assert set(given) <= FLAGS
    assert given["--project"] == "my-project"
    assert given["--region"] == "europe-west4"
    assert given["--display-name"] == request.name
    assert given["--kms-key"] == KEY
    assert given["--config"] == "config.yaml"
    assert dict(pair.split("=") for pair in given["--labels"].split(",")) == request.native["labels"]
    assert [shlex.split(upload)[:4] for upload in uploads] == [["gcloud", "storage", "rsync", "--recursive"]] * 2
    targets = {shlex.split(upload)[4]: f"{shlex.split(upload)[5]}/" for upload in uploads}
    assert targets == {ship.kind: ship.to for ship in request.ships}


def test_the_rest_form_is_the_request_and_goes_to_its_region() -> None:
    request = everything()
    files = registry.export(request).files
    assert json.loads(files["custom-job.json"]) == request.native
    where = "https://europe-west4-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west4/customJobs"
    assert where in shlex.split(files["rest.sh"], comments=True)
    assert subprocess.run(["sh", "-n"], input=files["rest.sh"], text=True, check=False).returncode == 0


def test_a_label_that_gcloud_refuses_goes_by_rest() -> None:
    request = requested(CPU, tags={"long": "v" * 64})
    assert registry.export(request).commands[-1] == "sh rest.sh"


@pytest.fixture
def service() -> Iterator[tuple[str, list[Any]]]:
    """A server that takes any custom job, and what it was sent."""
    sent: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            answer = json.dumps({**sent[-1][1], "name": "projects/1/locations/europe-west4/customJobs/2"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", sent
    server.shutdown()
    thread.join()
    server.server_close()


def test_gcloud_sends_the_same_job(service: tuple[str, list[Any]], tmp_path: Path) -> None:
    """The real gcloud, with no account, against a server of ours."""
    if shutil.which("gcloud") is None:  # in no package registry, so that CI cannot be asked to have it
        pytest.skip("gcloud is not installed")
    endpoint, sent = service
    request = everything()
    export = registry.export(request)
    for name, text in export.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    env = {
        **os.environ,
        "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": endpoint,
    }
    done = subprocess.run(
        ["sh", "-c", export.commands[-1]], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    ((path, body),) = sent
    assert path.startswith("/v1/projects/my-project/locations/europe-west4/customJobs")
    custom_job = google_types().CustomJob
    assert custom_job.from_json(json.dumps(body)) == custom_job.from_json(json.dumps(request.native))
