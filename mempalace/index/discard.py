"""Chroma's folder goes at once where something was forgotten.

Chroma marks what is deleted and keeps its bytes: ids in its tables, vectors in its graph. So where
words are forgotten (R4) the folder is removed, and filled anew from what is left when it is next
needed; a librarian that has it open is asked to do that now.

Owns: that, and how anything at a path is removed.
Never: imports what opens the folder.
Called by: mempalace.cli.forget; mempalace.index.projection for `remove`.
"""

from __future__ import annotations

import os
import shutil
import time

from mempalace import paths
from mempalace.errors import Locked, MemPalaceError
from mempalace.index.client import ASKED_FOR, Connection
from mempalace.store import vectors
from mempalace.store.palace import Palace
from mempalace.store.single import only_one

_WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.05


def discard(palace: Palace, home: str) -> None:
    """Let nothing of the present folder remain. Raises MemPalaceError where it cannot be done."""
    try:
        lock = only_one(home, paths.LIBRARIAN_LOCK, what="a librarian has the index", hint="")
    except Locked:
        _ask(home)
        return
    folder = os.path.join(home, paths.VECTORS)
    try:
        remove(folder)
        with palace.transaction() as db:
            vectors.forget_projection(db)
    except OSError as error:
        raise MemPalaceError(
            f"{folder} cannot be removed: {error.strerror}", f"remove it: rm -r '{folder}'"
        ) from error
    finally:
        lock.release(force=True)


def _ask(home: str) -> None:
    """The librarian has emptied its folder when it says that it fills it, or has filled it."""
    end = time.monotonic() + _WAIT_SECONDS
    with Connection(home, wait=_WAIT_SECONDS) as librarian:
        state = librarian.ask("reindex")
        while not (state["rebuilding"] == ASKED_FOR or state["is_in_step"] or state["given_up"]):
            if time.monotonic() > end:
                raise MemPalaceError("the librarian is busy", "wait a little")
            time.sleep(_LOOK_SECONDS)
            state = librarian.ask("state")


def remove(path: str) -> None:
    """Whatever is there, a folder, a file or a link."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
