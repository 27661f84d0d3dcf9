"""The command line: its commands, and the one border where errors become exit codes.

Owns: the table of commands, what is printed when something fails, and the exit codes (§9).
Never: imports a command before it is called, so `mempalace --help` loads no engine; does the work.
Called by: mempalace.__main__.
"""

import os
import sys
import traceback
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO

import click

from mempalace import __version__
from mempalace.cli.output import flush
from mempalace.errors import EXIT_ERROR, EXIT_OK, MemPalaceError

EXIT_INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command lives, and the line that `mempalace --help` shows for it."""

    module: str
    attribute: str
    help: str


# In the order of the help: first steps, filling, finding, taking out, looking.
COMMANDS: dict[str, Command] = {
    "init": Command("mempalace.cli.config", "init", "Create the palace's home and its config."),
    "watch": Command("mempalace.cli.watch", "watch", "Follow the agents' transcripts."),
    "backfill": Command("mempalace.cli.backfill", "backfill", "File what is on disk already."),
    "mine": Command("mempalace.cli.backfill", "mine", "File one transcript, export or folder."),
    "wake-up": Command("mempalace.cli.wake_up", "wake_up", "Print what a session starts with."),
    "search": Command("mempalace.cli.search", "search", "Find what was said."),
    "show": Command("mempalace.cli.show", "show", "Print an exchange, verbatim."),
    "sessions": Command("mempalace.cli.sessions", "sessions", "List the sessions in the palace."),
    "wings": Command("mempalace.cli.wings", "wings", "List, rename and merge wings."),
    "export": Command("mempalace.cli.export", "export", "Write out what the palace holds."),
    "compress": Command("mempalace.cli.compress", "compress", "Print a wing's talk as AAAK."),
    "forget": Command("mempalace.cli.forget", "forget", "Take out what was said, for good."),
    "status": Command("mempalace.cli.status", "status", "What is stored, behind or wrong."),
    "doctor": Command("mempalace.cli.doctor", "doctor", "What is wrong, and how to mend it."),
    "remine": Command("mempalace.cli.remine", "remine", "Judge anew what exchanges mean."),
    "reindex": Command("mempalace.cli.reindex", "reindex", "Fill the vector index anew."),
    "config": Command("mempalace.cli.config", "config", "Show every setting and its source."),
    "librarian": Command("mempalace.cli.librarian", "librarian", ""),  # started by the others
}


@dataclass(slots=True)
class Border:
    """What the border must know about a run; the group's callback fills it in."""

    debug: bool = False


class _ReaderGone(Exception):
    """stdout was closed by its reader. Not an OSError, which click would answer its own way."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, and not for its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        try:
            module = import_module(entry.module)
        except ModuleNotFoundError as error:
            if error.name != entry.module:
                raise
            raise MemPalaceError(
                f"`mempalace {cmd_name}` is not part of this installation", "reinstall MemPalace"
            ) from error
        command = getattr(module, entry.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.module}.{entry.attribute} is not a command")
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGone from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(n, entry.help) for n, entry in COMMANDS.items() if entry.help])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, message="mempalace %(version)s")
@click.pass_context
def cli(ctx: click.Context, *, debug: bool) -> None:
    """A memory for AI agents that costs no tokens to write."""
    ctx.ensure_object(Border).debug = debug
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(argv: list[str] | None = None) -> int:
    """Run one command. A command returns its exit code, or None for 0."""
    _print_anything(sys.stdout)
    _print_anything(sys.stderr)
    border = Border()
    try:
        result = cli.main(argv, prog_name="mempalace", standalone_mode=False, obj=border)
        flush()  # here, where a broken pipe is still ours to answer
        return result if isinstance(result, int) else EXIT_OK
    except MemPalaceError as error:
        return _fail(error.report(), error.exit_code, border)
    except click.ClickException as error:  # wrong usage is 2, the rest of the family 1
        return _fail(_usage_report(error), error.exit_code, border)
    except (click.Abort, KeyboardInterrupt):  # Abort is click's name for Ctrl-C
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except (_ReaderGone, BrokenPipeError):
        return _leave_quietly()
    except Exception as error:  # noqa: BLE001 - the border of the command line
        return _fail(_unexpected_report(error), EXIT_ERROR, border)


def _fail(report: str, code: int, border: Border) -> int:
    if border.debug:
        traceback.print_exc()
    click.echo(report, err=True)
    return code


def _usage_report(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    command = ctx.command_path if ctx else "mempalace"
    return f"error: {error.format_message()}\nhint: see `{command} --help`"


def _unexpected_report(error: Exception) -> str:
    """Type and place only: the message may quote a transcript, and stderr may be a log."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return (
        f"error: unexpected {type(error).__name__}{place}\n"
        "hint: run `mempalace --debug …` for the traceback; this is a bug, please report it"
    )


def _print_anything(stream: IO[str]) -> None:
    """Half an emoji in a transcript, or a terminal without UTF-8, must not end a command."""
    reconfigure = getattr(stream, "reconfigure", None)  # a replaced stream may have none
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _leave_quietly() -> int:
    """The reader has gone; so that the interpreter's last flush does not complain either."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:  # stdout is no file
        pass
    return EXIT_BROKEN_PIPE
