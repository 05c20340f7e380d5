"""What no provider can use: odd places and machine names; and vendors' packages that are broken, or have no place."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.spec.problems import JobFileError
from tests.local.project import require
from tests.providers.contexts import PROVIDERS, context

ROOTS = {"sagemaker": "s3://bucket/", "vertex": "gs://bucket/", "azureml": "azureml://datastores/d/paths/"}
PACKAGES = {"sagemaker": "botocore", "vertex": "google.cloud.aiplatform_v1", "azureml": "azure.ai.ml"}
BREAKS = """
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise TypeError("Descriptors cannot be created directly.")
sys.meta_path.insert(0, Broken())
"""


def needed(provider: str) -> None:
    package = importlib.util.find_spec(PACKAGES[provider].partition(".")[0])
    require(package is not None, f"needs the package of {provider}")


def refused(provider: str, **fields: Any) -> list[str]:
    job = Job(name="digits", entry="train.py", **fields)
    with pytest.raises(JobFileError) as raised:
        registry.translate(job, context(job, provider))
    found = [str(problem) for problem in raised.value.problems]
    assert all(text.isprintable() for text in found)
    return found


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("a/../../b/", ". or .. step"),
        ("./a/", ". or .. step"),
        ("a/..", ". or .. step"),
        ("a\rb/", "control character"),
        ("a\x7fb/", "control character"),
        ("a\u2028b/", "control character"),
        ("ü" * 501 + "/", "at most"),
    ],
)
def test_a_place_that_is_no_folder_everywhere_is_refused_wherever_it_stands(
    provider: str, path: str, said: str
) -> None:
    uri = {provider: ROOTS[provider] + path}
    found = refused(provider, data={"d": {"uri": uri}}, outputs={"o": uri}, checkpoint={"uri": uri})
    for key in ("data.d.uri", "outputs.o", "checkpoint.uri"):
        assert [text for text in found if text.startswith(f"{key}.{provider}: ") and said in text], (key, found)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("path", ["a b/", "a.b/..c/.d/e../", "ü/漢/", "'\"`\\$(x)/", "..."])
def test_odd_places_that_are_folders_are_taken(provider: str, path: str) -> None:
    job = Job(name="digits", entry="train.py", data={"d": {"uri": {provider: ROOTS[provider] + path}}})
    registry.translate(job, context(job, provider))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "a b", "a,b", "$(x)", "ü", "x" * 101, "-x"])
def test_what_is_no_machine_type_is_refused(provider: str, name: str) -> None:
    (text,) = refused(provider, resources={"instance": {provider: name}})
    assert text.startswith(f"resources.instance.{provider}: ")
    assert text.endswith("is no name of a machine type")


def test_checkpoints_leave_room_for_the_folder_of_the_run() -> None:
    """1024 characters, SageMaker's limit, with the longest name of a job and the number of its last run (-999)."""
    fits = "s3://bucket/" + "x" * (1024 - 12 - 1 - 56)
    job = Job(name="a" * 40, entry="train.py", checkpoint={"uri": fits})
    made = registry.translate(job, context(job, "sagemaker")).native
    assert len(made["CheckpointConfig"]["S3Uri"]) == 1024 - len("-999")
    assert "at most 968" in refused("sagemaker", checkpoint={"uri": fits + "x"})[0]


def test_names_that_make_too_long_variables_are_refused() -> None:
    """512 characters, SageMaker's limit, with our own beginning of the variable's name."""
    assert "at most 512" in refused("sagemaker", environment={"secrets": {"s" * 492: "name"}})[0]
    assert "at most 512" in refused("sagemaker", outputs={"o" * 495: "s3://bucket/o/"})[0]


def test_a_wait_of_thousands_of_years_cannot_be_sent() -> None:
    assert "at most 2147483647 s" in refused("sagemaker", spot={"enabled": True, "max_wait": "5000000d"})[0]


