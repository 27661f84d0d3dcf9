"""How commands wait for the librarian: connected, with a bar.

Owns: the bar, and waiting until all that is stored is embedded.
Never: opens the index.
Called by: mempalace.cli.reindex, mempalace.cli.backfill.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mempalace.errors import MemPalaceError
from mempalace.index import client
from mempalace.store import vectors
from mempalace.store.palace import Palace

_LOOK_SECONDS = 0.2
_WAIT_SECONDS = 30.0  # for an answer: the librarian may be busy with its first start


@contextmanager
def connected(home: Path) -> Iterator[client.Connection]:
    """The librarian of a home, started where none runs. Raises MemPalaceError where none can, or
    where it leaves before it has answered, with its reason."""
    try:
        with client.connect(home, wait=_WAIT_SECONDS) as librarian:
            yield librarian
    except client.NoLibrarian as error:
        with Palace.reader(home) as palace, palace.reading() as db:
            problem = vectors.problem(db, time.time())
        raise MemPalaceError(
            f"there is no librarian: {problem or error.what}", "see `mempalace doctor`"
        ) from error


def embed_all(home: Path, librarian: client.Connection) -> int:
    """Wait until every drawer has a vector; how many had none. Raises MemPalaceError where the
    librarian has gone."""
    with Palace.reader(home) as palace:
        before = _waiting(palace)

        def look() -> tuple[int, int, bool]:
            checked(librarian.ask("state"))
            left = _waiting(palace)
            return max(0, before - left), before, not left

        show(look)
        return before


def waiting(home: Path) -> int:
    """How many drawers have no vector yet."""
    with Palace.reader(home) as palace:
        return _waiting(palace)


def _waiting(palace: Palace) -> int:
    with palace.reading() as db:
        return vectors.waiting(db)


def checked(state: dict[str, Any]) -> dict[str, Any]:
    """What the librarian answered, unless that is an error."""
    if "error" in state:
        raise MemPalaceError(state["error"], state.get("hint", "see librarian.log"))
    return state


def show(look: Callable[[], tuple[int, int, bool]]) -> None:
    """A bar until `look`, which gives (done, of how many, whether that is all), says so."""
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
