"""One line of what ``doctor`` says, and what a provider has to have for it: a module ``doctor.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from cloudtrain.errors import CloudtrainError
from cloudtrain.wording import one_line

if TYPE_CHECKING:
    from cloudtrain.settings import Settings

Verdict = Literal["ok", "warning", "problem", "not checked"]
"""``warning``: most of it works; ``problem``: a submit would fail; ``not checked``: it cannot be told from here."""
_LONGEST = 400


class Check(NamedTuple):
    """What was looked at, what came of it, and what to do about it."""

    name: str
    verdict: Verdict
    found: str
    """Never a secret. What a service says may hold anything: see ``tidy``."""
    next: str = ""

    def tidy(self) -> Check:
        """On one line each, without control characters, not endless."""
        return self._replace(found=one_line(self.found, _LONGEST), next=one_line(self.next, _LONGEST))


class Question(NamedTuple):
    """Something to ask a service. ``ask`` may raise: see ``asking.answered``."""

    name: str
    ask: Callable[[], Check]
    needs: tuple[str, ...] = ()
    """Settings without which it makes no sense."""


class Unknown(Exception):
    """It cannot be told from here; the text says why. Makes a check ``not checked``."""


class Signed(NamedTuple):
    """What signing in came to."""

    checks: tuple[Check, ...]
    caller: Any = None
    """What the provider's own questions ask with; None if nothing can be asked."""


class Doctor(Protocol):
    """A provider's module ``doctor.py``. Only ``load`` loads the vendor's packages."""

    def traces(self) -> Iterator[str]:
        """What on this machine says that the cloud is used from here: variables and files of credentials."""

    def load(self) -> None:
        """Import what is needed. Raises ImportError."""

    def sign_in(self, settings: Settings) -> Signed:
        """Find credentials, and ask who they are of. May raise."""

    def questions(self, settings: Settings, caller: Any, native: Mapping[str, Any] | None) -> Sequence[Question]:
        """What is then asked, side by side. ``native``: the request of the job file in this folder, if there is one."""


NO_JOB = "no job.yaml here that can be rendered for this cloud"


def of_error(name: str, error: Exception) -> Check:
    """What a question came to that could not be answered."""
    if isinstance(error, Unknown):
        return Check(name, "not checked", str(error))
    if isinstance(error, CloudtrainError):
        return Check(name, "problem", error.message, error.hint or LATER)
    return Check(name, "problem", f"the answer makes no sense: {type(error).__name__}: {error}", LATER)


LATER = "try again; if it stays so, look at the network, its proxy, and variables that name other endpoints"
