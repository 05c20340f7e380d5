"""The shortest program on the lower level of SageMaker's own SDK that makes the same job; the code is there already."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from sagemaker.core.resources import TrainingJob


def named(name: str) -> str:
    """Its functions want the API's names in small letters."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def plain(value: Any) -> Any:
    """All names of a request so, but those of its variables."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {named(key): item if key == "Environment" else plain(item) for key, item in value.items()}
    return value


request = json.loads(Path(sys.argv[1]).read_text())["request"]
print(TrainingJob.create(**plain(request)).training_job_arn)
