"""The way out: files and commands with which gcloud, or curl, submits the same CustomJob.

config.yaml      the CustomJobSpec, for ``gcloud ai custom-jobs create --config``; name, labels and key are its flags
custom-job.json  the whole CustomJob, for the REST API
rest.sh          sends that with curl
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.base import Export
from cloudtrain.providers.reading import section, text
from cloudtrain.providers.written import as_yaml

if TYPE_CHECKING:
    from cloudtrain.providers.base import Request, Shipped

CONFIG, WHOLE, REST = "config.yaml", "custom-job.json", "rest.sh"
_LONGEST_LABEL = 63
"""Characters that gcloud takes; the service itself takes one more."""


def export(request: Request) -> Export:
    """The files and commands."""
    project, region = request.account["project"], request.account["region"]
    files = {
        CONFIG: as_yaml(section(request.native, "jobSpec")),
        WHOLE: json.dumps(request.native, indent=2, ensure_ascii=False) + "\n",
        REST: _rest(project, region),
    }
    return Export(files, (*map(_upload, request.ships), _create(request.native, project, region)))


def _upload(ship: Shipped) -> str:
    """rsync fills just that folder; cp would make one below it if the folder is there already."""
    if ship.source and Path(ship.source).is_file():
        return f"gcloud storage cp {shlex.quote(ship.source)} {shlex.quote(ship.to)}"
    return (
        f"gcloud storage rsync --recursive {shlex.quote(ship.source or ship.kind)} {shlex.quote(ship.to.rstrip('/'))}"
    )


def _create(native: Mapping[str, Any], project: str, region: str) -> str:
    labels = section(native, "labels")
    if any(len(str(part)) > _LONGEST_LABEL for label in labels.items() for part in label):
        return f"sh {REST}"
    flags = [f"--project={project}", f"--region={region}", f"--display-name={text(native, 'displayName')}"]
    if labels:
        flags.append("--labels=" + ",".join(f"{key}={value}" for key, value in labels.items()))
    if key := text(native, "encryptionSpec", "kmsKeyName"):
        flags.append(f"--kms-key={key}")
    return " \\\n  ".join(["gcloud ai custom-jobs create", *map(shlex.quote, flags), f"--config={CONFIG}"])


def _rest(project: str, region: str) -> str:
    url = f"https://{region}-aiplatform.googleapis.com/v1/projects/{project}/locations/{region}/customJobs"
    return "\n".join(
        [
            "#!/bin/sh",
            "# The same job by the REST API, in place of the last command of submit.sh: the uploads come first.",
            "set -eu",
            'CDPATH= cd -- "${0%"${0##*/}"}."',
            "curl --fail-with-body --silent --show-error \\",
            '  --header "Authorization: Bearer $(gcloud auth print-access-token)" \\',
            '  --header "Content-Type: application/json; charset=utf-8" \\',
            f"  --data-binary @{WHOLE} {shlex.quote(url)}",
            "",
        ]
    )
