"""Labels: the job's tags, and ours by which a run is found again.

A create call has no token that makes it safe to repeat, and display names are not unique: so after an answer that never
came, jobs are listed by ``labels.cloudtrain_run`` and ``labels.cloudtrain_attempt`` before anything is sent again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.tags import run_tags, unusable_tags
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.spec.problems import Path

MOST = 64
"""Labels of one resource: Google Cloud's general limit."""
LONGEST = 64
"""Code points of a key or value."""
OURS = "cloudtrain_"

_PLAIN = re.compile(r"[a-z0-9_-]*")
_CATEGORIES = ("Ll", "Lo", "Nd", "Nl", "No")


def labels_of(job: Job, context: Context) -> dict[str, str]:
    """The job's tags and ours."""
    return {**job.tags, **run_tags(job, context, OURS)}


def tag_problems(job: Job, context: Context) -> Iterator[tuple[Path, str]]:
    """Tags that cannot be labels."""

    def flaws(key: str, value: str) -> Iterator[str]:
        return (f"{flaw}; tags become labels on Vertex AI" for flaw in label_flaws(key, value))

    return unusable_tags(job, run_tags(job, context, OURS), OURS, MOST, flaws)


def label_flaws(key: str, value: str) -> Iterator[str]:
    """Why a key and its value cannot be a label."""
    if not key:
        yield "a label's name must not be empty"
    elif key[0] in "_-" or key[0].isnumeric():
        yield f"a label's name must begin with a letter, which {shown(key)} does not"
    for what, text in (("name", key), ("value", value)):
        if len(text) > LONGEST:
            yield f"a label's {what} has {len(text)} characters, at most {LONGEST}"
        if wrong := _foreign(text):
            allowed = "lowercase letters, digits, _ and -"
            yield f"a label's {what} may hold {allowed}; {shown(text)} holds {shown(wrong)}"


def _foreign(text: str) -> str:
    """The first letter that no label may hold. Letters of other alphabets are fine as long as they have no capitals."""
    if _PLAIN.fullmatch(text):
        return ""
    import unicodedata

    return next((one for one in text if one not in "_-" and unicodedata.category(one) not in _CATEGORIES), "")
