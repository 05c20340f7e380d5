"""``Tags``: the job's, and ours by which people find what a run has cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.tags import run_tags, unusable_tags
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.spec.problems import Path

MOST = 50
LONGEST_KEY = 128
LONGEST_VALUE = 256
OURS = "cloudtrain:"
RESERVED = "aws:"
"""AWS's own, in any case of letters."""

_MARKS = "_.:/=+-@"


def tags_of(job: Job, context: Context) -> list[dict[str, str]]:
    """The job's tags and ours, as the service wants them."""
    tags = {**job.tags, **run_tags(job, context, OURS)}
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def tag_problems(job: Job, context: Context) -> Iterator[tuple[Path, str]]:
    """Tags that the service refuses."""
    return unusable_tags(job, run_tags(job, context, OURS), OURS, MOST, tag_flaws)


def tag_flaws(key: str, value: str) -> Iterator[str]:
    """Why a key and its value cannot be a tag."""
    if key.lower().startswith(RESERVED):
        yield f"begins with {RESERVED}, which is reserved for AWS; take another name"
    for what, text, longest in (("key", key, LONGEST_KEY), ("value", value, LONGEST_VALUE)):
        if len(text) > longest:
            yield f"the {what} has {len(text)} characters, at most {longest}"
        if wrong := foreign(text):
            yield f"the {what} holds {shown(wrong)}; letters, digits, blanks and {_MARKS} are allowed"


def foreign(text: str) -> str:
    """The first character that no tag may hold: it may have letters, blanks and digits of any script."""
    return next((one for one in text if not one.isalnum() and one not in _MARKS and not _is_allowed(one)), "")


def _is_allowed(letter: str) -> bool:
    import unicodedata

    return letter == " " or unicodedata.category(letter)[0] in "LZN"
