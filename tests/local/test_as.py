"""`cloudtrain run --as`: the same job through each cloud's contract ends the same, and sees what it would see there."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloudtrain.errors import SpecError
from cloudtrain.providers.registry import NAMES
from cloudtrain.sdk import run
from tests.local.project import CLOUDTRAIN, Project, Result
from tests.local.test_argv import WORDS

SEES = """
import json, os, pathlib, socket, sys
import torch.distributed as dist
dist.init_process_group("gloo")
env = dict(os.environ)
rank, node = env["RANK"], env["NODE_RANK"]
shard = pathlib.Path(env["CLOUDTRAIN_DATA_SHARDS"])
seen = {
    "env": env,
    "argv": sys.argv[1:],
    "whole": (pathlib.Path(env["CLOUDTRAIN_DATA_WHOLE"]) / "a" / "note").read_text(),
    "shard": sorted(path.relative_to(shard).as_posix() for path in shard.rglob("*") if path.is_file()),
    "host": socket.gethostname(),
}
pathlib.Path(env["PROJECT"], f"seen-{rank}.json").write_text(json.dumps(seen))
if env["LOCAL_RANK"] == "0":
    for variable, name in (("MODEL_DIR", "weights"), ("OUTPUT_DIR", "said"), ("OUTPUT_TABLES", "rows"),
                           ("CHECKPOINT_DIR", "step")):
        pathlib.Path(env[f"CLOUDTRAIN_{variable}"], f"{name}-{node}").write_text(f"{variable} of {node}")
