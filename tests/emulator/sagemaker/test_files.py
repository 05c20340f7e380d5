"""What lies where in a container, and what becomes of it: channels, checkpoints, artefacts; by S3's own client."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

import pytest

from tests.emulator.sagemaker.aws import BUCKET, Aws, channel, nodes, until

TELLS = """
import json, os, pathlib
root = pathlib.Path(os.environ["CLOUDTRAIN_SM_ROOT"])
data = root / "input/data"
print(json.dumps({
    "files": {name.name: sorted(str(f.relative_to(name)) for f in name.rglob("*") if f.is_file())
              for name in data.iterdir()},
    "env": {name: value for name, value in os.environ.items() if name != "PATH"},
    "config": {f.stem: json.loads(f.read_text()) for f in (root / "input/config").iterdir()},
}))
"""


def _told(aws: Aws, name: str) -> list[dict[str, Any]]:
    """What every node has printed, in the order of nodes."""
    job = aws.end(name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    return [json.loads(aws.lines(stream)[0]) for stream in aws.streams(name)]


def _files(told: list[dict[str, Any]], channel: str) -> list[list[str]]:
    return [node["files"][channel] for node in told]


def test_channels_hold_what_s3_matches(aws: Aws) -> None:
    for key in ("a", "b-2", "b/1", "b/2", "c/x/3", "folder/"):
        aws.put(f"data/set/{key}")
    aws.put("data/settled.csv")
    name = aws.submit(
        "channels",
        TELLS,
        ResourceConfig=nodes(2),
        InputDataConfig=[
            channel("code", "channels/code/"),
            channel("whole", "data/set/"),
            channel("shared", "data/set/", S3DataDistributionType="ShardedByS3Key"),
            channel("prefix", "data/set"),
            channel("one", "data/settled.csv"),
            channel("mounted", "data/set/b/", InputMode="FastFile"),
        ],
    )
    told = _told(aws, name)
    everything = ["a", "b-2", "b/1", "b/2", "c/x/3"]
    assert _files(told, "whole") == [everything, everything]
    assert _files(told, "shared") == [["a", "b/1", "c/x/3"], ["b-2", "b/2"]]  # every second one, by the order of keys
    assert _files(told, "prefix")[0] == [*everything, "settled.csv"]
    assert _files(told, "one")[0] == ["settled.csv"]
    assert _files(told, "mounted")[0] == ["1", "2"]
    assert told[1]["config"]["inputdataconfig"]["shared"]["S3DistributionType"] == "ShardedByS3Key"
    assert told[1]["config"]["inputdataconfig"]["mounted"]["TrainingInputMode"] == "File"


def test_a_manifest_names_its_objects(aws: Aws) -> None:
    aws.put("listed/x/1"), aws.put("listed/y"), aws.put("listed/z")
    aws.put("listed.json", json.dumps([{"prefix": f"s3://{BUCKET}/listed/"}, "x/1", "z"]))
    channels = [channel("code", "manifest/code/"), channel("some", "listed.json", S3DataType="ManifestFile")]
    assert _files(_told(aws, aws.submit("manifest", TELLS, InputDataConfig=channels)), "some") == [["x/1", "z"]]


def test_groups_of_machines_have_the_channels_that_name_them(aws: Aws) -> None:
    aws.put("for-b/1"), aws.put("for-b/2")
    groups = [
        {"InstanceType": "ml.m5.xlarge", "InstanceCount": count, "InstanceGroupName": name}
        for name, count in (("a", 1), ("b", 2))
    ]
    shared = {"S3DataDistributionType": "ShardedByS3Key", "InstanceGroupNames": ["b"]}
    channels = [channel("code", "groups/code/", InstanceGroupNames=["a", "b"]), channel("some", "for-b/", **shared)]
    resources = {"InstanceGroups": groups, "VolumeSizeInGB": 30}
    told = _told(aws, aws.submit("groups", TELLS, ResourceConfig=resources, InputDataConfig=channels))
    assert [node["files"].get("some") for node in told] == [None, ["1"], ["2"]]


def test_a_container_has_its_variables_and_a_way_to_aws(aws: Aws) -> None:
    (told,) = _told(aws, aws.submit("variables", TELLS, Environment={"MY_OWN": "1"}, HyperParameters={"lr": "0.1"}))
    assert told["env"]["MY_OWN"] == "1"
    assert told["env"]["TRAINING_JOB_NAME"] == "variables"
    assert told["env"]["TRAINING_JOB_ARN"] == aws.describe("variables")["TrainingJobArn"]
    assert told["env"]["AWS_ENDPOINT_URL"] == aws.url
    assert told["config"]["hyperparameters"] == {"lr": "0.1"}
    assert told["config"]["resourceconfig"]["current_host"] == "algo-1"
    (cut_off,) = _told(aws, aws.submit("cut-off", TELLS, EnableNetworkIsolation=True))
    assert "AWS_ENDPOINT_URL" not in cut_off["env"]


@pytest.mark.parametrize(
    ("prefix", "key"),
    [("up/", "up/../../../x"), ("twice/", "twice//x"), ("long/", "long/" + "x" * 300), ("both/", "both/x/y")],
)
def test_keys_that_are_no_paths_fail_the_job(aws: Aws, prefix: str, key: str) -> None:
    aws.put(key)
    if prefix == "both/":
        aws.put("both/x")
    name = f"keys-{prefix.strip('/')}"
    job = aws.end(aws.submit(name, TELLS, InputDataConfig=[channel("code", f"{name}/code/"), channel("bad", prefix)]))
    assert job["FailureReason"].startswith("ClientError: Data download failed:Failed to download data.")
    assert [word["Status"] for word in job["SecondaryStatusTransitions"]] == ["Starting", "Downloading", "Failed"]


KEEPS = """
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["CLOUDTRAIN_SM_ROOT"], "checkpoints")
print(sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()))
host = len(os.environ["TRAINING_JOB_NAME"])
(folder / "deep").mkdir(exist_ok=True)
(folder / "deep/new").write_text("1")
(folder / "old").unlink()
while not pathlib.Path(os.environ["GO"]).exists():
    time.sleep(0.05)
