"""The ``cloudtrain`` command: one module per verb, loaded only when that verb is used.

``cloudtrain --help`` shows the short texts below and imports nothing but click; tests/cli/test_imports.py holds the
list.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, cast

import click

from cloudtrain.errors import CloudtrainError

# verb -> (module, short help). A verb's module holds a click command named `command`.
VERBS: dict[str, tuple[str, str]] = {
    "init": ("cloudtrain.cli.init", "Start a project from a template."),
    "validate": ("cloudtrain.cli.validate", "Check a job file; report all problems at once."),
    "schema": ("cloudtrain.cli.schema", "Print the JSON Schema of the job file."),
    "render": ("cloudtrain.cli.render", "Show the native request of SageMaker, Vertex AI or Azure ML."),
    "bundle": ("cloudtrain.cli.bundle", "Show or write what code ships with a job."),
    "catalog": ("cloudtrain.cli.catalog", "Machines, accelerators, images, prices: what each cloud has."),
    "run": ("cloudtrain.cli.run", "Train here, on N simulated nodes of M processes."),
    "submit": ("cloudtrain.cli.submit", "Train on a cloud, or in the background of this machine."),
    "runs": ("cloudtrain.cli.runs", "List runs, here and on the clouds."),
    "status": ("cloudtrain.cli.status", "Show how a run stands, and what to do next."),
    "logs": ("cloudtrain.cli.logs", "Print or follow the output of a run."),
    "stop": ("cloudtrain.cli.stop", "Ask for a run's end."),
    "resume": ("cloudtrain.cli.resume", "Go on with a run that has ended, from its last checkpoint."),
    "download": ("cloudtrain.cli.download", "Bring what a run has left: model, outputs, metrics."),
    "doctor": ("cloudtrain.cli.doctor", "Say what is set up here, what is missing, and what to do next."),
    "emulate": ("cloudtrain.cli.emulate", "Run a command with the clouds emulated on this machine."),
}


@contextlib.contextmanager
def _reader_may_go() -> Iterator[None]:
    """Ends the command as SIGPIPE would, where click would end it as if its job had failed."""
    try:
        yield
    except BrokenPipeError:
        from cloudtrain.cli.streams import leave_quietly

        leave_quietly()


class _Verbs(click.Group):
    """A group that knows its commands' names and short texts without importing them."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return cast(click.Command, import_module(VERBS[cmd_name][0]).command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from cloudtrain.errors import did_you_mean

            ctx.fail(f"no such command {args[0]!r}{did_you_mean(args[0], VERBS)}")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _reader_may_go():  # help and version are printed here
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _reader_may_go():
            return super().invoke(ctx)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        import cloudtrain

        click.echo(f"cloudtrain {cloudtrain.__version__}")
        ctx.exit()


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
              help="Show the version and exit.")  # fmt: skip
def cli() -> None:
    """One data-parallel job file: trained here on simulated nodes, translated for SageMaker, Vertex AI and Azure ML."""


def main() -> None:
    """Runs the verb that the command line names and turns every error into a message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A path or a line that the terminal's encoding cannot show is shown escaped; it must not end the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started with it closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123
    _end_in_order()
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        if isinstance(error, click.NoSuchOption) and error.ctx and error.ctx.info_name == "run":
            click.echo("Options of your script go behind --:  cloudtrain run JOB -- --epochs 3", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("cloudtrain: interrupted", err=True)
        sys.exit(130)
    except CloudtrainError as error:
        click.echo(f"cloudtrain: {error.message}", err=True)
        if error.hint:
            click.echo(error.hint, err=True)
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001 - the last resort: a fault of ours must not end in a traceback on the user's screen
        from cloudtrain.cli.fault import last_words

        sys.exit(last_words(error))


def _end_in_order() -> None:
    """Who is told to end removes what is temporary first. What must not be cut off has handlers of its own."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # not where nohup has it ignored
            signal.signal(number, leave)
