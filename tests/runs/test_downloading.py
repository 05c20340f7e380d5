"""Downloads of what anybody may have named: what belongs below the folder arrives, and nothing leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudtrain.errors import MissingError, SpecError
from cloudtrain.providers.landing import landing
from cloudtrain.providers.port import Artefact, Progress
from cloudtrain.runs.run import Run


class Store:
    """A provider's files, by kind and path."""

    def __init__(self, *files: tuple[str, str]) -> None:
        self.files = files

    def artefacts(self, native_id: str) -> Iterator[Artefact]:  # noqa: ARG002 - the port's
        yield from (Artefact(kind, path, len(path), path) for kind, path in self.files)

    def fetch(self, artefact: Artefact, folder: Path, progress: Progress) -> None:
        with landing(folder, artefact.path) as file:
            file.write(artefact.source.encode())
        progress(artefact.size, artefact.size)


def run_of(*files: tuple[str, str]) -> Run:
    run = Run("vertex", "digits", {}, run_id="digits-1")
    run.__dict__["client"] = Store(*files)  # the property is a cached one
    return run


def below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", ["../../evil", "/tmp/evil", "a/../../evil", "."])
def test_a_name_that_leads_elsewhere_keeps_no_other_file_from_coming(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "results"
    run = run_of(("model", "a/weights"), ("model", path), ("output", "log"))
    for _ in range(2):  # and may be repeated
        with pytest.raises(SpecError) as caught:
            run.download(folder)
        assert caught.value.hint == "it was left out; all else has been downloaded"
        assert ".cloudtrain-" not in caught.value.message
        assert below(tmp_path) == ["results/model/a/weights", "results/output/log"]


def test_a_folder_that_no_file_system_takes(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot write"):
        run_of(("model", "weights")).download(tmp_path / ("a" * 5000))


def test_bytes_are_counted_over_all_files(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    run_of(("model", "12345"), ("output", "123")).download(tmp_path, progress=lambda *step: told.append(step))
    assert told == [(5, 8), (5, 8), (8, 8), (8, 8)]