pathlib.Path(env["CLOUDTRAIN_METRICS_DIR"], f"rank-{rank}.jsonl").write_text('{"step": 1, "loss": 0.5}\\n')
dist.barrier()
dist.destroy_process_group()
"""

DATA = ["b/1", "b/2", "b-2", "a", "c/x/3"]
"""In the order of keys: a, b-2, b/1, b/2, c/x/3. Sorted as paths, b/1 would be before b-2."""
SHARES = [["a", "b/1", "c/x/3"], ["b-2", "b/2"]]

LIES = {
    "RANK": "5", "WORLD_SIZE": "9", "LOCAL_RANK": "3", "NODE_RANK": "4", "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "1",
    "CLUSTER_SPEC": '{"cluster": {"workerpool0": ["192.0.2.1:1"], "workerpool1": ["192.0.2.2:1"]}}',
    "AZUREML_NODE_COUNT": "9", "AZ_BATCH_MASTER_NODE": "192.0.2.1:1", "AZUREML_CR_NODE_RANK": "7",
    "CLOUDTRAIN_SM_ROOT": "/nowhere", "CLOUDTRAIN_GCS_ROOT": "/nowhere", "CLOUDTRAIN_PORT": "1",
}  # fmt: skip
"""What a shell may hold of other launchers and of other clouds."""


HOSTS = {
    "sagemaker": r"algo-1,algo-2",
    "vertex": r"cmle-training-workerpool0-([0-9a-f]{10})-0,cmle-training-workerpool1-\1-0",
    "azureml": r"10\.0\.0\.4,10\.0\.0\.5",
}
"""By the sheets. Azure gives names to nobody, and keeps the first addresses of a subnet."""


def _job(project: Project, mode: str = "mount", **changes: Any) -> None:
    for name in DATA:
        project.write(f"objects/{name}", name)
    project.write("whole/a/note", "read me")
    project.write("train.py", SEES)
    project.write(".cloudtrainignore", "/objects/\n/whole/\n")
    job = {
        "name": "seen",
        "entry": "train.py",
        "resources": {"nodes": 2, "processes_per_node": 2},
        "environment": {"env": {"COLOUR": "blue", "WHERE": "${data.whole}"}, "secrets": {"KEY": {"local": "env:KEY"}}},
        "data": {
            "whole": {"uri": {"local": "whole"}, "mode": mode},
            "shards": {"uri": {"local": "objects"}, "shard": "by-object"},
        },
        "outputs": {"tables": {"local": "tables"}},
        "args": WORDS,
    }
    project.write("job.yaml", yaml.safe_dump({**job, **changes}, sort_keys=False))


def _seen(project: Project, ranks: int = 4) -> list[dict[str, Any]]:
    return [json.loads((project.folder / f"seen-{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.parametrize(("isolation", "engine"), [("netns", "fork"), ("none", "agents")])
@pytest.mark.parametrize("cloud", NAMES)
def test_what_a_script_sees(project: Project, cloud: str, isolation: str, engine: str) -> None:
    _job(project, mode="mount" if engine == "fork" else "download")
    options = ["--as", cloud, "--isolation", isolation, "--engine", engine]
    result = project.run(*options, "--", *reversed(WORDS), env={**LIES, "KEY": "s3cr3t"})
    assert result.code == 0, result.err
    _check_ranks(project, cloud)
    for rank, seen in enumerate(_seen(project)):
        if isolation == "netns":
            hosts = seen["env"]["CLOUDTRAIN_HOSTS"]
            assert re.fullmatch(HOSTS[cloud], hosts)
            assert seen["host"] in (hosts.split(",")[rank // 2], f"node-{rank // 2}")
        if engine == "agents":  # the launcher that has come with the job, and what came with it
            assert seen["env"]["PYTHONPATH"].startswith(f"{project.latest}/shipped/code")
    _check_folders(project, result)
    state = json.loads((project.latest / "run.json").read_text())
    assert (state["provider"], state["as"], result.report["as"]) == ("local", cloud, cloud)
    assert f"no place for {cloud} in the job" in result.err
    assert "data.whole, data.shards, outputs.tables, environment.secrets.KEY" in result.err
    assert "s3cr3t" not in "".join(_texts(project.latest))


def _check_ranks(project: Project, cloud: str) -> None:
    for rank, seen in enumerate(_seen(project)):
        env = seen["env"]
        assert [env[name] for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE")] == [
            str(rank), str(rank % 2), str(rank // 2), str(rank // 2), "4",
        ]  # fmt: skip
        assert (env["CLOUDTRAIN_PROVIDER"], env["CLOUDTRAIN_NODES"], env["LOCAL_WORLD_SIZE"]) == (cloud, "2", "2")
        assert env["CLOUDTRAIN_RUN_ID"] == project.latest.name and env["CLOUDTRAIN_ATTEMPT"] == "1"
        assert (env["COLOUR"], env["KEY"], env["WHERE"]) == ("blue", "s3cr3t", env["CLOUDTRAIN_DATA_WHOLE"])
        assert not {"CLUSTER_SPEC", "AZ_BATCH_MASTER_NODE", "AZUREML_NODE_COUNT", "TF_CONFIG"} & set(env)
        assert not [name for name in env if name.startswith("CLOUDTRAIN_SECRET")]
        assert "192.0.2" not in json.dumps(env) and "/nowhere" not in json.dumps(env)
        assert seen["argv"] == [*WORDS, *reversed(WORDS)]
        assert (seen["whole"], seen["shard"]) == ("read me", SHARES[rank // 2])


def _check_folders(project: Project, result: Result) -> None:
    assert result.folder is not None
    folders = {
        "MODEL_DIR": (result.folder / "model", "weights"),
        "OUTPUT_DIR": (result.folder / "output", "said"),
        "OUTPUT_TABLES": (project.folder / "tables", "rows"),
        "CHECKPOINT_DIR": (result.folder / "checkpoints", "step"),
    }
    for variable, (folder, name) in folders.items():
        for node in range(2):
            assert (folder / f"{name}-{node}").read_text() == f"{variable} of {node}"
    assert len(list((result.folder / "metrics").glob("rank-*.jsonl"))) == 4
    assert result.report["metrics"]["loss"] == 0.5


def _texts(folder: Path) -> list[str]:
    return [path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file()]


def test_digits_ends_with_the_same_weights_through_every_contract(project: Project) -> None:
    folder = project.folder / "digits"
    subprocess.run([CLOUDTRAIN, "init", "--template", "digits", str(folder)], check=True, capture_output=True)
    subprocess.run([sys.executable, "prepare.py"], cwd=folder, check=True, capture_output=True)
    digits = Project(folder, project.mark)
    found = {}
    for name, options in {"local": (), **{cloud: ("--as", cloud) for cloud in NAMES}}.items():
        result = digits.run(*options, "--nodes", "2", "--processes", "2", "--", "--epochs", "2")
        assert result.code == 0, result.err
        assert result.report["metrics"]["test_samples"] == 360
        found[name] = _weights(result)
    assert found["sagemaker"] == found["local"]
    assert found["vertex"] == found["local"]
    assert found["azureml"] == found["local"]


def _weights(result: Result) -> dict[str, bytes]:
    import torch

    assert result.folder is not None
    state = torch.load(result.folder / "model" / "model.pt", weights_only=True)
    return {name: tensor.numpy().tobytes() for name, tensor in state.items()}


@pytest.mark.parametrize("cloud", NAMES)
def test_one_node(project: Project, cloud: str) -> None:
    _job(project, args=[])
    result = project.run(
        "--as", cloud, "--nodes", "1", "--processes", "1", "--isolation", "none", env={**LIES, "KEY": "k"}
    )
    assert result.code == 0, result.err
    (seen,) = _seen(project, 1)
    assert (seen["env"]["RANK"], seen["env"]["WORLD_SIZE"], seen["env"]["CLOUDTRAIN_NODES"]) == ("0", "1", "1")
    assert seen["shard"] == sorted(DATA)


def test_what_the_cloud_refuses_is_refused_and_nothing_is_made(project: Project) -> None:
    project.job(extra="tags: {team: '*'}\n")
    text = (project.folder / "job.yaml").read_text().replace("resources: {", "resources: {shm_gib: 4, ")
    project.write("job.yaml", text)
    result = project.run("--as", "sagemaker")
    assert result.code == 2
    assert "job.yaml:3:" in result.err and "resources.shm_gib" in result.err
    assert "tags.team" in result.err  # all at once
    assert not (project.folder / ".cloudtrain").exists()


def test_nodes_that_write_one_file_of_the_model_are_told_apart(project: Project) -> None:
    script = """
