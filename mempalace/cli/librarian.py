"""`mempalace librarian`: embeds what is stored and answers by meaning; the other commands start it.

Owns: when there is nothing for it to do here.
Never: does its work.
Called by: the command table; mempalace.index.client starts it in the background.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mempalace import config as configuration
from mempalace.cli.logs import log_to_stderr
from mempalace.errors import EXIT_OK, Locked, NotThereYet

if TYPE_CHECKING:
    from mempalace.index.drain import Embeds


@click.command(hidden=True)
@click.option("--open", "opens", is_flag=True, help="Open the index at once.")
@click.option("--after", default=0.0, help="Begin after so many seconds.")
def librarian(*, opens: bool, after: float) -> int:
    """Embed what is stored and answer by meaning, until nobody needs it."""
    settings = configuration.load()
    if not settings.vectors:
        return EXIT_OK
    time.sleep(after)
    log_to_stderr()
    from mempalace.index.librarian import Librarian

    try:
        Librarian(settings.home, makers(), opens=opens).run()
    except (NotThereYet, Locked):
        pass  # only those who fill a palace make one; and one librarian is enough
    return EXIT_OK


def makers() -> list[Callable[[], Embeds]]:
    """The embedders of this installation, the one to use first."""
    import platformdirs

    from mempalace.index.embedder import Embedder

    cache = Path(platformdirs.user_cache_dir("mempalace", appauthor=False)) / "model"
    return [partial(Embedder, cache, threads=2)]
