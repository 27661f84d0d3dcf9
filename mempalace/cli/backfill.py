"""`mempalace backfill` and `mempalace mine PATH --mode convos`: history into the palace.

Owns: the progress bar and the summary.
Never: reads a transcript itself.
Called by: the command table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mempalace import config as configuration
from mempalace.cli.librarians import connected, embed_all
from mempalace.cli.output import counted
from mempalace.config import Config
from mempalace.errors import EXIT_ERROR, EXIT_OK, MemPalaceError, WrongUsage
from mempalace.store.palace import Palace
from watcher.backfill import Backfill, Summary, preview
from watcher.disk import Disk
from watcher.nudge import Nudge

_LINE_SECONDS = 5.0  # between two lines of progress where there is no terminal
_NAMES_SHOWN = 10  # of files that could not be read
_KINDS_SHOWN = 5  # of what was left out; `status --json` has all of them


@click.command()
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--dry-run", is_flag=True, help="Say what would be filed, and file nothing.")
@click.option("--wait", is_flag=True, help="Go on until all is read, and all has a vector.")
def backfill(paths: tuple[str, ...], dry_run: bool, wait: bool) -> int:
    """File the history of this machine's agents, newest first.

    Without PATHS every transcript below the configured roots is read; with them, these files and
    folders. It may be interrupted and run again at any time: what is filed is not read twice.
    Exits with 1 where a root, or a folder that was named, could not be looked into.
    """
    if dry_run and wait:
        raise WrongUsage("--wait has nothing to wait for in a dry run", "leave one of them out")
    settings = configuration.load()
    started = time.monotonic()
    if dry_run:
        summary = _show(preview(settings, Disk(), paths), started)
        click.echo("Nothing was filed: this was a dry run.")
    else:
        with Palace.writer(settings.home, create=True) as palace:
            for told in palace.told:
                click.echo(f"note: {told}")
            summary = _show(Backfill(palace, settings, Disk()).run(paths), started)
            while wait and summary.is_unfinished:
                summary = _show(Backfill(palace, settings, Disk()).run(paths), started)
            Nudge(palace, settings, Disk()).finish()
            palace.check_place()
    for line in _report(summary, time.monotonic() - started, is_dry=dry_run, of=paths):
        click.echo(line)
    if wait and settings.vectors:
        _wait_for_vectors(settings)
    return EXIT_ERROR if summary.failed else EXIT_OK


def _wait_for_vectors(settings: Config) -> None:
    started = time.monotonic()
    try:
        with connected(settings.home) as librarian:
            embedded = embed_all(settings.home, librarian)
        seconds = time.monotonic() - started
        click.echo(f"{counted(embedded, 'drawer')} embedded in {seconds:.1f} s")
    except MemPalaceError as error:  # all is filed; keywords find it
        click.echo(f"note: {error.what}")


@click.command()
@click.argument("path", type=click.Path())
@click.option("--mode", type=click.Choice(["convos"]), required=True, help="What PATH holds.")
@click.option("--dry-run", is_flag=True, help="Say what would be filed, and file nothing.")
@click.pass_context
def mine(context: click.Context, path: str, mode: str, dry_run: bool) -> int:
    """File the conversations at PATH: the same as `mempalace backfill PATH`."""
    del mode  # there is one so far
    code: int = context.invoke(backfill, paths=(path,), dry_run=dry_run, wait=False)
    return code


def _show(steps: Iterable[Summary], started: float) -> Summary:
    """Run to the end, showing how far it is; the last summary."""
    console = Console(stderr=True)
    return _bar(steps, console, started) if console.is_terminal else _lines(steps, started)


def _bar(steps: Iterable[Summary], console: Console, started: float) -> Summary:
    summary = Summary()
    bar = Progress(
        BarColumn(),
        TextColumn("{task.fields[numbers]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None, numbers="")
        for summary in steps:
            bar.update(
                task,
                total=max(1, summary.bytes_total),
                completed=summary.bytes_done,
                numbers=_numbers(summary, started),
            )
    return summary


def _lines(steps: Iterable[Summary], started: float) -> Summary:
    summary, last = Summary(), started
    for summary in steps:
        if time.monotonic() - last >= _LINE_SECONDS:
            last = time.monotonic()
            left = f", {_seconds_left(summary, started):.0f} s left"
            print(_numbers(summary, started) + left, file=sys.stderr, flush=True)
    return summary


def _numbers(summary: Summary, started: float) -> str:
    seconds = max(0.001, time.monotonic() - started)
    return (
        f"{summary.files_done:,}/{summary.files:,} files, "
        f"{summary.exchanges_new + summary.exchanges_known:,} exchanges, "
        f"{summary.drawers:,} drawers, {summary.bytes_read / 1e6 / seconds:.1f} MB/s"
    )


def _seconds_left(summary: Summary, started: float) -> float:
    """At the pace so far, by bytes."""
    done = max(1, summary.bytes_done)
    return (time.monotonic() - started) * (summary.bytes_total - summary.bytes_done) / done


def _report(
    summary: Summary, seconds: float, *, is_dry: bool, of: tuple[str, ...]
) -> Iterator[str]:
    rate = summary.bytes_read / 1e6 / max(seconds, 0.001)
    yield (
        f"{counted(summary.files_read, 'file')} read ({summary.bytes_read / 1e6:,.1f} MB in"
        f" {seconds:.1f} s, {rate:.1f} MB/s), {summary.files_unchanged:,} with nothing new"
    )
    yield (
        f"{counted(summary.exchanges_new, 'exchange')} new, {summary.exchanges_known:,} known;"
        f" {counted(summary.drawers, 'drawer')} {'to write' if is_dry else 'written'}"
    )
    if summary.quarantined:
        yield f"quarantined lines: {_counts(summary.quarantined)}"
    if summary.unknown_types:
        yield f"unknown record types: {_counts(summary.unknown_types)}"
    if summary.rules:
        yield f"left out by rule: {_counts(summary.rules)}"
    if summary.excluded:
        yield f"excluded: {counted(summary.excluded, 'file')}"
    for path, why in list(summary.not_read.items())[:_NAMES_SHOWN]:
        yield f"not read: {path}: {why}"
    if len(summary.not_read) > _NAMES_SHOWN:
        yield f"not read: {len(summary.not_read) - _NAMES_SHOWN:,} more"
    if not summary.files and not summary.not_read:
        where = "at " + ", ".join(of) if of else "yet; `mempalace config` shows where is looked"
        yield f"hint: there are no transcripts {where}"


def _counts(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{name} {count:,}" for name, count in ordered[:_KINDS_SHOWN])
    rest = len(ordered) - _KINDS_SHOWN
    return f"{shown} and {rest} more kinds" if rest > 0 else shown
