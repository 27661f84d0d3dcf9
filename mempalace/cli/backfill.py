"""`mempalace backfill` and `mempalace mine PATH --mode convos`: history into the palace.

Owns: the progress bar and the summary.
Never: reads a transcript itself.
Called by: the command table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import click

from mempalace import config as configuration
from mempalace.store.palace import Palace
from watcher.backfill import Backfill, Summary
from watcher.disk import Disk

_LINE_SECONDS = 5.0  # between two lines of progress where there is no terminal


@click.command()
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--dry-run", is_flag=True, help="Say what would be filed, and file nothing.")
@click.option("--wait", is_flag=True, help="Go on until nothing is left to read.")
def backfill(paths: tuple[str, ...], dry_run: bool, wait: bool) -> None:
    """File the history of this machine's agents, newest first.

    Without PATH every transcript below the configured roots is read; with it, these files and
    folders. It may be interrupted and run again at any time: what is filed is not read twice.
    """
    settings = configuration.load()
    with Palace.writer(settings.home, create=True) as palace:
        job = Backfill(palace, settings, Disk())
        started = time.monotonic()
        _show(job.run(paths), started)
        while wait and job.summary.exchanges_new:
            job = Backfill(palace, settings, Disk())
            _show(job.run(paths), started)
    click.echo(_report(job.summary, time.monotonic() - started))


def _show(steps: Iterator[Summary], started: float) -> None:
    for _ in steps:
        pass


def _report(summary: Summary, seconds: float) -> str:
    return str(summary)
