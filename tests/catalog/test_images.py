"""Which image a job gets, and SageMaker's held against what AWS's own SDK says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cloudtrain.catalog.images import Image, NoImage, image_for
from cloudtrain.catalog.instances import Instance, instances, rows_of
from tests.catalog.test_data import installed
from tests.local.project import require

AWS = "763104351884.dkr.ecr.eu-west-1.amazonaws.com"


def machine(provider: str, name: str) -> Instance:
    return rows_of(provider, name)[-1]


def sagemaker(name: str = "ml.g5.xlarge", torch: str | None = None, region: str = "eu-west-1") -> Image:
    return image_for("sagemaker", region=region, torch=torch, instance=machine("sagemaker", name))


def vertex(name: str = "a2-ultragpu-8g", torch: str | None = None, region: str = "us-central1") -> Image:
    return image_for("vertex", region=region, torch=torch, instance=machine("vertex", name))


def azureml(name: str = "Standard_NC24ads_A100_v4", torch: str | None = None) -> Image:
    return image_for("azureml", region="westeurope", torch=torch, instance=machine("azureml", name))


ASK_THE_SDK = """
import json, logging
from botocore.loaders import JSONFileLoader
from sagemaker.core import image_uris

logging.disable(logging.CRITICAL)
read, kept = JSONFileLoader.load_file, {}
# botocore reads its endpoints anew for each of 800 questions; keep what was read.
JSONFileLoader.load_file = lambda self, path: kept[path] if path in kept else kept.setdefault(path, read(self, path))

said = []
for version, row in image_uris.config_for_framework("pytorch")["training"]["versions"].items():
    if tuple(map(int, version.split("."))) >= (2, 1):
        for region in row["registries"]:
            for instance in ("ml.g5.xlarge", "ml.m5.large"):
                uri = image_uris.retrieve("pytorch", region, version=version, instance_type=instance,
                                          image_scope="training")
                said.append([version, region, instance, uri])
