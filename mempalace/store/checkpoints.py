"""How far each file has been read: the `files` table and what stands beside it (R5).

Owns: checkpoints, waiting texts, tallies, quarantine.
Never: opens a transcript, decides what to read.
Called by: watcher.capture in the transaction that stores what was read; mempalace.status.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mempalace.config import EXCLUDED
from mempalace.model import Checkpoint, Fingerprint

_COLUMNS = (
    "n, path, source, generation, content, offset, tail, size, mtime_ns, device, inode, "
    "prefix_length, prefix, edge, crc, state, parser, settings, rereading"
)


HIDDEN = EXCLUDED


def hidden(path: str) -> str:
    """The name under which an excluded file is known: its path never reaches the disk (R10)."""
    return HIDDEN + hashlib.md5(path.encode("utf-8", "surrogateescape")).hexdigest()  # noqa: S324 - a name, no secret


def load(db: sqlite3.Connection, path: str) -> Checkpoint | None:
    """The checkpoint of `path`, also where the file is known as an excluded one."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM files WHERE path IN (?, ?) AND source <> ''"  # noqa: S608 - constants
        " ORDER BY path = ? DESC LIMIT 1",
        (path, hidden(path), path),
    ).fetchone()
    return None if row is None else replace(_checkpoint(db, row), path=path)


def load_by_inode(db: sqlite3.Connection, device: int, inode: int) -> list[Checkpoint]:
    """Every file once seen at this inode, as its row names it: one may have moved here."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM files WHERE inode = ? AND device = ? AND source <> ''",  # noqa: S608 - constants
        (inode, device),
    )
    return [_checkpoint(db, row) for row in rows.fetchall()]


def _checkpoint(db: sqlite3.Connection, row: tuple[Any, ...]) -> Checkpoint:
    n, path, source, generation, content, offset, tail, size, mtime_ns = row[:9]
    proof = Fingerprint(*row[9:15])
    state, parser, settings, rereading = row[15:]
    texts = db.execute("SELECT digest, text FROM waiting WHERE file = ?", (n,))
    return Checkpoint(
        n, path, source, generation, content, offset, tail, size, mtime_ns, proof,
        state, parser, settings, bool(rereading), dict(texts.fetchall()), path.startswith(HIDDEN),
    )  # fmt: skip


def create(db: sqlite3.Connection, path: str, source: str) -> int:
    """A row for a file that is read for the first time; its number."""
    db.execute("INSERT OR IGNORE INTO files (path, source) VALUES (?, ?)", (path, source))
    row = db.execute("SELECT n FROM files WHERE path = ?", (path,)).fetchone()
    return int(row[0])


def rename(db: sqlite3.Connection, file: int, path: str) -> None:
    """The file stands at another path now; what was set aside there gives way."""
    db.execute("DELETE FROM files WHERE path = ? AND source = ''", (path,))
    db.execute("UPDATE OR IGNORE files SET path = ?, gone_at = NULL WHERE n = ?", (path, file))


def save(db: sqlite3.Connection, checkpoint: Checkpoint) -> None:
    """Store every field of the checkpoint, its waiting texts included."""
    c, f = checkpoint, checkpoint.fingerprint
    name = hidden(c.path) if c.is_hidden else c.path
    db.execute(
        "UPDATE files SET path=?, source=?, generation=?, content=?, offset=?, tail=?, size=?,"
        " mtime_ns=?, device=?, inode=?, prefix_length=?, prefix=?, edge=?, crc=?, state=?,"
        " parser=?, settings=?, rereading=?, gone_at=NULL, failures=0, failure=NULL WHERE n=?",
        (
            name, c.source, c.generation, c.content, c.offset, c.tail, c.size, c.mtime_ns,
            f.device, f.inode, f.prefix_length, f.prefix, f.edge, f.crc, c.state,
            c.parser, c.settings, c.rereading, c.file,
        ),
    )  # fmt: skip
    db.execute("DELETE FROM waiting WHERE file = ?", (c.file,))
    db.executemany(
        "INSERT INTO waiting (file, digest, text) VALUES (?, ?, ?)",
        [(c.file, digest, text) for digest, text in c.waiting.items()],
    )


def position(db: sqlite3.Connection, file: int) -> tuple[int, int] | None:
    """(generation, offset) as they are now: capture throws its work away where they moved."""
    row = db.execute("SELECT generation, offset FROM files WHERE n = ?", (file,)).fetchone()
    return None if row is None else (int(row[0]), int(row[1]))


def waiting(db: sqlite3.Connection) -> set[int]:
    """Files with something that waits until they are cold, and that were not read as cold yet:
    texts that nothing has ended, sessions whose folder no line has named."""
    rows = db.execute(
        "SELECT n FROM files WHERE COALESCE(json_extract(state, '$.finished'), -1) <> size"
        " AND n IN (SELECT file FROM waiting UNION SELECT e.file FROM sessions s"
        " JOIN exchanges e ON e.session = s.n WHERE s.wing IS NULL)"
    )
    return {row[0] for row in rows}


def has_no_wing(db: sqlite3.Connection, file: int) -> bool:
    """Has it exchanges of a session whose folder no line has named?"""
    row = db.execute(
        "SELECT 1 FROM exchanges e JOIN sessions s ON s.n = e.session"
        " WHERE e.file = ? AND s.wing IS NULL LIMIT 1",
        (file,),
    ).fetchone()
    return row is not None


def count(db: sqlite3.Connection, file: int, tallies: Mapping[str, int]) -> None:
    """Add to what was left out of a file by rule."""
    db.executemany(
        "INSERT INTO tallies (file, rule, count) VALUES (?, ?, ?)"
        " ON CONFLICT (file, rule) DO UPDATE SET count = count + excluded.count",
        [(file, rule, number) for rule, number in tallies.items()],
    )


def start_over(db: sqlite3.Connection, file: int) -> None:
    """A new generation counts from nothing; what could not be read is tried again (R6)."""
    db.execute("DELETE FROM tallies WHERE file = ?", (file,))
    db.execute("DELETE FROM quarantine WHERE file = ?", (file,))


def quarantine(
    db: sqlite3.Connection, file: int, parser: int, bad: Iterable[tuple[int, int, str]]
) -> None:
    """Note `(offset, length, reason)` of bytes that are no record; never the bytes (R6, R10)."""
    db.executemany(
        "INSERT OR REPLACE INTO quarantine (file, offset, length, reason, parser)"
        " VALUES (?, ?, ?, ?, ?)",
        [(file, offset, length, reason, parser) for offset, length, reason in bad],
    )


def fail(db: sqlite3.Connection, path: str, reason: str) -> None:
    """Note that a file could not be read at all; the next success clears it."""
    file = create(db, path, "")  # no source yet, so no checkpoint either
    db.execute("UPDATE files SET failures = failures + 1, failure = ? WHERE n = ?", (reason, file))


def set_aside(
    db: sqlite3.Connection, path: str, size: int, mtime_ns: int, parser: int, settings: str
) -> None:
    """Note a file that is no transcript, so that it is left alone until it changes."""
    file = create(db, path, "")
    db.execute(
        "UPDATE files SET size=?, mtime_ns=?, parser=?, settings=?, gone_at=NULL, failures=0,"
        " failure=NULL WHERE n=? AND source = ''",
        (size, mtime_ns, parser, settings, file),
    )


def mark_gone(db: sqlite3.Connection, file: int, at: int | None) -> None:
    """The source is gone, or back; what was stored of it stays (R4)."""
    db.execute("UPDATE files SET gone_at = ? WHERE n = ?", (at, file))
