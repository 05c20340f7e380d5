"""What failed first: a cause comes before what merely followed from it, whichever was heard first."""

from __future__ import annotations

import itertools

import pytest

from cloudtrain_launch.failure import Failure, describe_status, root_cause

DISTRIBUTED = (
    'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    dist.all_reduce(x)\n'
    '  File "/venv/lib/python3.11/site-packages/torch/distributed/{file}", line 1, in f\n    g()\n{error}\n'
)
OWN = 'Traceback (most recent call last):\n  File "/code/train.py", line 7, in <module>\n    f()\n{error}\n'

# Messages of gloo, NCCL and torch's store when the other side is gone (torch 2.1 to 2.13).
ECHOES = [
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4242",
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Read error: Connection reset by peer",
    "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1.",
    "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via "
    "c10d key-value store by key '0', but store->get('0') got error: Connection was likely closed.",
    "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed.",
    "RuntimeError: Gloo connectFullMesh failed with timed out connecting",
]


def _exception(message: str, when: float, traceback: str = OWN, rank: int = 0) -> Failure:
    return Failure("exception", 0, f"rank {rank} on node 0: {message}", when, rank, 1, traceback.format(error=message))


CAUSE = _exception("ValueError: no such column", 5.0, rank=3)


@pytest.mark.parametrize("echo", ECHOES)
def test_a_cause_comes_before_an_echo_that_was_quicker(echo: str) -> None:
    by_message = _exception(echo, 1.0)
    assert by_message.is_echo
    assert root_cause([by_message, CAUSE]) is CAUSE


def test_whatever_torch_distributed_raises_is_an_echo() -> None:
    trace = DISTRIBUTED.format(file="distributed_c10d.py", error="{error}")
    echo = _exception("RuntimeError: something new", 1.0, trace)
    assert root_cause([echo, CAUSE]) is CAUSE


def test_the_users_own_words_about_a_connection_are_no_echo() -> None:
    own = _exception("requests.ConnectionError: could not reach the data base", 1.0)
    assert not own.is_echo
    assert root_cause([CAUSE, own]) is own


@pytest.mark.parametrize("kind", ["signal", "exit", "node-lost", "start-timeout", "not-started", "launcher"])
def test_what_is_no_exception_is_a_cause(kind: str) -> None:
    cause = Failure(kind, 1, "rank 2: connection closed by peer", 9.0, 2, -9)
    assert root_cause([_exception(ECHOES[0], 1.0), cause]) is cause


def test_the_earliest_leads_in_whatever_order_they_were_heard() -> None:
    later = _exception("KeyError: 'x'", 6.0, rank=1)
    failures = [CAUSE, later, _exception(ECHOES[0], 1.0), _exception(ECHOES[2], 2.0)]
    assert all(root_cause(order) is CAUSE for order in itertools.permutations(failures))
    echoes = failures[2:]
    assert root_cause(reversed(echoes)) is echoes[0]
    assert root_cause([]) is None


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("exit", 7, 7), ("exit", 255, 255), ("signal", -9, 137), ("signal", -11, 139), ("exception", 1, 1),
        ("exception", None, 1), ("node-lost", None, 143), ("start-timeout", None, 124), ("not-started", None, 124),
        ("launcher", None, 125), ("exit", 0, 1),
    ],
)  # fmt: skip
def test_exit_codes(kind: str, status: int | None, code: int) -> None:
    assert Failure(kind, 0, "", 0.0, 0, status).exit_code == code


def test_a_failure_survives_its_way_to_the_other_nodes() -> None:
    assert Failure.from_message(CAUSE.to_message()) == CAUSE
    assert Failure.from_message({**CAUSE.to_message(), "new_field": 1}) == CAUSE


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (7, "exited with code 7"),
        (-9, "was killed by SIGKILL (often the kernel, out of memory)"),
        (-11, "was killed by SIGSEGV"),
        (-63, "was killed by signal 63"),
    ],
)
def test_a_status_in_words(status: int, text: str) -> None:
    assert describe_status(status) == text