import os, pathlib
model = pathlib.Path(os.environ["CLOUDTRAIN_MODEL_DIR"])
(model / "part").mkdir()
(model / "part" / "same").write_text("same")
(model / "part" / "weights").write_text("of " + os.environ["RANK"])
"""
    project.job(script, nodes=2, processes=1)
    result = project.run("--as", "sagemaker", "--isolation", "none")
    assert result.code == 0, result.err
    assert result.folder is not None
    assert "model/part/weights differs between nodes 0 and 1" in result.err
    assert "model/part/same" not in result.err
    assert (result.folder / "model/part/weights").read_text() == "of 0"
    assert (result.folder / "nodes/1/opt/ml/model/part/weights").read_text() == "of 1"


def test_only_what_lies_in_a_nodes_own_folder_is_moved(project: Project) -> None:
    """A script that keeps its model elsewhere, by a link, keeps it there: once the files were moved away from it."""
    script = """
import os, pathlib
env, here = os.environ, pathlib.Path(os.environ["PROJECT"])
model, output = pathlib.Path(env["CLOUDTRAIN_MODEL_DIR"]), pathlib.Path(env["CLOUDTRAIN_OUTPUT_DIR"])
if env["RANK"] == "0":
    model.rmdir()
    model.symlink_to(here / "kept")
    (output / "elsewhere").symlink_to(here / "kept")
    (output / "file").write_text("of 0")
    os.mkfifo(output / "pipe")
else:
    (output / "elsewhere").mkdir()
    (output / "elsewhere/other").write_text("of 1")
    (output / "file").mkdir()
    (output / "file/inside").write_text("of 1")
    (output / "gone").symlink_to("nowhere")
    (output / "two\\nlines").write_text("of 1")
    (model / "weights").write_text("of 1")
