"""The `kaflow` command: the table of sub-commands, and the one place where errors end."""

import errno
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any, NoReturn, TypeVar, cast

import click

from kaflow_engine.errors import KaflowError, ModelError, Problems, UnknownName
from kaflow_engine.masking import masked

COMMANDS: dict[str, str] = {
    "backfill": "kaflow_engine.cli.run.backfill:command",
    "check": "kaflow_engine.cli.check:command",
    "config": "kaflow_engine.cli.config:command",
    "dead-letters": "kaflow_engine.cli.dead_letters:command",
    "demo": "kaflow_engine.cli.run.demo:command",
    "dev": "kaflow_engine.cli.run.dev:command",
    "doctor": "kaflow_engine.cli.doctor:command",
    "explain": "kaflow_engine.cli.explain:command",
    "fakegen": "kaflow_engine.cli.fakegen:command",
    "init": "kaflow_engine.cli.init:command",
    "plan": "kaflow_engine.cli.plan:command",
    "preview": "kaflow_engine.cli.run.preview:command",
    "processor": "kaflow_engine.cli.processor.processor:command",
    "produce": "kaflow_engine.cli.run.produce:command",
    "run": "kaflow_engine.cli.run.run:command",
    "serve": "kaflow_engine.cli.run.serve:command",
    "state": "kaflow_engine.cli.state.state:command",
    "test": "kaflow_engine.cli.test:command",
    "validate": "kaflow_engine.cli.validate:command",
    "version": "kaflow_engine.cli.version:command",
}
"""Sub-command → where it is; imported on first use, because some load a lot."""

SUMMARIES: dict[str, str] = {
    "backfill": "Run a pipeline over a range of event time.",
    "check": "Check the rows that a pipeline has written.",
    "config": "Show the configuration and where each value comes from.",
    "dead-letters": "Look at records that were taken out, and try them again.",
    "demo": "Run pipelines against sample data on a broker of their own.",
    "dev": "Start a local Kafka broker to develop against.",
    "doctor": "Check what this machine and the configured services provide.",
    "explain": "Show what a pipeline will do.",
    "fakegen": "Write made-up records to topics.",
    "init": "Write a new project.",
    "plan": "Show what would change in a pipeline that runs.",
    "preview": "Show the rows of a pipeline's nodes, and write nothing.",
    "processor": "Operate Lenses processors in Dagster.",
    "produce": "Send lines to a topic.",
    "run": "Run pipelines.",
    "serve": "Answer named SQL over HTTP.",
    "state": "Look at what pipelines remember, check and change it.",
    "test": "Run case files.",
    "validate": "Check pipeline files.",
    "version": "Show the version.",
}
"""Sub-command → its line in `kaflow --help`, so that help imports none of them."""

TRACEBACK = "kaflow.traceback"

C = TypeVar("C", bound=click.Command)


def _keep_traceback(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta[TRACEBACK] = True


def _with_traceback(command: C, *, hidden: bool) -> C:
    # On every command, so that it can be added at the end of the line that failed.
    option = click.Option(
        ["--traceback"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        hidden=hidden,
        callback=_keep_traceback,
        help="Show the Python traceback of an error.",
    )
    if all(known.name != "traceback" for known in command.params):
        command.params.append(option)
    for nested in command.commands.values() if isinstance(command, click.Group) else ():
        _with_traceback(nested, hidden=True)
    return command


class LazyGroup(click.Group):
    """A group that imports a sub-command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return _with_traceback(found, hidden=True)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            error = UnknownName("command", args[0], COMMANDS)
            hint = error.hint or "`kaflow --help` lists all"
            raise click.UsageError(f"{error.message}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUMMARIES[name]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        run = cast(Callable[[click.Context], Any], super().invoke)
        try:
            return run(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KaflowError as error:
            _report(ctx, error)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # whoever read our output has left, and click says nothing then
            _report_unexpected(ctx, error)


def _report(ctx: click.Context, error: KaflowError) -> NoReturn:
    if TRACEBACK in ctx.find_root().meta:
        raise error
    parts: tuple[KaflowError | ModelError, ...] = (
        error.errors if isinstance(error, Problems) else (error,)
    )
    for part in parts:
        click.echo(f"error: {part}", err=True)
    for line in error.causes:
        click.echo(f"  caused by: {line}", err=True)
    ctx.exit(error.exit_code)


def _report_unexpected(ctx: click.Context, error: Exception) -> NoReturn:
    if TRACEBACK in ctx.find_root().meta:
        raise error
    message = masked("", " ".join(str(error).split()))
    click.echo(f"error: {type(error).__name__}: {message}", err=True)
    click.echo("  hint: this is a fault of kaflow; run again with --traceback", err=True)
    ctx.exit(1)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def kaflow() -> None:
    """Run streaming SQL pipelines over Kafka."""


_with_traceback(kaflow, hidden=False)


def main() -> None:
    """Run the command line of this process."""
    sys.excepthook = _show_traceback
    kaflow(prog_name="kaflow")


def _show_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Do what Python does, without secrets in what libraries say."""
    text = "".join(traceback.format_exception(kind, error, trace))
    click.echo(masked("", text), err=True, nl=False)


if __name__ == "__main__":
    main()
