"""`mempalace remine`: rooms, halls, types, importance, key sentences and entities, computed anew.

Owns: its bar.
Never: touches a word, an id or a vector.
Called by: the command table.
"""

from __future__ import annotations

import click
from rich.console import Console
from rich.progress import Progress

from mempalace import paths
from mempalace.cli.output import counted
from mempalace.filing.derivation import judge_stale
from mempalace.search.lookup import wing_called
from mempalace.store import derived
from mempalace.store.palace import Palace


@click.command()
@click.option("--wing", help="Only of this project, person or topic.")
def remine(*, wing: str | None) -> None:
    """Judge anew what every exchange means, from the words that are stored.

    After an update the watcher does this by itself, in idle time.
    """
    with Palace.writer(paths.home()) as palace:
        with palace.transaction() as db:
            number = None if wing is None else wing_called(db, wing)
            total = derived.make_stale(db, number)
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("", total=total)
            while done := judge_stale(palace, wing=number):
                bar.advance(task, done)
    click.echo(f"{counted(total, 'exchange')} judged anew")
