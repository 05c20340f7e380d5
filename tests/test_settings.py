"""Account settings from cloudtrain.toml, the environment and the caller: which one wins, what is wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.errors import SpecError
from cloudtrain.settings import FILE_NAME, Settings, settings_for

FILE = """[sagemaker]
region = "eu-west-1"
prefix = "from-file"
subnets = ["subnet-1", "subnet-2"]
"""


def read(
    folder: Path, content: str | bytes = FILE, *, environ: Mapping[str, str] | None = None, given: Any = None
) -> Settings:
    (folder / FILE_NAME).write_bytes(content.encode() if isinstance(content, str) else content)
    return settings_for("sagemaker", folder, environ=environ or {}, given=given)


def refusal(folder: Path, content: str | bytes = FILE, **more: Any) -> str:
    with pytest.raises(SpecError) as raised:
        read(folder, content, **more)
    message = str(raised.value)
    assert all(line.isprintable() for line in message.splitlines())
    return message.replace(str(folder / FILE_NAME), FILE_NAME)


def test_the_caller_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    environ = {"CLOUDTRAIN_SAGEMAKER_REGION": "eu-west-2", "CLOUDTRAIN_SAGEMAKER_PREFIX": "from/environment"}
    found = read(tmp_path, environ=environ, given={"region": "eu-west-3"})
    assert (found["region"], found["prefix"]) == ("eu-west-3", "from/environment")
    assert found["subnets"] == "subnet-1,subnet-2"
    assert found.missing == ("role", "bucket")


def test_the_nearest_file_counts_and_a_byte_order_mark_does_not(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('[sagemaker]\nregion = "us-west-1"\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert settings_for("sagemaker", below, environ={})["region"] == "us-west-1"
    assert read(below, b"\xef\xbb\xbf" + FILE.encode())["region"] == "eu-west-1"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[sagemaker\n", "cannot be read as TOML"),
        (b"\xff\xfe", "cannot be read as TOML"),
        ("x = " + "[" * 5000 + "]" * 5000, "nested too deep"),
        ("[sagemaker]\nx" + ".a" * 100 + " = 1", "sagemaker.x must be text, not a table"),
        ("[sagemaker]\nregion = " + "9" * 5000, "cannot be read as TOML"),
        ("#" * 2_000_000, "more than 1048576 bytes"),
        ("[sagemker]\n", "unknown section [sagemker], did you mean 'sagemaker'?"),
        ("sagemaker = 5\n", "sagemaker must be a section"),
        ("[[sagemaker]]\n", "sagemaker must be a section"),
        ('[sagemaker]\nregoin = "eu-west-1"\n', "sagemaker.regoin: unknown setting, did you mean 'region'?"),
        ("[sagemaker]\nregion = 5\n", "sagemaker.region must be text, not 5"),
        ("[sagemaker]\nsubnets = [1]\n", "sagemaker.subnets must be text, not a list"),
        ('[sagemaker]\nregion = "eu-west-1\\n"\n', r"'eu-west-1\n' is no AWS region, such as us-east-1"),
        ('[sagemaker]\nprefix = "../x"\n', "'../x' is no folder in the bucket"),
        ('[sagemaker]\nprefix = "a/./b"\n', "'a/./b' is no folder in the bucket"),
        (f'[sagemaker]\nprefix = "{"a" * 201}"\n', "at most 200 characters"),
        ('[sagemaker]\nkms_key = "a\\u2028b"\n', "is no KMS key"),
        ('[vertex]\nservice_account = "a\\u2028@b"\n', "is no service account"),
    ],
)
def test_what_is_wrong_with_the_file_is_said(tmp_path: Path, content: str | bytes, said: str) -> None:
    message = refusal(tmp_path, content)
    assert message.startswith(FILE_NAME)
    assert said in message


@pytest.mark.parametrize("kind", ["folder", "loop", "dangling", "pipe"])
def test_what_is_no_file_is_not_passed_over(tmp_path: Path, kind: str) -> None:
    (tmp_path / FILE_NAME).write_text(FILE)
    below = tmp_path / "below"
    below.mkdir()
    place = below / FILE_NAME
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(place if kind == "loop" else "nowhere")
    with pytest.raises(SpecError, match="is no file, or a link that leads to none"):
        settings_for("sagemaker", below, environ={})


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("REGOIN", "eu-west-1", "CLOUDTRAIN_SAGEMAKER_REGOIN: unknown setting, did you mean 'region'?"),
        ("REGION", "eu_west", "CLOUDTRAIN_SAGEMAKER_REGION: 'eu_west' is no AWS region"),
        ("KMS_KEY", "\udcff\udcfe", r"CLOUDTRAIN_SAGEMAKER_KMS_KEY: '\udcff\udcfe' is no KMS key"),
        ("KMS_KEY", "a\nb", r"CLOUDTRAIN_SAGEMAKER_KMS_KEY: 'a\nb' is no KMS key"),
    ],
)
def test_what_is_wrong_with_a_variable_is_said(tmp_path: Path, variable: str, value: str, said: str) -> None:
    assert refusal(tmp_path, environ={f"CLOUDTRAIN_SAGEMAKER_{variable}": value}).startswith(said)


def test_variables_of_other_providers_and_empty_ones_are_not_looked_at(tmp_path: Path) -> None:
    environ = {"CLOUDTRAIN_VERTEX_X": "y", "CLOUDTRAIN_SAGEMAKER_REGION": "", "CLOUDTRAIN_SM_ROOT": "/opt/ml"}
    assert read(tmp_path, environ=environ)["region"] == "eu-west-1"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"regio": "eu-west-1"}, "--set regio: unknown setting, did you mean 'region'?"),
        ({"a\nb": "x"}, r"--set 'a\nb': unknown setting; known: region, role"),
        ({"region": "eu\nwest"}, r"--set region: 'eu\nwest' is no AWS region"),
        ({"region": 5}, "--set region: must be text, not 5"),
        ({None: "x"}, "--set None: unknown setting"),
    ],
)
def test_what_is_wrong_with_the_callers_own_is_said(tmp_path: Path, given: Any, said: str) -> None:
    assert refusal(tmp_path, given=given).startswith(said)


def test_a_setting_may_say_whose_it_is(tmp_path: Path) -> None:
    given = {"vertex.region": "us-east4", "bucket": "mine"}
    assert settings_for("vertex", tmp_path, environ={}, given=given)["region"] == "us-east4"
    other = settings_for("sagemaker", tmp_path, environ={}, given=given)
    assert (other["region"], other["bucket"]) == ("us-east-1", "mine")  # the placeholder, and what is anybody's
    with pytest.raises(SpecError, match=r"--set vertx\.region: unknown section, did you mean 'vertex'"):
        settings_for("vertex", tmp_path, environ={}, given={"vertx.region": "us-east4"})


def test_a_uri_where_a_bucket_is_meant_is_told_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"; write my-bucket$"):
        settings_for("sagemaker", tmp_path, environ={}, given={"bucket": "s3://my-bucket/"})
