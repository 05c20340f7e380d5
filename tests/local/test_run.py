"""What a run is: what its ranks see, what it keeps, how it starts from any shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.local.project import HELLO, Project, Running

SEES = """
import json, os, pathlib, socket, sys, threading
seen = {
    "argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "path0": sys.path[0], "host": socket.gethostname(),
    "threads": threading.active_count(), "stdin": sys.stdin.read(), "main": sys.modules["__main__"].__file__,
}
pathlib.Path(os.environ["PROJECT"], f"seen-{os.environ['RANK']}.json").write_text(json.dumps(seen))
"""

FOREIGN = {
    "RANK": "7", "WORLD_SIZE": "99", "LOCAL_RANK": "5", "MASTER_ADDR": "198.51.100.1", "MASTER_PORT": "1",
    "NODE_RANK": "3", "GROUP_RANK": "4", "PET_NNODES": "8", "PET_NODE_RANK": "2", "PET_MASTER_ADDR": "198.51.100.2",
    "SLURM_JOB_ID": "1", "SLURM_PROCID": "3", "OMPI_COMM_WORLD_RANK": "2", "PMI_RANK": "1", "TF_CONFIG": "{}",
    "SM_HOSTS": "[]", "SM_TRAINING_ENV": "{}", "AZUREML_EXPERIMENT_ID": "x", "CLUSTER_SPEC": "{}",
    "TORCHELASTIC_RUN_ID": "old", "TORCHELASTIC_USE_AGENT_STORE": "False", "TORCHELASTIC_RESTART_COUNT": "3",
    "CLOUDTRAIN_NODE_RANK": "9", "CLOUDTRAIN_HOSTS": "a,b,c", "ACCELERATE_USE_FSDP": "true",
}  # fmt: skip


def _seen(project: Project, rank: int) -> dict[str, object]:
    data: dict[str, object] = json.loads((project.folder / f"seen-{rank}.json").read_text())
    return data


@pytest.mark.parametrize("engine", ["fork", "agents"])
@pytest.mark.parametrize("isolation", ["none", "netns"])
def test_what_a_rank_sees(project: Project, isolation: str, engine: str) -> None:
    project.write("data/train/x.txt", "x")
    project.write(".gitignore", "data/\n")
    extra = "data: {train: {uri: {local: data/train}}}\noutputs: {extra: {local: out/extra}}\n"
    extra += "args: ['${data.train}', '${outputs.extra}', '${checkpoint}', '$HOME', '${{data.train}}']\n"
    project.job(SEES, extra=extra)
    result = project.run("--isolation", isolation, "--engine", engine)
    assert result.code == 0, result.err
    run = result.folder
    assert run is not None
    for rank in range(4):
        seen = _seen(project, rank)
        env = seen["env"]
        assert isinstance(env, dict)
        node, local = divmod(rank, 2)
        assert [env[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")] == [
            str(rank), str(local), "4", "2",
        ]  # fmt: skip
        assert (env["NODE_RANK"], env["GROUP_RANK"], env["CLOUDTRAIN_NODES"]) == (str(node), str(node), "2")
        assert env["MASTER_ADDR"] == ("node-0" if isolation == "netns" else "127.0.0.1")
        assert env["CLOUDTRAIN_RUN_ID"] == run.name and env["CLOUDTRAIN_ATTEMPT"] == "1"
        assert env["CLOUDTRAIN_PROVIDER"] == "local"
        assert env["CLOUDTRAIN_DATA_TRAIN"] == str(project.folder / "data/train")
        assert env["CLOUDTRAIN_OUTPUT_EXTRA"] == str(project.folder / "out/extra")
        assert env["CLOUDTRAIN_CHECKPOINT_DIR"] == str(run / "checkpoints")
        assert env["CLOUDTRAIN_MODEL_DIR"] == str(run / "model")
        assert env["OMP_NUM_THREADS"] == "1"
        env = {name: value for name, value in env.items() if not name.startswith("PYTEST_")}  # xdist's
        assert not [name for name in env if "FD" in name or "WORKER" in name or name.startswith("CLOUDTRAIN_NODE_")]
        assert seen["argv"] == [
            "train.py", str(project.folder / "data/train"), str(project.folder / "out/extra"), str(run / "checkpoints"),
            "$HOME", "${{data.train}}",
        ]  # fmt: skip
        assert seen["cwd"] == seen["path0"] == str(run / "code")
        assert (seen["stdin"], seen["threads"], seen["main"]) == ("", 1, "train.py")
        if isolation == "netns":
            assert seen["host"] == f"node-{node}"
            assert env["CLOUDTRAIN_HOSTS"] == "node-0,node-1"


def test_a_shell_full_of_foreign_variables(project: Project) -> None:
    project.job(HELLO + SEES)
    result = project.run("--isolation", "none", env=FOREIGN)
    assert result.code == 0, result.err
    assert result.out.count("sum 6.0 world 4") == 4
    dirty = _seen(project, 1)["env"]
    project.job(HELLO + SEES)
    assert project.run("--isolation", "none").code == 0
    clean = _seen(project, 1)["env"]
    assert isinstance(dirty, dict) and isinstance(clean, dict)
    changing = {"CLOUDTRAIN_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE"}
    changing |= {name for name in clean if name.startswith("CLOUDTRAIN_") and name.endswith("_DIR")}
    for name in changing:
        dirty.pop(name, None), clean.pop(name, None)
    assert dirty == clean


def test_two_runs_at_once(project: Project) -> None:
    script = HELLO.replace("total = ", "import time; time.sleep(1); total = ")
    project.job(script)
    for isolation in ("none", "netns"):
        runs = [project.start("--isolation", isolation, "--json") for _ in range(2)]
        results = [run.end() for run in runs]
        assert [result.code for result in results] == [0, 0], [result.err for result in results]
        reports = [json.loads(result.out) for result in results]
        assert len({report["run_id"] for report in reports}) == 2
        assert all(result.err.count("sum 6.0 world 4") == 4 for result in results)


@pytest.mark.parametrize(("nodes", "processes"), [(1, 1), (1, 2), (3, 1)])
def test_other_shapes(project: Project, nodes: int, processes: int) -> None:
    project.job()
    result = project.run("--nodes", str(nodes), "--processes", str(processes))
    world = nodes * processes
    assert result.code == 0, result.err
    assert result.out.count(f"sum {world * (world - 1) / 2} world {world}") == world


def test_a_module_runs_like_python_m(project: Project) -> None:
    project.write("pkg/__init__.py", "")
    project.write("pkg/sub.py", "import sys, pkg\nprint(__name__, __package__, sys.argv[1:])\n")
    project.write("job.yaml", "name: m\nmodule: pkg.sub\nargs: [a]\n")
    result = project.run()
    assert "[0/0] __main__ pkg ['a']" in result.out


def test_classes_of_the_script_can_be_pickled_and_sent_to_loader_workers(project: Project) -> None:
    script = """
