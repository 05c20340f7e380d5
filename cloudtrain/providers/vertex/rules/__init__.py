"""What the service would refuse, or do otherwise than it looks, and no message type says. Needs no vendor package.

The rules of pools and of scheduling have modules of their own; those of the job as a whole are here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import at, entries, section, text
from cloudtrain.providers.vertex.labels import MOST, label_flaws
from cloudtrain.providers.vertex.places import flaw_of
from cloudtrain.providers.vertex.reading import region_of
from cloudtrain.providers.vertex.rules.pools import pools_problems
from cloudtrain.providers.vertex.rules.scheduling import scheduling_problems
from cloudtrain.spec.problems import shown

LONGEST_DISPLAY_NAME = 128

SET_BY_SERVICE = (
    "name", "state", "createTime", "startTime", "endTime", "updateTime", "error", "webAccessUris", "satisfiesPzs",
    "satisfiesPzi",
)  # fmt: skip
"""Fields of answers that no request has."""
_NETWORK = re.compile(r"projects/[0-9]+/global/networks/[a-z]([-a-z0-9]*[a-z0-9])?")
_KEY = re.compile(r"projects/[^/]+/locations/([^/]+)/keyRings/[^/]+/cryptoKeys/[^/]+")
_TENSORBOARD = re.compile(r"projects/[^/]+/locations/([^/]+)/tensorboards/[^/]+")
_ACCOUNT = re.compile(r"[^@\s/]+@[^@\s/]+\.[^@\s/]+")


def problems(native: Mapping[str, Any]) -> list[NativeProblem]:
    """All that is wrong, in the order of the request."""
    return [
        *_name_problems(native),
        *pools_problems(native),
        *scheduling_problems(native),
        *_account_problems(native),
        *_network_problems(native),
        *_output_problems(native),
        *_label_problems(native),
        *_key_problems(native),
    ]


def _name_problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    name = text(native, "displayName")
    if not name:
        yield NativeProblem(("displayName",), "is missing: displayName is required")
    if len(name) > LONGEST_DISPLAY_NAME:
        yield NativeProblem(("displayName",), f"has {len(name)} characters, at most {LONGEST_DISPLAY_NAME}")
    for field in SET_BY_SERVICE:
        if field in native:
            yield NativeProblem((field,), "is set by the service and cannot be asked for")


def _label_problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    labels = section(native, "labels")
    if len(labels) > MOST:
        yield NativeProblem(("labels",), f"has {len(labels)} labels, at most {MOST}")
    for key, label in labels.items():
        if isinstance(key, str) and isinstance(label, str):
            for flaw in label_flaws(key, label):
                yield NativeProblem(("labels", key), flaw)


def _account_problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    account = text(native, "jobSpec", "serviceAccount")
    if account and not _ACCOUNT.fullmatch(account):
        wanted = "an e-mail address such as trainer@project.iam.gserviceaccount.com"
        yield NativeProblem(("jobSpec", "serviceAccount"), f"must be {wanted}, not {shown(account)}")


def _network_problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    network = text(native, "jobSpec", "network")
    if network and not _NETWORK.fullmatch(network):
        wanted = "projects/NUMBER/global/networks/NAME with the project's number"
        yield NativeProblem(("jobSpec", "network"), f"must be {wanted}, not {shown(network)}")
    psc = section(native, "jobSpec", "pscInterfaceConfig")
    if network and psc:
        yield NativeProblem(("jobSpec", "pscInterfaceConfig"), "cannot stand beside network: use one of the two")
    if entries(native, "jobSpec", "reservedIpRanges") and not network:
        yield NativeProblem(("jobSpec", "reservedIpRanges"), "needs jobSpec.network: the ranges are of that network")
    for number, peering in enumerate(entries(psc, "dnsPeeringConfigs")):
        if not text(peering, "domain").endswith("."):
            place = ("jobSpec", "pscInterfaceConfig", "dnsPeeringConfigs", number, "domain")
            yield NativeProblem(place, "must end with a dot")


def _output_problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    prefix = at(native, "jobSpec", "baseOutputDirectory", "outputUriPrefix")
    if isinstance(prefix, str) and (flaw := flaw_of(prefix, written=True)):
        yield NativeProblem(("jobSpec", "baseOutputDirectory", "outputUriPrefix"), flaw)
    board = text(native, "jobSpec", "tensorboard")
    if not board:
        return
    place = ("jobSpec", "tensorboard")
    found = _TENSORBOARD.fullmatch(board)
    if not found:
        wanted = "projects/PROJECT/locations/REGION/tensorboards/ID"
        yield NativeProblem(place, f"must be {wanted}, not {shown(board)}")
    elif (region := region_of(native)) and found.group(1) != region:
        yield NativeProblem(place, f"is in {found.group(1)}; it must be in the job's region, {region}")
    lacking = [name for name in ("serviceAccount", "baseOutputDirectory") if not at(native, "jobSpec", name)]
    if lacking:
        yield NativeProblem(place, f"needs jobSpec.{' and jobSpec.'.join(lacking)}")


def _key_problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    key = text(native, "encryptionSpec", "kmsKeyName")
    place = ("encryptionSpec", "kmsKeyName")
    found = _KEY.fullmatch(key)
    if key and not found:
        wanted = "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY"
        yield NativeProblem(place, f"must be {wanted}, not {shown(key)}")
    elif found and (region := region_of(native)) and found.group(1) != region:
        yield NativeProblem(place, f"is in {found.group(1)}; it must be in the job's region, {region}")
