"""`mempalace reindex`: fill the vector index anew from palace.db, and embed what has no vector.

Owns: the order of its steps.
Never: opens the index: the librarian does, and is asked how far it is.
Called by: the command table.
"""

from __future__ import annotations

import time

import click

from mempalace import config as configuration
from mempalace.cli.librarians import checked, connected, embed_all, show, waiting
from mempalace.cli.output import counted
from mempalace.errors import BadConfig, MemPalaceError


@click.command()
@click.option("--wait", is_flag=True, help="Stay until every drawer has a vector.")
def reindex(*, wait: bool) -> None:
    """Fill the vector index anew from what palace.db holds; nothing is embedded a second time.

    Search goes on meanwhile. Drawers that have no vector yet are embedded in the background.
    """
    settings = configuration.load()
    if not settings.vectors:
        raise BadConfig("vectors are off", "set `index.vectors: true` in config.yaml")
    with connected(settings.home) as librarian:
        began = time.monotonic()
        checked(librarian.ask("reindex"))

        def look() -> tuple[int, int, bool]:
            state = checked(librarian.ask("state"))
            if state["given_up"]:
                raise MemPalaceError(
                    f"the index cannot be filled: {state['given_up']}",
                    "librarian.log says more; search by meaning goes on without it",
                )
            return state["added"], state["vectors"], state["is_in_step"]

        show(look)
        held, seconds = checked(librarian.ask("state"))["vectors"], time.monotonic() - began
        click.echo(f"{counted(held, 'vector')} in the index after {seconds:.1f} s")
        if wait:
            embed_all(settings.home, librarian)
        elif left := waiting(settings.home):
            click.echo(f"{counted(left, 'drawer')} to be embedded in the background")