import pickle, torch
class Item(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return torch.tensor(i)
if __name__ == "__main__":
    assert type(pickle.loads(pickle.dumps(Item()))) is Item
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(Item(), num_workers=2, multiprocessing_context=context)
        print(context, sorted(int(x) for x in loader))
"""
    project.job(script, nodes=1, processes=1)
    for engine in ("fork", "agents"):
        result = project.run("--isolation", "none", "--engine", engine)
        assert result.code == 0, result.err
        assert "fork [0, 1, 2, 3]" in result.out and "spawn [0, 1, 2, 3]" in result.out


def test_ranks_draw_different_numbers_unless_seeded(project: Project) -> None:
    project.job("import random, numpy, uuid\nprint('drawn', random.random(), numpy.random.rand(), uuid.uuid4())\n")
    result = project.run("--isolation", "none", "--engine", "fork")
    drawn = [line.split("drawn ")[1].split() for line in result.out.splitlines() if "drawn" in line]
    assert len(drawn) == 4
    assert all(len({draws[i] for draws in drawn}) == 4 for i in range(3))


def test_exit_functions_and_threads_end_as_in_an_interpreter(project: Project) -> None:
    script = """
import atexit, threading, time
atexit.register(lambda: print("atexit", flush=True))
threading.Thread(target=lambda: (time.sleep(0.3), print("thread", flush=True))).start()
print("main")
"""
    project.job(script, nodes=1, processes=1)
    assert project.run().log(0) == b"main\nthread\natexit\n"


def test_variables_that_torch_reads_when_it_is_loaded(project: Project) -> None:
    project.job("import torch\nprint('threads', torch.get_num_threads())\n", nodes=1, processes=2,
                extra="environment: {env: {OMP_NUM_THREADS: 3, PYTHONHASHSEED: 0}}\n")  # fmt: skip
    result = project.run("--engine", "fork")
    assert result.out.count("threads 3") == 2


def test_secrets_reach_the_script_and_no_file(project: Project) -> None:
    project.job("import os\nprint(len(os.environ['TOKEN']))\n", nodes=1, processes=1,
                extra="environment: {secrets: {TOKEN: {local: 'env:MY_TOKEN'}}}\n")  # fmt: skip
    result = project.run(env={"MY_TOKEN": "s3cr3t-value"})
    assert result.code == 0 and result.log(0) == b"12\n"
    assert result.folder is not None
    for path in result.folder.rglob("*"):
        assert not path.is_file() or b"s3cr3t-value" not in path.read_bytes()
    missing = project.run()
    assert missing.code == 3 and "MY_TOKEN" in missing.err


def test_objects_are_shared_out(project: Project) -> None:
    for index in range(5):
        project.write(f"data/{index}.txt", str(index))
    project.write(".gitignore", "data/\n")
    project.job("import os\nprint('sees', sorted(os.listdir(os.environ['CLOUDTRAIN_DATA_ALL'])))\n", processes=1,
                extra="data: {all: {uri: {local: data}, shard: by-object}}\n")  # fmt: skip
    result = project.run()
    assert "[0/0] sees ['0.txt', '2.txt', '4.txt']" in result.out
    assert "[1/1] sees ['1.txt', '3.txt']" in result.out


def test_a_channel_without_a_local_place(project: Project) -> None:
    project.write("elsewhere/x", "")
    project.job("import os\nprint(os.listdir(os.environ['CLOUDTRAIN_DATA_TRAIN']))\n", nodes=1, processes=1,
                extra="data: {train: {uri: {sagemaker: s3://b/train/}}}\n")  # fmt: skip
    result = project.run()
    assert result.code == 2
    assert "data.train" in result.err and "--data train=PATH" in result.err
    assert "['x']" in project.run("--data", "train=elsewhere").out
    assert project.run("--data", "train=nowhere").code == 2
    assert "no such channel" in project.run("--data", "trian=elsewhere").err


def test_quiet_shows_the_end_only(project: Project) -> None:
    project.job(nodes=2, processes=1, extra="tags: {team: vision}\n")
    told = project.run().err
    assert "not used by a local run" in told
    result = project.run("--quiet")
    assert result.out == ""
    assert result.err.startswith("SUCCEEDED after ")


def test_frameworks_of_one_process_per_node_are_refused_with_a_reason(project: Project) -> None:
    project.job(extra="framework: jax\n", processes=1)
    result = project.run()
    assert result.code == 2
    assert "framework: jax runs one process per node" in result.err


def test_an_accelerator_does_not_stop_a_local_run(project: Project) -> None:
    project.write("train.py", HELLO)
    resources = "{nodes: 1, accelerator: A100-80GB, processes_per_node: 2}"
    project.write("job.yaml", f"name: a\nentry: train.py\nresources: {resources}\n")
    result = project.run()
    assert result.code == 0, result.err
    assert "the job names A100-80GB; this run trains on CPU" in result.err


def test_a_problem_in_the_job_file_is_a_message(project: Project) -> None:
    project.job(extra="nods: 2\n")
    result = project.run()
    assert result.code == 2
    assert "job.yaml:4:1: nods: unknown key" in result.err
    assert "Traceback" not in result.err
    assert project.run(job="nothere.yaml").code == 2


def test_the_end_report_on_standard_output_and_nothing_else(project: Project) -> None:
    project.job()
    result = project.run("--json")
    report = json.loads(result.out)
    assert report["state"] == "SUCCEEDED" and report["exit_code"] == 0
    assert "sum 6.0 world 4" in result.err
    assert result.report == report


def test_only_the_wanted_ranks_are_shown_and_all_are_kept(project: Project) -> None:
    project.job()
    result = project.run("--ranks", "0,3")
    assert {line[:5] for line in result.out.splitlines()} == {"[0/0]", "[1/3]"}
    assert all(result.log(rank) == b"sum 6.0 world 4\n" for rank in range(4))


def test_from_python(project: Project) -> None:
    project.job()
    program = """
import cloudtrain as ct
run = ct.run("job.yaml", nodes=1, processes=2, isolation="none")
status = run.wait()
lines = [str(line) for line in run.logs(0)]
print(status.state, status.exit_code, lines, len(list(run.logs())), run.report()["run_id"] == run.run_id)
failed = ct.run(ct.Job(name="bad", entry="bad.py"), isolation="none")
try:
    failed.raise_if_failed()
except ct.JobFailed as error:
    print(error)
try:
    ct.run(ct.Job(name="none", entry="none.py"))
except ct.SpecError as error:
    print("refused", error.exit_code)
"""
    project.write("bad.py", "raise RuntimeError('no good')\n")
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=project.folder, capture_output=True, text=True, check=False,
        env={**os.environ, "CT_TEST_MARK": project.mark},
    )  # fmt: skip
    lines = result.stdout.splitlines()
    assert lines[0] == "SUCCEEDED 0 ['[0/0] sum 1.0 world 2'] 2 True", result.stderr
    assert "RuntimeError: no good" in result.stdout
    assert lines[-1] == "refused 2"


def test_ranks_that_never_meet_are_pointed_out(project: Project) -> None:
    project.job("print('alone')\n")
    result = project.run("--isolation", "none")
    assert result.code == 0
    assert "no rank joined a process group: each of the 4 trained by itself" in result.err
    project.job()
    assert "trained by itself" not in project.run("--isolation", "none").err


@pytest.mark.parametrize(
    ("framework", "expected"),
    [
        ("pytorch", {"ACCELERATE_USE_CPU": "true"}),
        ("lightning", {"PL_TRAINER_DEVICES": "2", "PL_TRAINER_NUM_NODES": "2", "PL_TRAINER_ACCELERATOR": "cpu"}),
    ],
)
def test_frameworks_are_told_of_the_cluster(project: Project, framework: str, expected: dict[str, str]) -> None:
    project.job(SEES, extra=f"framework: {framework}\nenvironment: {{env: {{LT_DEVICES: mine}}}}\n")
    assert project.run("--isolation", "none").code == 0
    env = _seen(project, 3)["env"]
    assert isinstance(env, dict)
    assert expected.items() <= env.items()
    assert env["LT_DEVICES"] == "mine"  # the job's own word wins


def test_types_of_the_script_are_not_text(project: Project) -> None:
    """The launcher's own __future__ imports are not the script's."""
    script = (
        "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 1\nprint(dataclasses.fields(A)[0].type)\n"
    )
    project.job(script, nodes=1, processes=1)
    assert project.run().log(0) == b"<class 'int'>\n"


@pytest.mark.parametrize("variable", ["PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE"])
def test_pythons_own_variables(project: Project, variable: str) -> None:
    project.job()
    assert project.run(env={variable: "1"}).code == 0


@pytest.mark.parametrize("threads", ["2,1", "", "many"])
def test_any_text_in_omp_num_threads(project: Project, threads: str) -> None:
    project.job()
    assert project.run("--isolation", "none", env={"OMP_NUM_THREADS": threads}).code == 0


def test_a_secret_may_look_like_another_launchers_variable(project: Project) -> None:
    extra = "environment: {secrets: {FLUX_API_KEY: {local: 'env:MY_KEY'}}}\n"
    project.job("import os\nprint('key', os.environ['FLUX_API_KEY'])\n", nodes=1, processes=1, extra=extra)
    assert "key abc" in project.run(env={"MY_KEY": "abc"}).out


def test_what_is_found_wrong_before_the_start_leaves_no_run(project: Project) -> None:
    project.job(extra="environment: {secrets: {TOKEN: {local: 'env:NOT_SET_HERE'}}}\n")
    assert project.run().code == 3
    assert not (project.folder / ".cloudtrain").exists()


def test_resuming_finds_the_checkpoints_of_the_run_before(project: Project) -> None:
    script = """
import os, pathlib
folder = pathlib.Path(os.environ["CLOUDTRAIN_CHECKPOINT_DIR"])
print("found", sorted(path.name for path in folder.iterdir()))
(folder / os.environ["CLOUDTRAIN_RUN_ID"]).touch()
"""
    project.job(script, nodes=1, processes=1, extra="checkpoint: {uri: {local: kept}}\n")
    first, second = project.run(), project.run("--resume", "latest")
    third = project.run("--resume", "latest")
    assert first.folder and second.folder
    assert "found []" in first.out
    assert f"found ['{first.folder.name}']" in second.out
    assert f"found {sorted([first.folder.name, second.folder.name])}" in third.out
    assert "found []" in project.run().out  # a new run starts anew
    assert project.run("--resume", "no-such-run").code == 2


def test_stop_from_another_process(project: Project) -> None:
    from cloudtrain import Run

    project.job("import time\ntime.sleep(1000)\n")
    running = project.start("--isolation", "none")
    running.wait_for((project.folder / ".cloudtrain/runs/latest/run.json").exists, "run.json")
    run = Run.open("latest", project.folder)
    run.stop()
    result = running.end()
    assert (result.code, result.report["state"]) == (130, "STOPPED")
    assert run.status().exit_code == 130


def test_a_program_that_is_interrupted_stops_its_run(project: Project) -> None:
    project.job("import time\ntime.sleep(1000)\n")
    program = "import cloudtrain as ct\nct.run('job.yaml', isolation='none')\n"
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=project.folder, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "CT_TEST_MARK": project.mark},
    )  # fmt: skip
    Running(process, project).wait_for((project.folder / ".cloudtrain/runs/latest/run.json").exists, "run.json")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert "KeyboardInterrupt" in err
    assert json.loads((project.latest / "run.json").read_text())["state"] == "STOPPED"


@pytest.mark.parametrize("options", [{"nodes": 0}, {"isolation": "bogus"}, {"grace": float("nan")}])
def test_options_from_python_are_checked(project: Project, options: dict[str, object]) -> None:
    import cloudtrain

    project.job()
    with pytest.raises(cloudtrain.SpecError, match=next(iter(options))):
        cloudtrain.run(project.folder / "job.yaml", **options)  # type: ignore[arg-type]


def test_a_rank_to_show_that_does_not_exist(project: Project) -> None:
    project.job()
    assert "there is no rank 9; the ranks are 0 to 3" in project.run("--ranks", "9", "--isolation", "none").err
