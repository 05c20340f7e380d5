"""Downloads of what anybody may have named: what belongs below the folder arrives, and nothing leaves it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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


@pytest.mark.parametrize(
    ("first", "second"),
    [("a", "a/b"), ("a/b", "a"), ("a", "a/b/c"), ("a", "x" * 300), ("a", f"{'x' * 300}/b"), ("b/a", "b//a")],
)
def test_a_name_that_no_disk_takes_keeps_no_other_file_from_coming(tmp_path: Path, first: str, second: str) -> None:
    run = run_of(("model", first), ("model", second), ("output", "log"))
    for _ in range(2):
        with pytest.raises(SpecError) as caught:
            run.download(tmp_path)
        assert caught.value.hint == "it was left out; all else has been downloaded"
        assert repr(second)[:40] in caught.value.message
        assert below(tmp_path) == [f"model/{first}", "output/log"]
    assert (tmp_path / "model" / first).read_text() == first


def test_all_that_is_left_out_is_told(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        run_of(("model", "weights"), *(("model", f"../{number}") for number in range(7))).download(tmp_path)
    named = caught.value.message.splitlines()
    assert ["'../0'" in named[0], "'../4'" in named[4], named[5]] == [True, True, "and 2 more like these"]
    assert caught.value.hint == "these 7 were left out; all else has been downloaded"


class Waiting(Store):
    """Its files come once they may."""

    def __init__(self, *files: tuple[str, str]) -> None:
        super().__init__(*files)
        self.begun, self.may = threading.Event(), threading.Event()

    def fetch(self, artefact: Artefact, folder: Path, progress: Progress) -> None:
        self.begun.set()
        assert self.may.wait(60)
        super().fetch(artefact, folder, progress)


def test_a_download_removes_what_one_that_was_killed_has_left_and_no_other(tmp_path: Path) -> None:
    left = tmp_path / ".cloudtrain-0123456789abcdef"
    (left / "model").mkdir(parents=True)
    (left / "model" / "half").write_text("ha")
    slow = run_of(("model", "weights"))
    store = slow.__dict__["client"] = Waiting(("model", "weights"))
    with ThreadPoolExecutor(1) as pool:
        going_on = pool.submit(slow.download, tmp_path)
        assert store.begun.wait(60)
        run_of(("output", "log")).download(tmp_path)
        store.may.set()
        going_on.result()
    assert below(tmp_path) == ["model/weights", "output/log"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "output"]


def test_many_downloads_into_one_folder_take_nothing_from_each_other(tmp_path: Path) -> None:
    runs = [run_of(("model", "weights"), (f"outputs/o{number}", "log")) for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(run.download, tmp_path) for run in runs]:
            done.result()
    assert below(tmp_path) == sorted(["model/weights", *(f"outputs/o{number}/log" for number in range(40))])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "outputs"]


class Full(Store):
    """Its files find no room."""

    def fetch(self, artefact: Artefact, folder: Path, progress: Progress) -> None:  # noqa: ARG002 - the port's
        raise MissingError(f"cannot copy {artefact.path} to {folder}: No space left on device")


def test_a_disk_that_is_full_is_named_as_the_user_did(tmp_path: Path) -> None:
    run = run_of()
    run.__dict__["client"] = Full(("model", "weights"))
    with pytest.raises(MissingError) as caught:
        run.download(tmp_path)
    assert caught.value.message == f"cannot copy weights to {tmp_path / 'model'}: No space left on device"
    assert list(tmp_path.iterdir()) == []