def test_a_checkpoint_lies_where_the_next_attempt_finds_it() -> None:
    uri = "azureml://datastores/d/paths/${{name}}/"
    assert "the next attempt" in refused("azureml", checkpoint={"uri": {"azureml": uri}})[0]


def validated(folder: Path, provider: str, **environ: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").touch()
    file = folder / "job.yaml"
    file.write_text("name: digits\nentry: train.py\n")
    program = "from cloudtrain.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, "validate", str(file), "--provider", provider],
        env={**os.environ, **environ}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_vendors_package_that_is_broken_skips_its_check_and_says_why(tmp_path: Path, provider: str) -> None:
    needed(provider)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(BREAKS.format(name=PACKAGES[provider]))
    done = validated(tmp_path, provider, PYTHONPATH=str(site))
    assert done.returncode == 0, done.stderr
    assert "cannot be loaded ('TypeError: Descriptors cannot be created directly.')" in done.stderr
    assert f"pip install 'cloudtrain[{provider}]'" in done.stderr


def test_no_place_for_the_file_that_azure_reads_is_no_fault_of_the_job(tmp_path: Path) -> None:
    needed("azureml")
    program = (
        "import tempfile; tempfile.tempdir = '/proc/nowhere'; from cloudtrain.providers import registry;"
        "registry.check('azureml', {})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert "MissingError: cannot write to /proc/nowhere: No such file or directory" in done.stderr
    assert "Set TMPDIR" in done.stderr


@pytest.mark.parametrize(
    ("provider", "overrides", "said"),
    [
        ("sagemaker", {"AlgorithmSpecification": {"TrainingImage": "http://x/y"}}, "is no image reference"),
        ("sagemaker", {"CheckpointConfig": {"LocalPath": "ckpt"}}, "is no folder of the container"),
        ("sagemaker", {"CheckpointConfig": {"LocalPath": "/opt/../opt/ml/model"}}, "is no folder of the container"),
        ("sagemaker", {"ResourceConfig": {"VolumeSizeInGB": 10**299}}, "at most 2147483647"),
        (
            "sagemaker",
            {"InputDataConfig": {"2": {"DataSource": {"S3DataSource": {"InstanceGroupNames": [[]]}}}}},
            "must be text, not []",
        ),
        ("vertex", {"jobSpec": {"workerPoolSpecs": {"*": {"diskSpec": {"bootDiskSizeGb": 99.0}}}}}, "is 99; must be"),
        ("azureml", {"environment": {"conda_file": {"dependancies": ["x"]}}}, "did you mean 'dependencies'?"),
        ("azureml", {"environment": {"conda_file": {"channels": "x"}}}, "must be a list of names, not 'x'"),
        (
            "vertex",
            {"jobSpec": {"workerPoolSpecs": {"*": {"machineSpec": {"machineType": "a\nb"}}}}},
            "no name of a machine",
        ),
    ],
)
def test_overrides_of_no_use_are_told_and_are_no_fault_of_ours(provider: str, overrides: Any, said: str) -> None:
    needed(provider)
    job = Job(
        name="digits",
        entry="train.py",
        data={"d": {"uri": {provider: ROOTS[provider] + "d/"}}},
        overrides={provider: overrides},
    )
    found = registry.check(provider, registry.translate(job, context(job, provider)).native)
    assert [str(problem) for problem in found.problems if said in str(problem)], found


def test_overrides_cannot_change_how_nodes_get_the_code_and_the_spec() -> None:
    (text,) = refused(
        "sagemaker",
        overrides={
            "sagemaker": {"InputDataConfig": {"1": {"DataSource": {"S3DataSource": {"S3DataType": "ManifestFile"}}}}}
        },
    )
    assert text.startswith("overrides.sagemaker.InputDataConfig: lost cloudtrain_spec")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("image", ["$(x)", "-x", "x/", "ü", "http://x/y", "a b", "a:b:c"])
def test_what_is_no_image_is_refused(provider: str, image: str) -> None:
    (text,) = refused(provider, environment={"image": {provider: image}})
    assert text.startswith(f"environment.image.{provider}: ")
