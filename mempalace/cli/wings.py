"""`mempalace wings list|rename|merge`: the names of projects, people and topics.

Owns: how they are printed.
Never: touches an id, a word or a vector.
Called by: the command table.
"""

from __future__ import annotations

from dataclasses import asdict

import click

from mempalace import paths
from mempalace.cli.output import counted, say, shown, write_json
from mempalace.search.lookup import wing_called
from mempalace.store import wings as rows
from mempalace.store.palace import Palace


@click.group()
def wings() -> None:
    """List wings, rename one, or make one of two."""


@wings.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(*, as_json: bool) -> None:
    """List the wings, the fullest first."""
    with Palace.reader(paths.home()) as palace, palace.reading() as db:
        found = rows.all_of_them(db)
    if as_json:
        write_json([asdict(wing) for wing in found])
        return
    say(f"{'wing':<28} {'sessions':>9} {'exchanges':>10} {'drawers':>9}  project")
    for wing in found:
        numbers = f"{wing.sessions:>9,} {wing.exchanges:>10,} {wing.drawers:>9,}"
        say(f"{wing.name:<28} {numbers}  {shown(wing.root or '-')}")


@wings.command()
@click.argument("wing")
@click.argument("name")
def rename(*, wing: str, name: str) -> None:
    """Give WING another NAME."""
    with Palace.writer(paths.home()) as palace, palace.transaction() as db:
        kept = rows.rename(db, wing_called(db, wing), name)
    say(f"`{wing}` is `{kept}` now")


@wings.command()
@click.argument("wing")
@click.argument("into")
def merge(*, wing: str, into: str) -> None:
    """Move all of WING into another wing, and what is said in its folders from now on."""
    with Palace.writer(paths.home()) as palace:
        with palace.reading() as db:
            first, second = wing_called(db, wing), wing_called(db, into)
        moved = sum(rows.merge(palace, first, second))
    say(f"{counted(moved, 'exchange')} of `{wing}` are in `{into}` now")