print(json.dumps(said))
"""


def ours() -> Iterator[tuple[str, str, str, str]]:
    """The same table out of what we answer: every version and region we answer with the older repository."""
    from cloudtrain.catalog.tables import rows

    for version in [row["torch"] for row in rows("images_sagemaker") if row["repository"] == "pytorch-training"]:
        for region in [row["region"] for row in rows("accounts_sagemaker")]:
            for instance in ("ml.g5.xlarge", "ml.m5.large"):
                try:
                    yield version, region, instance, sagemaker(instance, version, region).uri
                except NoImage:
                    pass


def test_sagemaker_images_are_those_of_aws_s_own_sdk() -> None:
    require(installed("sagemaker.core"), "the sagemaker package is not installed")
    done = subprocess.run([sys.executable, "-c", ASK_THE_SDK], capture_output=True, text=True, check=True, timeout=300)
    said = {tuple(answer) for answer in json.loads(done.stdout)}
    assert len(said) > 800
    assert set(ours()) == said


def test_sagemaker_default() -> None:
    image = sagemaker()
    assert (image.uri, image.torch) == (f"{AWS}/pytorch-training:2.10.0-gpu-py313", "2.10.0")
    assert image.reason == "newest torch whose registry account is known: 2.10.0"
    assert (image.notes, image.conda) == ((), None)
    assert sagemaker("ml.m5.large").uri == f"{AWS}/pytorch-training:2.10.0-cpu-py313"


@pytest.mark.parametrize("torch", ["2.8", "2.8.0"])
def test_sagemaker_short_and_long_versions_pick_the_same_pinned_image(torch: str) -> None:
    image = sagemaker(torch=torch)
    assert (image.uri, image.torch) == (f"{AWS}/pytorch-training:2.8.0-gpu-py312", "2.8.0")
    assert image.notes == ("patches of this image ended 2026-08-06",)


@pytest.mark.parametrize(
    ("torch", "gpu", "cpu"),
    [
        ("2.11", "2.11-cu130-amzn2023-sagemaker", "2.11-cpu-amzn2023-sagemaker"),
        ("2.12.1", "2.12-cu130-amzn2023-sagemaker", "2.12-cpu-amzn2023-sagemaker"),
        ("2.13", "2.13-cu133-amzn2023-sagemaker", "2.13-cpu-amzn2023-sagemaker"),
    ],
)
def test_sagemaker_images_of_the_new_repository(torch: str, gpu: str, cpu: str) -> None:
    image = sagemaker(torch=torch)
    assert image.uri == f"{AWS}/pytorch:{gpu}"
    assert image.notes == ("the account of the repository 'pytorch' is presumed to be that of AWS's older images",)
    assert sagemaker("ml.m5.large", torch).uri == f"{AWS}/pytorch:{cpu}"


def test_china_has_its_own_suffix() -> None:
    assert sagemaker(region="cn-north-1").uri.startswith("727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/")


def test_v100_gets_an_image_that_surely_serves_it() -> None:
    image = sagemaker("ml.p3.2xlarge")
    assert image.uri == f"{AWS}/pytorch-training:2.6.0-gpu-py312"
    assert image.reason == "newest torch that surely serves V100-16GB: 2.6.0, built with CUDA 12.6"
    assert "whether this image's build has it is not known" in sagemaker("ml.p3.2xlarge", "2.8").notes[-1]
    # Without a GPU there is nothing to doubt.
    assert len(sagemaker("ml.m5.large", "2.8").notes) == 1


@pytest.mark.parametrize(
    ("name", "torch", "region", "text"),
    [
        ("ml.g5.xlarge", "2.0", "eu-west-1", "SageMaker has no image with torch 2.0 here; it has 2.1.0, 2.2.0"),
        ("ml.g5.xlarge", "2.8.1", "eu-west-1", "2.12.1 or 2.13.0: name one in environment.image"),
        ("ml.g5.xlarge", "2.8+cu126", "eu-west-1", "SageMaker has no image with torch 2.8+cu126 here"),
        ("ml.g5.xlarge", "2.8", "us-iso-east-1", "SageMaker has no image with torch 2.8 here; it has 2.1.0"),
        ("ml.g5.xlarge", None, "eu-wst-1", "for the region 'eu-wst-1', did you mean 'eu-west-1'?"),
        ("ml.p3.2xlarge", "2.10", "eu-west-1",
         "torch 2.10.0: V100-16GB needs an image before CUDA 13.0 and this one has 13.0; it is served by 2.1.0,"),
        ("ml.p6-b200.48xlarge", "2.6", "eu-west-1",
         "torch 2.6.0: B200 needs CUDA 12.8 or later and this image has 12.6; it is served by 2.7.1, 2.8.0"),
        ("ml.trn1.32xlarge", None, "eu-west-1", "Trainium: it is driven by Neuron"),
    ],
)  # fmt: skip
def test_sagemaker_refusals(name: str, torch: str | None, region: str, text: str) -> None:
    with pytest.raises(NoImage) as caught:
        sagemaker(name, torch, region)
    assert text in str(caught.value)
    assert "environment.image" in str(caught.value)


@pytest.mark.parametrize(
    ("region", "host"),
    [("us-central1", "us"), ("europe-west4", "europe"), ("asia-southeast1", "asia"), ("northamerica-northeast1", "us"),
     ("southamerica-east1", "us"), ("australia-southeast1", "asia"), ("me-west1", "europe"),
     ("africa-south1", "europe")],
)  # fmt: skip
def test_vertex_images_come_from_the_region_s_family(region: str, host: str) -> None:
    uri = f"{host}-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"
    assert vertex(region=region).uri == uri


def test_vertex_default_is_past_its_end_and_says_so() -> None:
    image = vertex()
    assert image.torch == "2.4"
    assert "availability of this image ended 2026-07-24" in image.notes[0]
    assert "build one of your own and name it in environment.image" in image.notes[0]
    assert vertex("n1-highmem-8").uri.endswith("pytorch-gpu.2-4.py310:latest")
    assert vertex("e2-standard-4").uri == "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest"
    assert "2026-04-24" in vertex(torch="2.3").notes[0]


@pytest.mark.parametrize(
    ("name", "torch", "region", "text"),
    [
        ("a2-ultragpu-8g", "2.8", "us-central1", "Google has no prebuilt image with torch 2.8; it has 2.2, 2.3 or 2.4"),
        ("a2-ultragpu-8g", "2.4.1", "us-central1", "no patch release published"),
        ("e2-standard-4", "2.2", "us-central1", "it has 2.3 or 2.4"),
        ("a4-highgpu-8g", None, "us-central1", "B200 needs CUDA 12.8 or later and this image has 12"),
        ("a2-ultragpu-8g", None, "mars-1", "for the region 'mars-1'; regions begin with us-, northamerica-"),
    ],
)
def test_vertex_refusals(name: str, torch: str | None, region: str, text: str) -> None:
    with pytest.raises(NoImage) as caught:
        vertex(name, torch, region)
    assert text in str(caught.value)


@pytest.mark.parametrize("torch", [None, "2.8", "2.8.0"])
def test_azureml_gpu_default_is_the_curated_image(torch: str | None) -> None:
    image = azureml(torch=torch)
    assert image.uri == "mcr.microsoft.com/azureml/curated/acpt-pytorch-2.8-cuda12.6:1"
    assert (image.torch, image.notes, image.conda) == ("2.8", (), None)


def test_azureml_cpu_builds_on_a_base_image() -> None:
    image = azureml("Standard_D2s_v5")
    assert (image.uri, image.torch) == ("mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04", "2.8.0")
    assert image.conda == {
        "name": "cloudtrain",
        "channels": ["conda-forge"],
        "dependencies": [
            "python=3.11",
            "pip",
            {"pip": ["--extra-index-url https://download.pytorch.org/whl/cpu", "torch==2.8.0+cpu", "numpy==1.26.4"]},
        ],
    }
    assert image.notes[0].startswith("the base image carries no fixed version")
    assert azureml("Standard_D2s_v5", "2.13").torch == "2.13.0"


@pytest.mark.parametrize(
    ("torch", "image", "wheel"),
    [
        ("2.4", "openmpi5.0-cuda12.4-ubuntu22.04:latest", "torch==2.4.0+cu124"),
        ("2.5.1", "openmpi5.0-cuda12.4-ubuntu22.04:latest", "torch==2.5.1+cu124"),
        ("2.6", "openmpi5.0-cuda12.6-ubuntu24.04:latest", "torch==2.6.0+cu126"),
        ("2.10", "openmpi5.0-cuda12.6-ubuntu24.04:latest", "torch==2.10.0+cu126"),
    ],
)
def test_azureml_gpu_with_another_torch(torch: str, image: str, wheel: str) -> None:
    found = azureml(torch=torch)
    assert found.uri == f"mcr.microsoft.com/azureml/{image}"
    assert found.conda is not None
    assert found.conda["dependencies"][2]["pip"][1] == wheel


@pytest.mark.parametrize(
    ("name", "torch", "text"),
    [
        ("Standard_NC24ads_A100_v4", "2.3", "releases from 2.4 to below 2.15 can be had"),
        ("Standard_D2s_v5", "2.0", "releases from 2.1 to below 2.15 can be had"),
        ("Standard_D2s_v5", "2.99", "no image for Azure ML is known with torch 2.99"),
        ("Standard_D2s_v5", "2.8.0a1", "no image for Azure ML is known with torch 2.8.0a1"),
        ("Standard_ND96isr_MI300X_v5", None, "MI300X: it is driven by ROCm"),
        ("Standard_ND128isr_NDR_GB200_v6", None, "GB200: its host is an Arm machine"),
    ],
)
def test_azureml_refusals(name: str, torch: str | None, text: str) -> None:
    with pytest.raises(NoImage) as caught:
        azureml(name, torch)
    assert text in str(caught.value)


def test_a_machine_that_is_not_in_the_catalogue_gets_no_guess() -> None:
    """AWS's own lookup gives ml.nope.xlarge the CPU image; we say that it is not known."""
    with pytest.raises(NoImage, match="the machine type is not in the catalogue"):
        image_for("sagemaker", region="eu-west-1", torch=None, instance=None)


REGIONS = {"sagemaker": "us-east-1", "vertex": "us-central1", "azureml": "eastus"}
NO_DEFAULT = {"Trainium", "MI300X", "GB200"}
NO_DEFAULT_ON_VERTEX = {"B200", "RTX-PRO-6000"}


@pytest.mark.parametrize("provider", REGIONS)
def test_every_machine_has_a_default_or_a_reason(provider: str) -> None:
    without = set()
    for row in instances(provider):
        try:
            image = image_for(provider, region=REGIONS[provider], torch=None, instance=row)
        except NoImage as error:
            assert "environment.image" in str(error)
            without.add(row.accelerator)
        else:
            assert image.uri.count(":") == 1 or provider == "azureml"
    assert without <= NO_DEFAULT | (NO_DEFAULT_ON_VERTEX if provider == "vertex" else set())