"""
    project.write("kept/weights", "mine")
    project.job(script, nodes=2, processes=1)
    result = project.run("--as", "sagemaker", "--isolation", "none")
    assert result.code == 0, result.err
    assert result.folder is not None
    assert {path.name: path.read_text() for path in (project.folder / "kept").iterdir()} == {"weights": "mine"}
    assert [path.name for path in (result.folder / "model").iterdir()] == ["weights"]
    assert sorted(path.name for path in (result.folder / "output").iterdir()) == [
        "elsewhere", "file", "gone", "pipe", "two\nlines",
    ]  # fmt: skip
    assert "model of node 0 is no folder of the node's any more" in result.err
    assert "output/elsewhere/other of node 1 stays in " in result.err
    assert "output/file/inside of node 1 stays in " in result.err


def test_a_file_where_results_are_to_go_is_named(project: Project) -> None:
    project.job(nodes=1, extra="outputs: {made: {local: taken}}\n")
    project.write("taken", "mine")
    result = project.run("--as", "sagemaker")
    assert result.code == 3
    assert f"cannot write {project.folder}/taken: File exists" in result.err


def test_a_failed_rank_is_reported_as_ever(project: Project) -> None:
    project.job("import os\nif os.environ['RANK'] == '1':\n    raise ValueError('too bad')\n", nodes=2, processes=1)
    result = project.run("--as", "sagemaker", "--isolation", "none")
    assert result.code == 1
    assert result.report["root"]["rank"] == 1 and "too bad" in result.report["root"]["message"]
    assert result.folder is not None
    assert "too bad" in (result.folder / "nodes/1/opt/ml/output/failure").read_text()


def test_what_is_stopped_is_stopped_as_ever_and_its_model_kept(project: Project) -> None:
    script = """
import os, pathlib, signal, sys, time
def stop(*_):
    pathlib.Path(os.environ["CLOUDTRAIN_MODEL_DIR"], "half-" + os.environ["RANK"]).write_text("half")
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
pathlib.Path(os.environ["PROJECT"], "up-" + os.environ["RANK"]).touch()
time.sleep(600)
"""
    project.job(script, nodes=2, processes=1)
    running = project.start("--as", "sagemaker", "--isolation", "none")
    running.wait_for_files("up-0", "up-1")
    running.signal(signal.SIGTERM)
    result = running.end()
    assert (result.code, result.report["state"]) == (143, "PREEMPTED")
    assert result.folder is not None
    assert sorted(path.name for path in (result.folder / "model").iterdir()) == ["half-0", "half-1"]


def test_it_continues_from_an_earlier_run(project: Project) -> None:
    script = """
import os, pathlib
for path in pathlib.Path(os.environ["CLOUDTRAIN_CHECKPOINT_DIR"]).iterdir():
    print("found", path.read_text())
pathlib.Path(os.environ["CLOUDTRAIN_CHECKPOINT_DIR"], "step").write_text("step 7")
"""
    project.job(script, nodes=1, processes=1)
    first = "import cloudtrain as ct; ct.run('job.yaml', as_='vertex', isolation='none').raise_if_failed()"
    subprocess.run([sys.executable, "-c", first], cwd=project.folder, check=True)
    result = project.run("--as", "sagemaker", "--isolation", "none", "--resume", "latest")
    assert result.code == 0, result.err
    assert "found step 7" in result.out


def test_an_unknown_cloud_is_refused(project: Project) -> None:
    project.job()
    result = project.run("--as", "batch")
    assert result.code == 2
    assert "sagemaker" in result.err
    with pytest.raises(SpecError, match="as_ must be one of sagemaker, vertex, azureml, not 'batch'"):
        run(project.folder / "job.yaml", as_="batch")  # type: ignore[arg-type]


def test_a_plain_run_loads_nothing_of_the_clouds() -> None:
    program = "import sys, cloudtrain.cli.run, cloudtrain.sdk; print(*(name for name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    of_clouds = ("cloudtrain.providers.registry", "cloudtrain.settings", "cloudtrain.rendering")
    assert not set(of_clouds) & set(loaded)
    assert "cloudtrain.providers.local.run" in loaded
