"""A palace.db that is damaged is set aside under another name, never overwritten (R4).

Owns: those names, the command that sets a palace aside, what becomes of a log whose palace is no
more at its path, and the tombstones that a new palace takes over.
Never: deletes a file, or opens one that is set aside for writing.
Called by: mempalace.store.palace, service.doctor.

The words stored last may stand in the write-ahead log alone. SQLite knows a log by its name, so
the log must go where its palace goes; beside a new palace.db it would be thrown away, or written
into that.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from shlex import quote

from mempalace import paths
from mempalace.errors import MemPalaceError
from mempalace.store.connect import read_only_uri

_NAME = f"{paths.PALACE_DB}.damaged"
_LOG = ("-wal", "-shm")
_BEYOND = b"\xff" * 17  # behind every key

File = tuple[int, int]  # device and inode


def file_at(path: str) -> File | None:
    """Which file is at a path; None where there is none. Raises OSError where nobody can tell."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def command(path: str) -> str:
    """One line for a shell that sets the palace at `path` aside, with its log, and files again
    what is on disk. Run twice, it overwrites nothing and moves no palace that is new."""
    old, new = quote(path), quote(_free(path))
    return (
        f"mv -n {old} {new} && [ ! -e {old} ] && for log in -wal -shm; do"
        f" [ ! -e {old}$log ] || mv -n {old}$log {new}$log; done && mempalace backfill"
    )


def set_aside(home: str | os.PathLike[str]) -> list[str]:
    """The palaces that were set aside in a home."""
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return []  # nor could one have been set aside there
    found = (name for name in names if name.startswith(_NAME) and not name.endswith(_LOG))
    return [os.path.join(home, name) for name in found]


def _free(path: str) -> str:
    """A name beside `path` that neither a palace nor a log has."""
    number, name = 1, f"{path}.damaged"
    while any(os.path.lexists(name + end) for end in ("", *_LOG)):
        number += 1
        name = f"{path}.damaged.{number}"
    return name


# --- a log whose palace is no more at its path ----------------------------------------------------


def keep_left_log(path: str) -> list[str]:
    """Where there is no palace at `path`, or an empty one, a log there was left behind by another:
    it goes out of the way. Tells where to."""
    left = _logs(path)  # before the palace is looked at: one that is being made has no log yet
    if os.path.exists(path) and os.path.getsize(path):
        return []
    return _keep(path, left)


def keep_log_of(path: str, log: File | None) -> list[str]:
    """Where another palace has taken the place of one whose log was `log`: that must not be played
    into the new one."""
    is_its = log is not None and os.path.exists(path) and file_at(path + _LOG[0]) == log
    return _keep(path, _logs(path)) if is_its else []


def _logs(path: str) -> list[str]:
    return [end for end in _LOG if os.path.lexists(path + end)]


def _keep(path: str, ends: list[str]) -> list[str]:
    name, log = _free(path), path + _LOG[0]
    try:
        for end in ends:
            os.rename(path + end, name + end)
    except FileNotFoundError:
        return []  # another process was first
    except OSError as error:
        raise MemPalaceError(
            f"{log} was left behind by another palace, and cannot be moved: {error.strerror}",
            f"check the permissions of {os.path.dirname(path)}",
        ) from error
    if _LOG[0] not in ends or not os.path.getsize(name + _LOG[0]):
        return []
    told = (
        f"{log} belongs to a palace.db that is here no more, and may hold words that nothing else"
        f" has: it is kept as {name}-wal; to read it, name it like that palace.db, with -wal"
    )
    return [told]


# --- what was forgotten stays forgotten -----------------------------------------------------------


def forgotten_in(path: str) -> Iterator[tuple[list[bytes], bool]]:
    """The tombstones of a palace that was set aside, in pieces, each with whether it is whole.

    A page that is damaged costs its own keys: the others are sought from either end of a piece.
    """
    uri = read_only_uri(path)
    if not os.path.exists(path + _LOG[0]):
        uri += "&immutable=1"  # or an empty log is made beside it
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=1.0)) as db:
            for first in range(256):
                begin, end = bytes([first]), bytes([first + 1]) if first < 255 else _BEYOND
                keys, is_whole = _keys(db, begin, end, "ASC")
                if not is_whole:
                    keys |= _keys(db, begin, end, "DESC")[0]
                yield sorted(keys), is_whole
    except sqlite3.Error:  # it is no database, or none of ours
        yield [], False


def _keys(db: sqlite3.Connection, begin: bytes, end: bytes, order: str) -> tuple[set[bytes], bool]:
    keys: set[bytes] = set()
    statement = f"SELECT key FROM tombstones WHERE key >= ? AND key < ? ORDER BY key {order}"  # noqa: S608 - a constant
    try:
        for (key,) in db.execute(statement, (begin, end)):
            if isinstance(key, bytes):
                keys.add(key)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return keys, False
    return keys, True


def unknown(db: sqlite3.Connection, keys: list[bytes]) -> list[bytes]:
    """Those that are no tombstones of this palace."""
    found = "SELECT 1 FROM tombstones WHERE key = ?"
    return [key for key in keys if db.execute(found, (key,)).fetchone() is None]


def keep_forgotten(db: sqlite3.Connection, path: str) -> list[str]:
    """Take over the tombstones of every palace that was set aside beside `path`; tells what was
    done, and, before anything is filed, what could not be read. In short transactions: others may
    write meanwhile."""
    told: list[str] = []
    is_new = db.execute("SELECT 1 FROM files LIMIT 1").fetchone() is None
    for old in set_aside(os.path.dirname(path)):
        taken, is_whole = 0, True
        for keys, is_piece_whole in forgotten_in(old):
            is_whole &= is_piece_whole
            new = unknown(db, keys)
            if new:
                db.execute("BEGIN IMMEDIATE")
                statement = "INSERT OR IGNORE INTO tombstones (key) VALUES (?)"
                db.executemany(statement, [(key,) for key in new])
                db.execute("COMMIT")
                taken += len(new)
        if taken:
            told.append(f"{taken:,} names of forgotten records were taken over from {old}")
        if is_new and not is_whole:
            told.append(comes_back(old))
    return told


def comes_back(path: str) -> str:
    """What to say where the tombstones of a palace that was set aside cannot all be read."""
    return (
        f"not all that was forgotten can be read from {path}: such words come back from transcripts"
        " that still have them; `mempalace search` finds them and `mempalace forget` forgets them"
        " again"
    )
