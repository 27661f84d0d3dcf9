"""Sessions, wings and the folders that lead to them.

Owns: the rows that say where something was said; a wing is named once and found by id.
Never: looks at the disk: what a folder's project is comes from the caller.
Called by: mempalace.filing; wake-up and search for reading.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable

from mempalace.ids import slug


def wing_of_folder(db: sqlite3.Connection, folder: str) -> int | None:
    """The first answer once given for exactly this folder."""
    row = db.execute("SELECT wing FROM folders WHERE path = ?", (folder,)).fetchone()
    return None if row is None else int(row[0])


def wing_above(db: sqlite3.Connection, folder: str) -> int | None:
    """The wing of the nearest folder above that one was given for."""
    above = os.path.dirname(folder)
    while above not in ("", folder):
        row = db.execute("SELECT id FROM wings WHERE root = ?", (above,)).fetchone()
        if row is not None:
            return int(row[0])
        folder, above = above, os.path.dirname(above)
    return None


def remember_folder(db: sqlite3.Connection, folder: str, wing: int) -> None:
    db.execute("INSERT OR IGNORE INTO folders (path, wing) VALUES (?, ?)", (folder, wing))


def wing_named(db: sqlite3.Connection, name: str, root: str | None = None) -> int:
    """The wing of this name, made if it is new."""
    db.execute("INSERT OR IGNORE INTO wings (name, root) VALUES (?, ?)", (slug(name), root))
    row = db.execute("SELECT id FROM wings WHERE name = ?", (slug(name),)).fetchone()
    return int(row[0])


def wing_of_root(db: sqlite3.Connection, root: str, names: Iterable[str]) -> int:
    """The wing of a project folder; the first of `names` that no other folder has taken."""
    row = db.execute("SELECT id FROM wings WHERE root = ?", (root,)).fetchone()
    known = int(row[0]) if row is not None else wing_of_folder(db, root)  # it may be merged
    if known is not None:
        return known
    name = ""
    for name in names:
        taken = db.execute("SELECT 1 FROM wings WHERE name = ?", (slug(name),)).fetchone()
        if taken is None:
            break
    return wing_named(db, name, root)


def session(db: sqlite3.Connection, source: str, session_id: str) -> int | None:
    row = db.execute(
        "SELECT n FROM sessions WHERE source = ? AND id = ?", (source, session_id)
    ).fetchone()
    return None if row is None else int(row[0])


def open_session(
    db: sqlite3.Connection,
    source: str,
    session_id: str,
    cwd: str | None,
    wing_for: Callable[[str], int],
) -> tuple[int, int | None]:
    """(session, wing), made if it is new; the first folder that is known decides its wing."""
    row = db.execute(
        "SELECT n, cwd, wing FROM sessions WHERE source = ? AND id = ?", (source, session_id)
    ).fetchone()
    if row is None:
        wing = wing_for(cwd) if cwd else None
        cursor = db.execute(
            "INSERT INTO sessions (source, id, cwd, wing) VALUES (?, ?, ?, ?)",
            (source, session_id, cwd, wing),
        )
        assert cursor.lastrowid is not None  # noqa: S101 - an INSERT has a row id
        return cursor.lastrowid, wing
    n, known_cwd, wing = row
    if known_cwd is None and cwd:
        wing = wing_for(cwd)
        settle(db, n, cwd, wing)
    return int(n), wing


def settle(db: sqlite3.Connection, session_n: int, cwd: str | None, wing: int) -> None:
    """A session whose folder was not known gets its wing, and so do its exchanges."""
    db.execute(
        "UPDATE exchanges SET wing = ? WHERE session = ?"
        " AND (wing IS NULL OR wing = (SELECT wing FROM sessions WHERE n = ?))",
        (wing, session_n, session_n),
    )
    db.execute("UPDATE sessions SET cwd = ?, wing = ? WHERE n = ?", (cwd, wing, session_n))


def without_folder(db: sqlite3.Connection, file: int) -> list[int]:
    """Sessions with exchanges of this file whose folder no line has named yet."""
    rows = db.execute(
        "SELECT DISTINCT s.n FROM exchanges e JOIN sessions s ON s.n = e.session"
        " WHERE e.file = ? AND s.cwd IS NULL",
        (file,),
    )
    return [row[0] for row in rows]
