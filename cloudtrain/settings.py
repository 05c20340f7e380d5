"""Account settings: where a cloud's jobs, data and logs go. They are not part of a job.

    [sagemaker]
    region = "eu-west-1"
    role = "arn:aws:iam::111122223333:role/SageMaker"
    bucket = "my-bucket"

Read from the nearest ``cloudtrain.toml``, beside the job file or in a folder above it; ``CLOUDTRAIN_<SECTION>_<KEY>``
in the environment wins over the file, and what the command line gives (``--set region=...``) wins over both.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from cloudtrain import plugins
from cloudtrain.errors import SpecError, did_you_mean
from cloudtrain.spec.problems import shown

FILE_NAME = "cloudtrain.toml"
_MOST_BYTES = 1 << 20


class Key(NamedTuple):
    """One setting: what it is, and what stands in for it in a request that is only shown."""

    about: str
    needed: bool = False
    placeholder: str = ""
    default: str = ""
    pattern: str = r"[!-~]+"


_STEP = r"(?!\.\.?(/|$))[A-Za-z0-9._-]+"
_PREFIX = Key(
    "folder in the bucket under which cloudtrain keeps all, such as team/cloudtrain, of at most 200 characters",
    default="cloudtrain",
    pattern=rf"(?=.{{1,200}}$){_STEP}(/{_STEP})*",
)
_BUCKET = r"[a-z0-9]([a-z0-9._-]{,220}[a-z0-9])?"
_GUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

# The placeholders are well-formed, so that a request can be looked at and checked before there is an account.
KEYS: Mapping[str, Mapping[str, Key]] = {
    "sagemaker": {
        "region": Key("AWS region", True, "us-east-1", pattern=r"[a-z]{2,4}(-[a-z]+)+-[0-9]"),
        "role": Key("execution role", True, "arn:aws:iam::000000000000:role/SET-SAGEMAKER-ROLE",
                    pattern=r"arn:aws[a-z\-]*:iam::[0-9]{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+"),
        "bucket": Key("S3 bucket, in the same region", True, "set-sagemaker-bucket", pattern=_BUCKET),
        "prefix": _PREFIX,
        "subnets": Key("subnets of a VPC, separated by commas", pattern=r"[-0-9a-zA-Z]+(,[-0-9a-zA-Z]+)*"),
        "security_groups": Key("security groups of the VPC, separated by commas",
                               pattern=r"[-0-9a-zA-Z]+(,[-0-9a-zA-Z]+)*"),
        "kms_key": Key("KMS key for outputs and volumes"),
    },
    "vertex": {
        "project": Key("Google Cloud project id", True, "set-vertex-project", pattern=r"[a-z0-9.:-]+"),
        "region": Key("region", True, "us-central1", pattern=r"[a-z]+(-[a-z]+)+[0-9]+"),
        "bucket": Key("Cloud Storage bucket, in the same region", True, "set-vertex-bucket", pattern=_BUCKET),
        "service_account": Key("service account that the job runs as", pattern=r"[!-?A-~]+@[!-?A-~]+"),
        "prefix": _PREFIX,
        "network": Key("VPC network: projects/NUMBER/global/networks/NAME",
                       pattern=r"projects/[0-9]+/global/networks/[a-z]([-a-z0-9]*[a-z0-9])?"),
        "kms_key": Key("KMS key, in the same region",
                       pattern=r"projects/[!-.0-~]+/locations/[!-.0-~]+/keyRings/[!-.0-~]+/cryptoKeys/[!-.0-~]+"),
    },
    "azureml": {
        "subscription": Key("subscription id", True, "00000000-0000-0000-0000-000000000000", pattern=_GUID),
        "resource_group": Key("resource group", True, "set-resource-group", pattern=r"[-\w.()]{1,90}"),
        "workspace": Key("workspace", True, "set-workspace", pattern=r"[a-zA-Z0-9][a-zA-Z0-9_-]{1,32}"),
        "compute": Key("compute cluster; left out: serverless compute", pattern=r"[a-zA-Z]([a-zA-Z0-9-]*[a-zA-Z0-9])?"),
        "datastore": Key("datastore for all it writes", default="workspaceblobstore", pattern=r"[a-zA-Z0-9_]+"),
        "prefix": _PREFIX,
        "identity": Key("identity that the job runs as: managed, user or aml_token", pattern="managed|user|aml_token"),
    },
    "local": {},
}  # fmt: skip
"""Those of our own providers."""


def keys_of(provider: str) -> Mapping[str, Key]:
    """The settings that a provider has. Raises MissingError for a package that does not declare them well."""
    if provider in KEYS:
        return KEYS[provider]
    keys = plugins.value(provider, "account", "KEYS")
    if not isinstance(keys, Mapping) or not all(_is_key(name, key) for name, key in keys.items()):
        raise plugins.broken(provider, "account.KEYS must map names (a-z 0-9 _) to cloudtrain.settings.Key")
    return keys


def _is_key(name: object, key: object) -> bool:
    return isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None and isinstance(key, Key)


def _is_section(name: str) -> bool:
    return name in KEYS or plugins.knows(name)


def _sections() -> tuple[str, ...]:
    return (*KEYS, *plugins.names())


class Settings(Mapping[str, str]):
    """The settings of one provider, every key of ``keys_of`` present; ``""`` is: not set.

    ``missing`` names the needed ones that nobody gave: a placeholder stands for each.
    """

    def __init__(self, provider: str, values: Mapping[str, str]) -> None:
        """Raises SpecError for an unknown key or an ill-formed value."""
        keys = keys_of(provider)
        for name, value in values.items():
            _check(provider, name, value, f"{provider}.{name}")
        self.provider = provider
        self.missing = tuple(name for name, key in keys.items() if key.needed and not values.get(name))
        self._values = MappingProxyType(
            {name: values.get(name) or key.default or key.placeholder for name, key in keys.items()}
        )

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def settings_for(
    provider: str,
    folder: Path,
    *,
    environ: Mapping[str, str] | None = None,
    given: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of ``provider`` for a job in ``folder``; ``given`` wins over ``environ``, that over the file.

    Raises SpecError, naming the file, variable or option, for what is unknown or ill-formed.
    """
    file = find_file(folder)
    values = dict(_from_file(file, provider).get(provider, {})) if file else {}
    values.update(_from_environment(provider, os.environ if environ is None else environ))
    values.update(_given(provider, given or {}))
    return Settings(provider, values)


