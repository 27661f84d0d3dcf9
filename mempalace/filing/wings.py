"""Which wing something was said in (docs/design.md).

Owns: the wing of a folder, and of sessions whose prompts name none.
Never: changes an answer once given.
Called by: mempalace.filing.messages; watcher.commit when a file has named its folder or never will.
"""

from __future__ import annotations

import sqlite3

from mempalace.config import Config
from mempalace.mining.projects import names_for, project_root
from mempalace.store import places

CHATS = "chats"  # the wing of what names no project


def wing_for(db: sqlite3.Connection, config: Config, folder: str) -> int:
    """The wing of a working folder: a configured prefix, the answer once given,
    the git project, the nearest known project above a folder that is gone, its own name."""
    for prefix, name in config.wings.items():
        if folder == prefix or folder.startswith(prefix.rstrip("/") + "/"):
            return places.wing_named(db, name, prefix)
    known = places.wing_of_folder(db, folder)
    if known is not None:
        return known
    root = project_root(folder) if folder.startswith("/") else None
    wing = None if root else places.wing_above(db, folder)
    if wing is None:
        root = root or folder
        wing = places.wing_of_root(db, root, names_for(root))
    places.remember_folder(db, folder, wing)
    return wing


def settle_sessions(
    db: sqlite3.Connection, config: Config, file: int, *, named: str | None, guess: str | None
) -> None:
    """Give the sessions of a file whose prompts name no folder a wing: of the folder that another
    line has named, of a guess, else `chats`."""
    folder = named or guess
    for session in places.without_folder(db, file):
        wing = wing_for(db, config, folder) if folder else places.wing_named(db, CHATS)
        places.settle(db, session, named, wing)
