"""Checkpoints under damage, kills and change; each case with real processes and real files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.entrypoints.job.ranks import TRAIN, Ended, Ranks, json_lines

# 43 samples in batches of 8 are 6 steps; with --save-every 2 and --keep 3 the checkpoints are of steps 2, 4 and 6.
SHORT = ("--epochs", 1, "--save-every", 2)


def trained(ranks: Ranks, folder: Path) -> list[Path]:
    """The checkpoints of a short training, oldest first."""
    ranks.run(TRAIN, *SHORT, world=1, folder=folder).succeeded()
    return saved(folder)


def saved(folder: Path) -> list[Path]:
    return sorted((folder / "checkpoints").iterdir())


def resumed(ranks: Ranks, folder: Path, *options: object, world: int = 1) -> Ended:
    for file in folder.glob("steps-*.jsonl"):
        file.unlink()
    return ranks.run(TRAIN, *SHORT, *options, world=world, folder=folder)


def first_step(folder: Path) -> int | None:
    """The first step done after resuming; None if there was none left."""
    lines = json_lines(folder / "steps-0.jsonl")
    return lines[0]["step"] if lines else None


def flip(file: Path, where: float) -> None:
    content = bytearray(file.read_bytes())
    content[int(len(content) * where)] ^= 1
    file.write_bytes(content)


def damage(checkpoint: Path, how: str) -> None:
    state, manifest = checkpoint / "state.pt", checkpoint / "manifest.json"
    if how == "flipped bit":
        flip(state, 0.5)
    elif how == "cut":
        os.truncate(state, state.stat().st_size - 1)
    elif how == "empty":
        os.truncate(state, 0)
    elif how == "no state":
        state.unlink()
    elif how == "no manifest":
        manifest.unlink()
    elif how == "manifest not JSON":
        manifest.write_text("{")
    elif how == "manifest edited":
        manifest.write_text(manifest.read_text().replace('"step": 6', '"step": 8'))


DAMAGES = {
    "flipped bit": "other content than was saved",
    "cut": "bytes instead of",
    "empty": "has 0 bytes instead of",
    "no state": "state.pt cannot be read (No such file or directory)",
    "no manifest": "it has no manifest",
    "manifest not JSON": "its manifest cannot be read",
    "manifest edited": "its manifest was changed",
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(ranks: Ranks, tmp_path: Path, how: str) -> None:
    newest = trained(ranks, tmp_path)[-1]
    damage(newest, how)
    again = resumed(ranks, tmp_path).succeeded()
    assert f"checkpoint {newest.name} is damaged and passed over: " in again.output
    assert DAMAGES[how] in again.output
    assert first_step(tmp_path) == 5
    # It is out of the way, but not deleted; and step 6, done again, is saved again.
    names = [path.name for path in saved(tmp_path)]
    assert [name for name in names if "damaged" not in name] == ["step-000000002", "step-000000004", "step-000000006"]
    assert len(names) == 4


def test_with_nothing_sound_left_training_does_not_begin_anew(ranks: Ranks, tmp_path: Path) -> None:
    before = trained(ranks, tmp_path)
    for checkpoint in before:
        flip(checkpoint / "state.pt", 0.3)
    again = resumed(ranks, tmp_path, world=2)
    assert again.codes == [1, 1]
    for output in again.outputs:
        assert "CheckpointError: none of the 3 checkpoints in" in output
    assert first_step(tmp_path) is None
    assert saved(tmp_path) == before


def test_only_the_newest_are_kept(ranks: Ranks, tmp_path: Path) -> None:
    ranks.run(TRAIN, "--save-every", 1, "--keep", 2, "--epochs", 1, world=2, folder=tmp_path).succeeded()
    assert [path.name for path in saved(tmp_path)] == ["step-000000005", "step-000000006"]


# Of one save: the file, the manifest, the folder of the draft, and, after the rename, the folder of all.
@pytest.mark.parametrize(("synced", "first"), [(0, 3), (1, 3), (2, 3), (3, 5)])
def test_killed_while_saving_the_newest_complete_one_counts(
    ranks: Ranks, tmp_path: Path, synced: int, first: int
) -> None:
    script = (
        "import os, runpy, signal, sys\n"
        "real, calls = os.fsync, 0\n"
        "def fsync(descriptor):\n"
        "    global calls\n"
        "    calls += 1\n"
        f"    if calls > 5 + {synced}:\n"  # the first save makes one more: the folder is new then
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    real(descriptor)\n"
        "os.fsync = fsync\n"
        f"sys.path.insert(0, {str(TRAIN.parent)!r})\n"
        f"runpy.run_path({str(TRAIN)!r}, run_name='__main__')\n"
    )
    killed = ranks.code(script, *SHORT, world=1, folder=tmp_path)
    assert killed.codes == [-9]
    resumed(ranks, tmp_path).succeeded()
    assert first_step(tmp_path) == first
    assert not [path for path in saved(tmp_path) if "tmp" in path.name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--length", 44), "samples in the data set: 43 then, 44 now"),
        (("--batch", 4), "global batch: 8 then, 4 now"),
        (("--order", 1), "seed of the order: 0 then, 1 now"),
    ],
)
def test_other_data_is_refused_with_the_difference(
    ranks: Ranks, tmp_path: Path, options: tuple[object, ...], message: str
) -> None:
    trained(ranks, tmp_path)
    again = resumed(ranks, tmp_path, *options, world=2)
    assert again.codes == [1, 1]
    assert f"ResumeRefused: the checkpoint's place in the data is of no use here: {message}\n" in again.output


def test_another_model_is_refused_with_the_difference(ranks: Ranks, tmp_path: Path) -> None:
    program = (
        "import sys, torch, cloudtrain_job as ctj\n"
        "ctx = ctj.init()\n"
        "layers = {'a': torch.nn.Linear(3, int(sys.argv[1])), sys.argv[2]: torch.nn.Linear(2, 2, bias=False)}\n"
        "ctj.Checkpointer(ctx, model=torch.nn.ModuleDict(layers)).save()\n"
    )
    ranks.code(program, 4, "b", world=1, folder=tmp_path).succeeded()
    again = ranks.code(program, 5, "c", world=1, folder=tmp_path)
    assert again.codes == [1]
    difference = "b.weight is gone; c.weight is new; a.weight was (4, 3), is (5, 3); a.bias was (4,), is (5,)"
    assert f"is of another model: {difference}\n" in again.output


def test_what_cannot_be_read_back_safely_is_refused_when_saving(ranks: Ranks, tmp_path: Path) -> None:
    program = (
        "import pathlib, torch, cloudtrain_job as ctj\n"
        "class Part:\n"
        "    def state_dict(self):\n"
        "        return {'best': [1.0, pathlib.PurePosixPath('x')]}\n"
        "ctx = ctj.init()\n"
        "ctj.Checkpointer(ctx, model=torch.nn.Linear(1, 1), extra={'part': Part()}).save()\n"
    )
    ended = ranks.code(program, world=2, folder=tmp_path)
    assert ended.codes == [1, 1]
    assert "CheckpointError: part.best[1] is a pathlib.PurePosixPath" in ended.outputs[1]
    assert not (tmp_path / "checkpoints").exists()


def test_numpy_numbers_and_its_random_stream_come_back(ranks: Ranks, tmp_path: Path) -> None:
    program = (
        "import numpy, random, torch, cloudtrain_job as ctj\n"
        "class Best:\n"
        "    value = numpy.float64(0.5)\n"
        "    def state_dict(self):\n"
        "        return {'value': self.value}\n"
        "    def load_state_dict(self, state):\n"
        "        self.value = state['value'] * 2\n"
        "ctx, best = ctj.init(), Best()\n"
        "state = ctj.Checkpointer(ctx, model=torch.nn.Linear(1, 1), extra={'best': best})\n"
        "if not state.resumed:\n"
        "    state.save()\n"
        "print([state.resumed, float(best.value), numpy.random.rand(), random.random(), torch.rand(1).item()])\n"
    )
    runs = [ranks.code(program, world=1, folder=tmp_path).succeeded().output for _ in range(2)]
    first, second = (json.loads(run.splitlines()[-1].replace("True", "true").replace("False", "false")) for run in runs)
    assert (first[:2], second[:2]) == ([False, 0.5], [True, 1.0])
    assert first[2:] == second[2:]


def test_a_full_disk_ends_all_ranks_with_the_reason(ranks: Ranks, tmp_path: Path) -> None:
    program = (
        "import resource, signal, torch, cloudtrain_job as ctj\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "ctx = ctj.init()\n"
        "state = ctj.Checkpointer(ctx, model=torch.nn.Linear(1000, 1000))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "state.save()\n"
    )
    ended = ranks.code(program, world=2, folder=tmp_path)
    assert ended.codes == [1, 1]
    for output in ended.outputs:
        assert "CheckpointError: step 0 could not be saved in" in output
        assert "File too large" in output
    assert saved(tmp_path) == []


def test_time_and_number_kept_come_from_the_job(ranks: Ranks, tmp_path: Path) -> None:
    program = (
        "import torch, cloudtrain_job as ctj\n"
        "state = ctj.Checkpointer(ctj.init(), model=torch.nn.Linear(1, 1))\n"
        "for _ in range(3):\n"
        "    state.step()\n"
    )
    env = {"CLOUDTRAIN_CHECKPOINT_EVERY": "0s", "CLOUDTRAIN_CHECKPOINT_KEEP": "2"}
    ranks.code(program, world=2, folder=tmp_path, env=env).succeeded()
    assert [path.name for path in saved(tmp_path)] == ["step-000000002", "step-000000003"]
