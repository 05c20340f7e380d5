"""The fault file: what it may say, what each entry does, and how a wrong one is told."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from cloudtrain.emulator.azureml import routes
from cloudtrain.emulator.callnames import CALLS
from cloudtrain.emulator.faults import CallFault, Faults, JobFaults, Loss, Preemption
from cloudtrain.emulator.sagemaker import operations, verbs
from cloudtrain.emulator.vertex import rest
from cloudtrain.errors import SpecError
from cloudtrain.spec.problems import JobFileError


def _faults(folder: Path, text: str) -> Faults:
    file = folder / "faults.yaml"
    file.write_text(text)
    return Faults.load(file)


def test_without_a_file_nothing_goes_wrong() -> None:
    none = Faults.none()
    assert none.call("sagemaker", "CreateTrainingJob") is None
    assert none.job("vertex", "digits-1") == JobFaults()
    assert none.logs("azureml") == frozenset()


@pytest.mark.parametrize(
    ("entry", "provider", "fault"),
    [
        ("fault: throttle", "sagemaker", CallFault("throttle", 400)),
        ("fault: throttle", "vertex", CallFault("throttle", 429)),
        ("fault: throttle", "azureml", CallFault("throttle", 429)),
        ("fault: expired-token", "sagemaker", CallFault("expired-token", 400)),
        ("fault: expired-token", "azureml", CallFault("expired-token", 401)),
        ("fault: error", "vertex", CallFault("error", 500)),
        ("fault: error, status: 503", "vertex", CallFault("error", 503)),
        ("fault: slow, seconds: 0.5", "vertex", CallFault("slow", 0, 0.5)),
        ("fault: slow, seconds: 2m", "vertex", CallFault("slow", 0, 120.0)),
        ("fault: lost", "vertex", CallFault("lost")),
        ("fault: cut", "vertex", CallFault("cut")),
    ],
)
def test_a_call(tmp_path: Path, entry: str, provider: str, fault: CallFault) -> None:
    faults = _faults(tmp_path, f"calls: [{{{entry}}}]")
    assert faults.call(provider, "Anything") == fault
    assert faults.call(provider, "Anything") is None, "once, unless the file says more"


def test_calls_are_told_apart_by_name_and_provider_and_counted_for_each_entry(tmp_path: Path) -> None:
    faults = _faults(
        tmp_path,
        "calls:\n"
        "  - {operation: 'Create*', provider: sagemaker, fault: throttle, times: 2}\n"
        "  - {operation: CreateTrainingJob, fault: lost}\n",
    )
    assert faults.call("sagemaker", "") is None, "no call of the service"
    assert faults.call("sagemaker", "createTrainingJob") is None
    assert faults.call("vertex", "CreateCustomJob") is None
    kinds = [fault.kind if fault else None for fault in (faults.call("sagemaker", "CreateTrainingJob") for _ in "four")]
    assert kinds == ["throttle", "throttle", "lost", None]


def test_a_share_of_the_calls_is_the_same_every_time(tmp_path: Path) -> None:
    rounds = []
    for _ in range(2):
        faults = _faults(tmp_path, "calls: [{fault: error, share: 0.25}]")
        rounds.append([faults.call("vertex", "GetCustomJob") is not None for _ in range(4000)])
    assert rounds[0] == rounds[1]
    assert 0.2 < sum(rounds[0]) / 4000 < 0.3


def test_many_threads_get_each_fault_once(tmp_path: Path) -> None:
    faults, found = _faults(tmp_path, "calls: [{fault: lost, times: 100}]"), Counter[bool]()
    lock = threading.Lock()

    def ask() -> None:
        hits = [faults.call("vertex", "X") is not None for _ in range(100)]
        with lock:
            found.update(hits)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {True: 100, False: 700}


def test_jobs(tmp_path: Path) -> None:
    faults = _faults(
        tmp_path,
        "jobs:\n"
        "  - {name: 'digits-*', provider: vertex, fault: quota, times: 1}\n"
        "  - {name: 'taken-*', fault: preempt, at: 5s, times: 2}\n"
        "  - {name: 'taken-*', fault: preempt-without-notice}\n"
        "  - {name: 'taken-*', fault: lose-node, node: 1, at: 0.5s}\n"
        "  - {name: 'odd', fault: unknown-state, state: 'Hibernating'}\n"
        "  - {name: 'odd', fault: image-missing}\n"
        "  - {name: 'full', fault: capacity}\n",
    )
    assert faults.job("sagemaker", "digits-1") == JobFaults()
    assert [faults.job("vertex", "digits-1").refuse for _ in range(2)] == ["quota", None]
    assert [faults.job("vertex", "full").refuse for _ in range(2)] == ["capacity", "capacity"]
    assert faults.job("azureml", "odd") == JobFaults(image_missing=True, unknown_state="Hibernating")
    for _ in range(2):  # of every such job
        assert faults.job("azureml", "taken-1") == JobFaults(
            preempt=(Preemption(5.0, True), Preemption(5.0, True), Preemption(0.0, False)), lose=(Loss(1, 0.5),)
        )


def test_logs(tmp_path: Path) -> None:
    faults = _faults(tmp_path, "logs: [{fault: late}, {fault: empty-pages, provider: sagemaker}]")
    assert faults.logs("vertex") == {"late"}
    assert faults.logs("sagemaker") == {"late", "empty-pages"}


def test_everything_wrong_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    wrong = (
        "calls:\n"
        "  - {fault: throtle}\n"
        "  - {fault: slow}\n"
        "  - {fault: lost, status: 500}\n"
        "  - {fault: error, share: 1.5}\n"
        "  - {fault: error, share: 0.5, times: 3}\n"
        "  - {fault: error, provider: aws}\n"
        "job: []\n"
        "jobs:\n"
        "  - {name: x}\n"
        "  - {fault: lose-node, times: 2}\n"
        "  - {fault: preempt, at: soon}\n"
        "  - preempt\n"
        "logs: {fault: late}\n"
    )
    with pytest.raises(SpecError) as caught:
        _faults(tmp_path, wrong)
    lines = caught.value.message.splitlines()
    places = [line.removeprefix(f"{tmp_path / 'faults.yaml'}:").split(": ")[:2] for line in lines]
    assert places == [
        ["2:13", "calls[0].fault"],
        ["3:13", "calls[1].fault"],
        ["4:19", "calls[2].status"],
        ["5:27", "calls[3].share"],
        ["6:27", "calls[4].share"],
        ["7:30", "calls[5].provider"],
        ["8:1", "job"],
        ["10:5", "jobs[0].fault"],
        ["11:13", "jobs[1].fault"],
        ["11:24", "jobs[1].times"],
        ["12:26", "jobs[2].at"],
        ["13:5", "jobs[3]"],
        ["14:7", "logs"],
    ]
    assert "did you mean 'throttle'?" in lines[0]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("operation: CreateTrainigJob", "did you mean 'CreateTrainingJob'?"),
        ("operation: Jobs_Creat, provider: azureml", "did you mean 'Jobs_"),
        ("operation: CreateTrainingJob, provider: vertex", "is no call that is known"),
        ("operation: Nothing", "docs/emulate.md lists them, and a pattern such as 'List*' is not checked"),
    ],
)
def test_a_call_that_would_never_come(tmp_path: Path, entry: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        _faults(tmp_path, f"calls: [{{fault: lost, {entry}}}]")
    assert caught.value.message.startswith(f"{tmp_path / 'faults.yaml'}:1:34: calls[0].operation: ")
    assert said in caught.value.message


def test_the_calls_that_may_be_named_are_those_that_are_answered() -> None:
    """Of AWS those of SageMaker and S3, which the emulator tells apart itself; more of other services."""
    assert set(CALLS["azureml"]) == set(routes.OPERATIONS)
    assert set(CALLS["vertex"]) == {str(rule.endpoint) for rule in rest.CALLS.iter_rules()}
    assert set(CALLS["sagemaker"]) >= {*verbs.CALLS, *operations.OF_S3}


def test_what_has_not_happened(tmp_path: Path) -> None:
    faults = _faults(
        tmp_path,
        "calls:\n"
        "  - {operation: GetObject, provider: sagemaker, fault: lost}\n"
        "  - {operation: 'Create*', fault: throttle}\n"
        "jobs: [{name: 'digits-*', fault: preempt, at: 5s}, {fault: quota}, {fault: lose-node, node: 1}]\n",
    )
    everything = [
        "calls[0] (lost of GetObject on sagemaker)", "calls[1] (throttle of Create*)", "jobs[0] (preempt of digits-*)",
        "jobs[1] (quota of *)", "jobs[2] (lose-node of *)",
    ]  # fmt: skip
    assert faults.unused() == everything
    faults.call("sagemaker", "PutObject")
    faults.call("vertex", "GetObject")
    assert faults.unused() == everything
    faults.call("vertex", "CreateCustomJob")
    found = faults.job("vertex", "digits-1")
    assert faults.unused() == [everything[0], everything[2], everything[4]], "what comes later has yet to"
    found.preempt[0].happens()
    assert faults.unused() == [everything[0], everything[4]]


@pytest.mark.parametrize("text", ["", "~", "{}", "calls:\njobs:\nlogs:\n", "# nothing\n"])
def test_an_empty_file_is_no_fault(tmp_path: Path, text: str) -> None:
    assert _faults(tmp_path, text).call("vertex", "X") is None


@pytest.mark.parametrize("text", ["[1, 2]", "calls: [}", "a\x00b", "x"])
def test_what_is_no_fault_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError, match=r"faults\.yaml:1:\d+: "):
        _faults(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml:1:1: cannot be read: No such file"):
        Faults.load(tmp_path / "nowhere.yaml")


def test_an_alias_inside_its_own_anchor_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("calls: &all [*all]\n")
    with pytest.raises(JobFileError) as caught:
        Faults.load(path)
    assert [problem.message for problem in caught.value.problems] == ["an alias stands inside its own anchor"]
