"""`mempalace reindex`: fill the vector index anew from palace.db, and embed what has no vector.

Owns: the progress bar.
Never: opens the index: the librarian does, and is asked how far it is.
Called by: the command table.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mempalace import config as configuration
from mempalace.cli.output import counted
from mempalace.errors import BadConfig, MemPalaceError
from mempalace.index import client
from mempalace.store import vectors
from mempalace.store.palace import Palace

_LOOK_SECONDS = 0.2
_WAIT_SECONDS = 30.0  # for an answer: the librarian may be busy with its first start


@click.command()
@click.option("--wait", is_flag=True, help="Stay until every drawer has a vector.")
def reindex(*, wait: bool) -> None:
    """Fill the vector index anew from what palace.db holds; nothing is embedded a second time.

    Search goes on meanwhile. Drawers that have no vector yet are embedded in the background.
    """
    settings = configuration.load()
    if not settings.vectors:
        raise BadConfig("vectors are off", "set `index.vectors: true` in config.yaml")
    with (
        Palace.reader(settings.home) as palace,
        client.connect(settings.home, wait=_WAIT_SECONDS) as librarian,
    ):
        began = time.monotonic()
        librarian.ask("reindex")
        _show(lambda: _filled(librarian))
        vectors_now, seconds = librarian.ask("state")["vectors"], time.monotonic() - began
        click.echo(f"{counted(vectors_now, 'vector')} in the index after {seconds:.1f} s")
        left = _waiting(palace)
        if left and wait:
            _show(lambda: _embedded(librarian, palace, left))
        elif left:
            click.echo(f"{counted(left, 'drawer')} to be embedded in the background")


def _filled(librarian: client.Connection) -> tuple[int, int, bool]:
    """How many vectors went into the index, of how many, and whether that is all."""
    state = _checked(librarian.ask("state"))
    return state["added"], state["vectors"], state["is_in_step"]


def _embedded(librarian: client.Connection, palace: Palace, before: int) -> tuple[int, int, bool]:
    """How many drawers got a vector, of how many, and whether that is all."""
    _checked(librarian.ask("state"))  # raises where it has gone
    left = _waiting(palace)
    return max(0, before - left), before, not left


def _checked(state: dict[str, Any]) -> dict[str, Any]:
    if "error" in state:
        raise MemPalaceError(state["error"], state.get("hint", "see librarian.log"))
    return state


def _waiting(palace: Palace) -> int:
    with palace.reading() as db:
        return vectors.waiting(db)


def _show(look: Callable[[], tuple[int, int, bool]]) -> None:
    console = Console(stderr=True)
    bar = Progress(
        BarColumn(), TextColumn("{task.completed:,.0f}/{task.total:,.0f} vectors"),
        TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task("", total=1)
        is_done = False
        while not is_done:
            done, total, is_done = look()
            bar.update(task, completed=done, total=max(1, total))
            if not is_done:
                time.sleep(_LOOK_SECONDS)
