"""Names that no provider knows: the same words and the same exit code, whoever was asked and whatever for."""

from __future__ import annotations

import pytest

from tests.conformance.backend import Backend, job_file

VERBS = (("status",), ("logs",), ("logs", "--follow"), ("download",), ("stop",), ("resume",))


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_run_that_there_is_not(backend: Backend, verb: tuple[str, ...]) -> None:
    job_file(backend.folder / "nobody", "")
    first, *options = verb
    done = backend.cloudtrain(first, f"{backend.provider}:nobody-a1", *options, cwd=backend.folder / "nobody")
    where = "" if backend.provider == "local" else f" on {backend.provider}"
    message, hint, *more = done.err.splitlines()
    assert (done.code, done.out, message) == (2, "", f"cloudtrain: there is no run 'nobody-a1'{where}")
    assert hint and not more
    assert not (backend.folder / "nobody" / "nobody-a1").exists()


def test_a_number_that_there_is_not(backend: Backend) -> None:
    if backend.provider != "vertex":
        pytest.skip("jobs have names there")
    done = backend.cloudtrain("status", "vertex:123")
    assert (done.code, done.err.splitlines()[0]) == (2, "cloudtrain: there is no run '123' on vertex")
