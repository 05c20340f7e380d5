"""Vendors' packages: missing, or there and broken by another that is installed beside them. Both only skip a check."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cloudtrain.spec.problems import shown


class Broken(ImportError):
    """A package that is there and cannot be loaded; the text says why."""


@contextmanager
def importing() -> Iterator[None]:
    """Around the import of a vendor's package: whatever it raises becomes an ImportError."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:  # protobuf, for one, raises TypeError where its own version does not fit
        raise Broken(shown(f"{type(error).__name__}: {error}")) from error


def skipped(error: ImportError, package: str, what: str, extra: str) -> str:
    """What a check says that could not be made. ``extra``: what installs the package."""
    if isinstance(error, Broken):
        return f"not checked against {what}: {package} cannot be loaded ({error}); install it anew: {extra}"
    return f"not checked against {what}: {package} is missing; {extra}"
