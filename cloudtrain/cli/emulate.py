"""``cloudtrain emulate``: a command with the clouds on this machine."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, get_args

import click

from cloudtrain.errors import MissingError
from cloudtrain.providers.local.options import Cloud

if TYPE_CHECKING:
    from cloudtrain.emulator import Emulator

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command(context_settings={"allow_interspersed_args": False})  # what follows CMD is its own, also without --
@click.option(
    "--provider",
    "providers",
    multiple=True,
    type=click.Choice(get_args(Cloud)),
    help="Emulate this one; may be repeated.  [default: all that can be]",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="How much shorter the services' own delays are; jobs take the time they take.",
)
@click.option(
    "--faults",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="YAML file of what is to go wrong: see docs/emulate.md.",
)
@click.option(
    "--isolation",
    type=click.Choice(["auto", "netns", "none"]),
    default="auto",
    show_default=True,
    help="netns: an address, host name and process tree of its own per node (Linux); "
    "none: all on this machine's network.",
)
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED)
def command(providers: tuple[str, ...], cmd: tuple[str, ...], faults: Path | None, **options: Any) -> None:
    """Run CMD, given behind --, with SageMaker, Vertex AI and Azure ML emulated on this machine. Vendors' own clients
    find them by variables; credentials of this shell are not passed on. At the end of CMD everything is gone, jobs that
    still run and the ledger of the emulated runs, too.

    \b
    cloudtrain emulate -- cloudtrain submit job.yaml --provider sagemaker --follow
    cloudtrain emulate --provider vertex --faults faults.yaml -- pytest tests/pipeline

    Without CMD the variables are printed for another shell, and the clouds stay until Ctrl-C.

    Exit codes: those of CMD, 128 + N if it was ended by signal N; 2 the fault file or the command line is wrong,
    3 something is missing here.
    """  # fmt: skip
    _look_for(cmd)
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")  # else gRPC prints a line when CMD is started
    from cloudtrain.emulator import Emulator
    from cloudtrain.emulator.faults import Faults

    planned = Faults.load(faults) if faults else None  # before signals are kept back: nobody may ever write a pipe
    with _signals() as signals, Emulator(providers or None, faults=planned, **options) as emulator:
        _tell(emulator)
        code = _run(cmd, emulator.environment(), signals) if cmd else _stay(emulator, signals)
        _tell_what_goes(emulator)
    sys.exit(code)


def _look_for(cmd: Sequence[str]) -> None:
    """Before anything is started for it."""
    if cmd and shutil.which(cmd[0]) is None:
        raise MissingError(f"no such command: {cmd[0]}", hint="what stands behind -- is run as it is, without a shell")


def _tell(emulator: Emulator) -> None:
    click.echo(f"emulated here: {', '.join(emulator.providers)}", err=True)
    for provider, why in emulator.missing.items():
        click.echo(f"not emulated: {provider}: {why}", err=True)


def _tell_what_goes(emulator: Emulator) -> None:
    """Hints that were printed meanwhile, such as to download a run's results, lead nowhere from now on."""
    taken = [(provider, job) for provider, jobs in emulator.jobs().items() for job in jobs]
    left = [f"{job.name} on {provider}" for provider, job in taken if not job.is_over]
    if taken:
        what = "1 emulated job" if len(taken) == 1 else f"{len(taken)} emulated jobs"
        click.echo(f"gone with the emulator: {what}, with files, logs and cloudtrain's ledger of the runs", err=True)
    if left:
        what = f"{len(left)} of them had not ended" if len(taken) > 1 else "it had not ended"
        click.echo(f"{what}: {', '.join(left)}; submit --follow waits for a job's end", err=True)
    for fault in emulator.unused_faults():
        click.echo(f"this fault never happened: {fault}", err=True)


def _run(cmd: Sequence[str], env: Mapping[str, str], signals: _Signals) -> int:
    """Its exit code, as a shell would give it."""
    from cloudtrain.emulator.servers import ending_with_us

    signals.check()
    try:
        process = subprocess.Popen(cmd, env=env, preexec_fn=ending_with_us(signal.SIGTERM))  # noqa: PLW1509 - see there
    except OSError as error:
        raise MissingError(f"cannot run {cmd[0]}: {error.strerror or error}") from error
    signals.pass_to(process)
    code = process.wait()
    return code if code >= 0 else 128 - code


def _stay(emulator: Emulator, signals: _Signals) -> int:
    """Until a signal. What in the other shell may lead to real accounts is unset by the same lines: this one need not
    have it."""
    from cloudtrain.emulator.shell import unset_real

    environment = emulator.environment()
    click.echo(unset_real())
    for name, value in sorted(environment.items()):
        if os.environ.get(name) != value:
            click.echo(f"export {name}={shlex.quote(value)}")
    click.echo("put these lines into another shell; Ctrl-C here ends it all", err=True)
    sys.stdout.flush()
    signals.wait()
    return 0


class _Signals:
    """Passes on to the command what this process is told, and outlives it, so that everything is tidied up.

    What comes before there is a command is acted on when everything has been started: an exception in the middle of
    that could leave something behind. Who asks a second time gets the end at once, and the keeper tidies up.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._first = 0
        self._told = threading.Event()

    def __call__(self, number: int, _: FrameType | None) -> None:
        if self._told.is_set() and (self._process is None or self._process.returncode is not None):
            os._exit(128 + number)
        self._first = self._first or number
        self._told.set()
        if self._process:
            _pass(number, self._process)

    def check(self) -> None:
        """Whether there is to be a command at all."""
        if self._told.is_set():
            sys.exit(128 + self._first)

    def pass_to(self, process: subprocess.Popen[bytes]) -> None:
        """From now on, and what came while it was being started: on a busy machine it runs before this is called."""
        self._process = process
        if self._told.is_set():
            _pass(self._first, process)

    def wait(self) -> None:
        """For the first one."""
        self._told.wait()  # also for what came before


def _pass(number: int, process: subprocess.Popen[bytes]) -> None:
    if not (number == signal.SIGINT and _is_the_terminals()):
        with suppress(ProcessLookupError):
            process.send_signal(number)


def _is_the_terminals() -> bool:
    """Whether Ctrl-C reaches the command without us, being of the same group in the foreground."""
    try:
        with open("/dev/tty", "rb") as terminal:  # noqa: PTH123 - no file that a Path would be for
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _signals() -> Iterator[_Signals]:
    signals = _Signals()
    before = {number: signal.signal(number, signals) for number in _ENDING}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
