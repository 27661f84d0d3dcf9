"""Opening palace.db for reading only: no lock, no wait, no permission to write (R9).

Owns: how a reader opens the database, and what it says where there is none.
Never: writes, or imports more than sqlite3: wake-up pays for every module.
Called by: mempalace.store.palace, and mempalace.layers on the fast path.
"""

from __future__ import annotations

import os
import sqlite3

from mempalace.errors import MemPalaceError, NotThereYet
from mempalace.store.schema import MIGRATIONS

_BUSY_SECONDS = 1.0  # a reader of a write-ahead log waits only while it is being recovered


def read_only(path: str, *, lasts: bool = False) -> sqlite3.Connection:
    """`mode=ro`; `immutable` where there is no write-ahead log, or it cannot be opened.

    A sandbox may forbid even the shared-memory file that a log needs; then the answer is at most
    as old as the last checkpoint of the log. A reading that `lasts` has a log made where that may
    be: a writer that begins meanwhile changes nothing under it then. Raises NotThereYet where there
    is no palace, sqlite3.Error where SQLite cannot read the file.
    """
    if not os.path.exists(path):
        raise no_palace(os.path.dirname(path))
    uri = read_only_uri(path)
    attempts = [uri, uri + "&immutable=1"]
    if not lasts and not os.path.exists(path + "-wal"):
        attempts.reverse()
    failure: Exception = no_palace(os.path.dirname(path))
    for attempt in attempts:
        db = sqlite3.connect(attempt, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.OperationalError as error:
            db.close()
            failure = error
            continue
        except BaseException:
            db.close()
            raise
        if version == len(MIGRATIONS):
            return db
        db.close()
        if version:  # else it is empty, or all of it is in a log that this attempt cannot see
            raise other_version(path, version)
    raise failure


def read_only_uri(path: str) -> str:
    """The path as SQLite's URIs want it; urllib would cost 10 ms."""
    quoted = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file://{quoted}?mode=ro"


def no_palace(home: str | os.PathLike[str]) -> NotThereYet:
    return NotThereYet(
        f"there is no palace in {os.fspath(home)} yet",
        "run `mempalace backfill` to file the transcripts of this machine",
    )


def other_version(path: str, version: int) -> MemPalaceError:
    """palace.db has another schema than this installation."""
    if version > len(MIGRATIONS):
        return MemPalaceError(
            f"{path} was written by a newer MemPalace", "update this installation, then try again"
        )
    return NotThereYet(
        f"{path} was written by an older MemPalace",
        "run `mempalace backfill` once: it brings the palace up to date",
    )