def find_file(folder: Path) -> Path | None:
    """The nearest ``cloudtrain.toml`` in ``folder`` or above it; whether it can be read is another matter."""
    start = folder.absolute()
    return next((path for place in (start, *start.parents) if os.path.lexists(path := place / FILE_NAME)), None)


def _given(provider: str, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """``region`` is the provider's own, ``vertex.region`` Vertex AI's whichever is asked for."""
    for said, value in given.items():
        text = str(said)
        section, dot, name = text.rpartition(".")
        where = f"--set {text if name.isidentifier() and len(text) < 60 else shown(said)}"
        if dot and not _is_section(section):
            known = _sections()
            raise SpecError(f"{where}: unknown section{did_you_mean(section, known) or '; known: ' + ', '.join(known)}")
        _check(section or provider, name, value, where)
        if section in ("", provider):
            yield name, value


def _from_environment(provider: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """A variable of ours that names no setting is most likely misspelt."""
    start = f"CLOUDTRAIN_{provider}_".upper()
    for variable, value in environ.items():
        if variable.startswith(start) and value:
            name = variable.removeprefix(start).lower()
            _check(provider, name, value, variable)
            yield name, value


def _from_file(file: Path, provider: str) -> dict[str, dict[str, str]]:
    """Section -> key -> text. Lists (of subnets) become text with commas.

    A section of another package's provider is read for that one alone: its package need not be loaded for others.
    """
    sections: dict[str, dict[str, str]] = {}
    for section, content in _read(file).items():
        if not _is_section(section):
            known = _sections()
            near = did_you_mean(section, known) or f"; known: {', '.join(known)}"
            raise SpecError(f"{file}: unknown section [{section}]{near}")
        if not isinstance(content, dict):
            raise SpecError(f"{file}: {section} must be a section, [{section}]")
        if section in KEYS or section == provider:
            sections[section] = {name: _text(file, section, name, value) for name, value in content.items()}
    return sections


def _read(file: Path) -> dict[str, object]:
    """At most as much as anybody would write: what lies there may be a device, or anything else."""
    try:
        if not file.is_file():
            raise SpecError(f"{file}: is no file, or a link that leads to none", hint="Mend or remove it.")
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        return _toml(content.decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SpecError(f"{file}: cannot be read as TOML: {reason}") from error
    except RecursionError:
        raise SpecError(f"{file}: cannot be read as TOML: nested too deep") from None


def _toml(text: str) -> dict[str, object]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    data: dict[str, object] = tomllib.loads(text)
    return data


def _text(file: Path, section: str, name: str, value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ",".join(value)
    if not isinstance(value, str):
        raise SpecError(f"{file}: {section}.{name} must be text, not {_kind(value)}")
    if value or name not in keys_of(section):
        _check(section, name, value, f"{file}: {section}.{name}")
    return value


def _kind(value: object) -> str:
    """A table may be of any depth, more than can be shown."""
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else shown(value)


def _check(provider: str, name: object, value: object, where: str) -> None:
    keys = keys_of(provider)
    if name not in keys:
        near = did_you_mean(str(name), keys)
        raise SpecError(f"{where}: unknown setting{near or '; known: ' + ', '.join(keys)}")
    if not isinstance(value, str):
        raise SpecError(f"{where}: must be text, not {shown(value)}")
    key = keys[str(name)]
    with plugins.guarded(provider, f"the pattern of its setting {name}"):
        fits = not value or re.fullmatch(key.pattern, value)
    if not fits:
        raise SpecError(f"{where}: {shown(value)} is no {key.about}{_advice(key, value)}")


def _advice(key: Key, value: str) -> str:
    bare = value.partition("://")[2].strip("/")
    if bare and re.fullmatch(key.pattern, bare):
        return f"; write {bare}"
    return f", such as {key.placeholder}" if key.placeholder else ""
