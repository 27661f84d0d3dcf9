"""Wings as rows: a name and an id. Renaming one writes a row; merging two moves in small batches.

Owns: what these change: no id of an exchange, no word, no vector.
Never: decides which wing something belongs to (mempalace.filing.wings does).
Called by: mempalace.cli.wings.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from mempalace.errors import WrongUsage
from mempalace.ids import slug
from mempalace.store.palace import Palace

_BATCH = 500  # exchanges moved in one transaction


@dataclass(frozen=True, slots=True)
class Wing:
    """One row of the list."""

    name: str
    root: str | None  # the project folder that the name was first given to
    sessions: int
    exchanges: int
    drawers: int  # of talk


def all_of_them(db: sqlite3.Connection) -> list[Wing]:
    """Every wing, the fullest first."""
    rows = db.execute(
        "SELECT w.name, w.root, COUNT(DISTINCT e.session), COUNT(e.n),"
        " COALESCE(SUM(e.talk_drawers), 0) FROM wings w"
        " LEFT JOIN exchanges e ON e.wing = w.id AND e.retired IS NULL"
        " GROUP BY w.id ORDER BY 4 DESC, 1"
    )
    return [Wing(*row) for row in rows]


def rename(db: sqlite3.Connection, wing: int, name: str) -> str:
    """Give a wing another name; the name as it is kept. Raises WrongUsage where one has it."""
    kept = slug(name)
    taken = db.execute("SELECT id FROM wings WHERE name = ?", (kept,)).fetchone()
    if taken is not None and taken[0] != wing:
        raise WrongUsage(
            f"there is a wing `{kept}` already", "`mempalace wings merge` makes one of two"
        )
    db.execute("UPDATE wings SET name = ? WHERE id = ?", (kept, wing))
    return kept


def merge(palace: Palace, wing: int, into: int) -> Iterator[int]:
    """Move all of a wing into another and end it; gives how many exchanges went, batch by batch.
    Interrupted anywhere, the next run goes on."""
    if wing == into:
        raise WrongUsage("a wing cannot be merged into itself", "name two")
    with palace.transaction() as db:  # first, so that what is said meanwhile goes there
        row = db.execute("SELECT root FROM wings WHERE id = ?", (wing,)).fetchone()
        db.execute("UPDATE folders SET wing = ? WHERE wing = ?", (into, wing))
        if row[0] is not None:
            db.execute("INSERT OR REPLACE INTO folders (path, wing) VALUES (?, ?)", (row[0], into))
    while True:
        with palace.transaction() as db:
            moved = db.execute(
                "UPDATE exchanges SET wing = ? WHERE n IN"
                " (SELECT n FROM exchanges WHERE wing = ? LIMIT ?)",
                (into, wing, _BATCH),
            ).rowcount
            if moved == 0:
                db.execute("UPDATE sessions SET wing = ? WHERE wing = ?", (into, wing))
                db.execute("DELETE FROM wings WHERE id = ?", (wing,))
        if moved == 0:
            return
        yield moved
