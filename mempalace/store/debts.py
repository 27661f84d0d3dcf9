"""What a fork has left to its parent, until the parent was read (R1, R3).

A copied turn is told by the parent's file, so the fork leaves it out. A parent may vanish, or lose
the turn, before it was ever read; then the copy is the only one there is. So each record that was
left out and is in no exchange is noted as owed, in the transaction that passed it. It is paid when
its key is known, or was forgotten; where the parent has nothing more to tell, it is called in: the
fork is stale, and read once more as if it had no parent.

Owns: the table `owed`.
Never: looks at a disk (watcher.debts finds out what a parent still has to tell).
Called by: mempalace.filing, watcher.debts, mempalace.status.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from mempalace.store.checkpoints import HIDDEN

_PAID = "(key IN (SELECT key FROM keys) OR key IN (SELECT key FROM tombstones))"


@dataclass(frozen=True, slots=True)
class Debt:
    """A fork's file that has left records to a session, and not got them."""

    file: int
    path: str
    session: str


def owe(db: sqlite3.Connection, file: int, session: str, key: bytes) -> None:
    """Note a record that `file` has left to `session`."""
    db.execute(
        "INSERT OR IGNORE INTO owed (file, key, session) VALUES (?, ?, ?)", (file, key, session)
    )


def called_in(db: sqlite3.Connection, file: int) -> frozenset[str]:
    """The sessions to which `file` leaves nothing any more."""
    rows = db.execute("SELECT DISTINCT session FROM owed WHERE file = ? AND called", (file,))
    return frozenset(session for (session,) in rows)


def unpaid(db: sqlite3.Connection) -> list[Debt]:
    """What is owed and was not called in yet."""
    rows = db.execute(
        "SELECT DISTINCT o.file, f.path, o.session FROM owed o JOIN files f ON f.n = o.file"  # noqa: S608 - a constant
        f" WHERE NOT o.called AND NOT {_PAID}"
    )
    return [Debt(*row) for row in rows if not row[1].startswith(HIDDEN)]


def count(db: sqlite3.Connection) -> int:
    """Records that are owed and not called in: words that nobody has told yet (R7)."""
    statement = f"SELECT COUNT(DISTINCT key) FROM owed WHERE NOT called AND NOT {_PAID}"  # noqa: S608 - a constant
    return int(db.execute(statement).fetchone()[0])


def paid(db: sqlite3.Connection) -> list[int]:
    """Files with records that were owed and are stored."""
    rows = db.execute(f"SELECT DISTINCT file FROM owed WHERE NOT called AND {_PAID}")  # noqa: S608
    return [file for (file,) in rows]


def settle(db: sqlite3.Connection, file: int) -> None:
    """Strike out what was paid of one file's debts."""
    db.execute(f"DELETE FROM owed WHERE file = ? AND NOT called AND {_PAID}", (file,))  # noqa: S608


def call_in(db: sqlite3.Connection, debt: Debt) -> None:
    """The fork has to tell it: its file is stale from now on (R5)."""
    db.execute(
        "UPDATE owed SET called = 1 WHERE file = ? AND session = ?", (debt.file, debt.session)
    )
    db.execute("UPDATE files SET settings = '' WHERE n = ?", (debt.file,))
