"""GPUs are shared out without overlap. The driver's tool is a stand-in that lists as many as the test says."""

from __future__ import annotations

import os

from tests.local.project import Project, Result

SHOWS = "import os\nprint('devices', repr(os.environ.get('CUDA_VISIBLE_DEVICES')))\n"


def _run(project: Project, gpus: int, *options: str, **env: str) -> Result:
    lines = "\n".join(f"echo 'GPU {index}: a stand-in (UUID: GPU-{index})'" for index in range(gpus))
    project.write("bin/nvidia-smi", f'#!/bin/sh\ntest "$1" = -L || exit 2\n{lines}\n').chmod(0o755)
    project.job(SHOWS)
    path = f"{project.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return project.run(*options, env={"PATH": path, **env})


def _devices(result: Result) -> list[str]:
    assert result.code == 0, result.err
    return sorted(line.replace("devices ", "") for line in result.out.splitlines())


def test_every_node_gets_gpus_of_its_own(project: Project) -> None:
    result = _run(project, 4)
    assert _devices(result) == ["[0/0] '0,1'", "[0/1] '0,1'", "[1/2] '2,3'", "[1/3] '2,3'"]
    assert result.report["device"] == "GPU"


def test_what_the_shell_allows_is_what_is_shared_out(project: Project) -> None:
    result = _run(project, 8, "--processes", "1", CUDA_VISIBLE_DEVICES="5,GPU-7,2")
    assert _devices(result) == ["[0/0] '5'", "[1/1] 'GPU-7'"]


def test_too_few_gpus_train_on_cpu_and_say_so(project: Project) -> None:
    result = _run(project, 3)
    assert _devices(result) == ["[0/0] ''", "[0/1] ''", "[1/2] ''", "[1/3] ''"]
    assert "4 processes need as many GPUs, this machine shows 3: training on CPU" in result.err


def test_gpus_asked_for_and_not_there_are_an_error(project: Project) -> None:
    result = _run(project, 3, "--device", "gpu")
    assert result.code == 2
    assert "need as many GPUs, this machine shows 3" in result.err


def test_cpu_asked_for_hides_the_gpus(project: Project) -> None:
    assert set(_devices(_run(project, 4, "--device", "cpu"))) == {
        f"[{n}/{r}] ''" for n, r in [(0, 0), (0, 1), (1, 2), (1, 3)]
    }