(folder / "deep/new").write_text("22")
(folder / "last").write_text("3")
"""


def test_checkpoints_are_kept_in_step(aws: Aws, tmp_path: Any) -> None:
    aws.put("keeps/kept/old"), aws.put("keeps/kept/other/file")
    kept = {"S3Uri": f"s3://{BUCKET}/keeps/kept"}
    go = tmp_path / "go"
    name = aws.submit("keeps", KEEPS, CheckpointConfig=kept, Environment={"GO": str(go)})
    until(lambda: aws.keys("keeps/kept/") == ["keeps/kept/deep/new", "keeps/kept/other/file"], "it is in step")
    assert aws.describe(name)["SecondaryStatus"] == "Training"
    aws.put("keeps/kept/from-outside")
    go.touch()
    assert aws.end(name)["TrainingJobStatus"] == "Completed"
    assert aws.keys("keeps/kept/") == [
        f"keeps/kept/{key}" for key in ("deep/new", "from-outside", "last", "other/file")
    ]
    assert aws.read("keeps/kept/deep/new") == b"22"
    assert aws.lines(aws.streams(name)[0]) == ["['old', 'other/file']"]


LEAVES = """
import json, os, pathlib
root = pathlib.Path(os.environ["CLOUDTRAIN_SM_ROOT"])
host = json.loads((root / "input/config/resourceconfig.json").read_text())["current_host"]
for folder in ("model", "output/data"):
    place = root / folder
    (place / "deep").mkdir(parents=True, exist_ok=True)
    (place / "deep" / host).write_text(folder)
    (place / "same").write_text(host)
os.mkfifo(root / "model/pipe")
(root / "model/link").symlink_to("same")
(root / "output/not-data").write_text("")
"""


def _archive(content: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {
            member.name: member.linkname or tar.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in tar.getmembers()
        }


def test_what_all_nodes_leave_is_merged(aws: Aws) -> None:
    aws.end(aws.submit("leaves", LEAVES, ResourceConfig=nodes(2)))
    assert aws.keys("leaves/leaves/") == ["leaves/leaves/output/model.tar.gz", "leaves/leaves/output/output.tar.gz"]
    model = _archive(aws.read("leaves/leaves/output/model.tar.gz"))
    assert model == {"deep/algo-1": "model", "deep/algo-2": "model", "link": "same", "same": "algo-1"}
    output = _archive(aws.read("leaves/leaves/output/output.tar.gz"))
    assert output == {"deep/algo-1": "output/data", "deep/algo-2": "output/data", "same": "algo-1"}


def test_without_compression_files_are_left_as_they_are(aws: Aws) -> None:
    output = {"S3OutputPath": f"s3://{BUCKET}/plain/", "CompressionType": "NONE"}
    job = aws.end(aws.submit("plain", LEAVES, OutputDataConfig=output))
    assert aws.keys("plain/plain/output/model/") == [
        f"plain/plain/output/model/{key}" for key in ("deep/algo-1", "link", "same")
    ]
    assert job["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://{BUCKET}/plain/plain/output/model/"


def test_a_result_that_has_no_place_fails_the_job(aws: Aws) -> None:
    job = aws.end(aws.submit("nowhere", LEAVES, OutputDataConfig={"S3OutputPath": "s3://no-bucket/x"}))
    assert job["FailureReason"].startswith(
        "ClientError: Artifact upload failed:Unable to upload file to s3://no-bucket/"
    )
    assert [word["Status"] for word in job["SecondaryStatusTransitions"]][-2:] == ["Uploading", "Failed"]


def test_what_no_container_can_start_fails_the_job(aws: Aws) -> None:
    algorithm = {
        "TrainingImage": "763104351884.dkr.ecr.eu-west-1.amazonaws.com/xgboost:1",
        "TrainingInputMode": "File",
    }
    job = aws.end(aws.submit("image-alone", TELLS, AlgorithmSpecification=algorithm))
    assert "entry point names none" in job["FailureReason"]


TANGLES = """
import os, pathlib, shutil, sys
root = pathlib.Path(os.environ["CLOUDTRAIN_SM_ROOT"])
for place in ("model", "checkpoints"):
    shutil.rmtree(root / place)
    (root / place).symlink_to("/")
(root / "output/data/loop").symlink_to(".")
os.mkfifo(root / "output/failure")
sys.exit(int(os.environ["CODE"]))
"""


@pytest.mark.parametrize(("code", "status"), [("0", "Completed"), ("1", "Failed")])
def test_links_to_this_machine_are_not_followed(aws: Aws, code: str, status: str) -> None:
    aws.put("tangles/kept/old")
    job = aws.end(
        aws.submit(
            f"tangles-{code}", TANGLES, Environment={"CODE": code},
            CheckpointConfig={"S3Uri": f"s3://{BUCKET}/tangles/kept"},
        )
    )  # fmt: skip
    assert job["TrainingJobStatus"] == status
    assert job.get("FailureReason") in (None, "AlgorithmError: exit code: 1")
    assert aws.keys("tangles/kept/") == ["tangles/kept/old"]
    if code == "0":
        assert aws.keys("tangles-0/tangles-0/") == ["tangles-0/tangles-0/output/output.tar.gz"]
        assert _archive(aws.read("tangles-0/tangles-0/output/output.tar.gz")) == {"loop": "."}
