"""What deleted rows leave behind in palace.db, and how it is wiped.

Owns: the note that a sweep is owed, and its steps: merging the full-text index, rewriting the file,
emptying the write-ahead log.
Never: deletes a row of anybody's words.
Called by: mempalace.filing.forget; mempalace.status for the note.

`secure_delete` alone leaves words behind in two places. FTS5 keeps the words of a deleted row, and
a mark against them, until the segments that hold them are merged. And where SQLite once split a
page, the old half keeps a copy of the moved cells in its unused part, which is not zeroed when
those cells are deleted later; only rewriting the file (VACUUM) is sure to end that.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator

from mempalace.errors import MemPalaceError
from mempalace.store.palace import Palace

_OWED = "sweep owed"  # the name of the note
_TABLES = ("talk", "tools")
_PAGES_AT_ONCE = 250  # of full text merged in one transaction: some 20 ms
_PAUSE_SECONDS = 0.005  # between two transactions, so that other writers have their turn
_ATTEMPTS = 60  # to empty the log
_ATTEMPT_MILLISECONDS = 100  # writers wait as long as one attempt waits for readers, so not longer


def owe(db: sqlite3.Connection) -> None:
    """Note, in the transaction that deletes, that its leftovers must be wiped."""
    db.execute("INSERT OR REPLACE INTO notes (name, value) VALUES (?, '1')", (_OWED,))


def is_owed(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM notes WHERE name = ?", (_OWED,)).fetchone() is not None


def sweep(palace: Palace) -> Iterator[str]:
    """Wipe what deleted rows left behind; gives the name of each step before it is done.

    Interrupted anywhere, the note stays, and the next sweep does all of it. Other writers wait
    while the file is rewritten; readers never do (R9). Raises MemPalaceError where a step cannot
    be done now.
    """
    yield "merging the full-text index"
    for table in _TABLES:
        _merge(palace, table)
    yield "rewriting palace.db"
    _rewrite(palace)
    yield "emptying the write-ahead log"
    _empty_log(palace)
    with palace.transaction() as db:
        db.execute("DELETE FROM notes WHERE name = ?", (_OWED,))


def _merge(palace: Palace, table: str) -> None:
    """Make one segment of all, step by step, as FTS5 documents it: first a negative number."""
    pages = -_PAGES_AT_ONCE
    while True:
        with palace.transaction() as db:
            before = db.total_changes
            db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608 - constants
            if db.total_changes - before < 2:
                return
        pages = _PAGES_AT_ONCE
        time.sleep(_PAUSE_SECONDS)


def _rewrite(palace: Palace) -> None:
    """VACUUM copies the palace to an unlinked file first. That file belongs on the palace's disk,
    not where /tmp is memory; the pragma is old, and without effect where SQLite has it no more."""
    folder = os.path.dirname(palace.path).replace("'", "''")
    with palace.reading() as db:
        db.execute(f"PRAGMA temp_store_directory = '{folder}'")
        try:
            db.execute("VACUUM")
        finally:
            db.execute("PRAGMA temp_store_directory = ''")  # it holds for the whole process


def _empty_log(palace: Palace) -> None:
    with palace.reading() as db:
        patience = db.execute("PRAGMA busy_timeout").fetchone()[0]
        try:
            db.execute(f"PRAGMA busy_timeout = {_ATTEMPT_MILLISECONDS}")
            for _ in range(_ATTEMPTS):
                if not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    return
                time.sleep(_ATTEMPT_MILLISECONDS / 1000)  # a writer's turn
        finally:
            db.execute(f"PRAGMA busy_timeout = {patience}")
    raise MemPalaceError(
        "a reader keeps the write-ahead log from being emptied",
        "end long readings such as `mempalace export`, then try again",
    )
