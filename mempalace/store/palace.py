"""The one door to palace.db: opening it, the write transaction, and errors that say what to do.

Owns: how the database is opened for writing and for reading only (R9), migrations, the write
transaction (`BEGIN IMMEDIATE`), and what each SQLite error means to a user.
Never: knows what is in the tables; overwrites a database that it cannot read.
Called by: every program that stores or reads.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mempalace import paths
from mempalace.errors import Locked, MemPalaceError
from mempalace.store import aside
from mempalace.store.connect import no_palace, other_version, read_only, read_only_uri
from mempalace.store.schema import MIGRATIONS

_BUSY_SECONDS = 30.0  # writers hold the lock for 50 ms; only a stuck process takes this long
_WRITER_CACHE_KIB = 16_000  # bulk inserts touch the full-text index all over
_UNREADABLE = ("malformed JSON", "Could not decode to UTF-8")  # what we write is neither
_WITHOUT_WORDS = (
    "wings", "folders", "sessions", "files", "exchanges", "records", "keys", "sightings",
    "tombstones", "owed",
)  # fmt: skip


class PalaceDamaged(MemPalaceError):
    """palace.db is not a database, or not a whole one. It is never overwritten."""


class PalaceFull(MemPalaceError):
    """Nothing more fits on the disk; nothing was changed."""


class PalaceMoved(MemPalaceError):
    """palace.db was moved, replaced or removed while it was open: nobody would read what is
    written to it. Nothing was."""


class Palace:
    """An open palace.db. Use `writer` to store and `reader` to look; close it when done."""

    def __init__(self, connection: sqlite3.Connection, path: str, told: Sequence[str] = ()) -> None:
        self.db = connection
        self.path = path
        self.told = tuple(told)  # what was done to open it, in sentences for its owner
        self._file: aside.File | None = None  # of a writer
        self._log: aside.File | None = None

    @classmethod
    def writer(cls, home: str | os.PathLike[str], *, create: bool = False) -> Palace:
        """Open for reading and writing, migrated to the present schema.

        Raises NotThereYet where there is no palace and `create` is false, PalaceDamaged where
        the file is no palace, MemPalaceError where it cannot be written.
        """
        path = os.path.join(home, paths.PALACE_DB)
        if not os.path.exists(path):
            if not create:
                raise no_palace(home)
            paths.create_home(home)
        told: list[str] = []
        if create:
            told += aside.keep_left_log(path)
            paths.keep_private(path)
        with _explained(path):
            db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                _refuse_others(db, path)
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")  # a power cut may undo, never tear
                db.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB}")
                db.execute("PRAGMA secure_delete = ON")  # R4, R10: what goes, goes from the disk
                _migrate(db)
                if create:  # whoever may begin a palace takes over, before it files, what stays out
                    told += aside.keep_forgotten(db, path)
            except BaseException:
                db.close()
                raise
        palace = cls(db, path, told)
        palace._file, palace._log = aside.file_at(path), aside.file_at(path + "-wal")
        return palace

    @classmethod
    def reader(cls, home: str | os.PathLike[str], *, lasts: bool = False) -> Palace:
        """Open for reading only: never waits, needs no write permission (R9). Say where the reading
        `lasts`: seconds, not a moment."""
        path = os.path.join(home, paths.PALACE_DB)
        with _explained(path):
            return cls(read_only(path, lasts=lasts), path)

    @classmethod
    def scratch(cls, home: str | os.PathLike[str]) -> Palace:
        """A palace that is thrown away: it knows what the real one knows, but none of its words."""
        path = os.path.join(home, paths.PALACE_DB)
        db = sqlite3.connect("", uri=True, isolation_level=None)  # '' is a temporary database
        with _explained(path):
            _migrate(db)
            if os.path.exists(path):
                read_only(path).close()  # raises where it is no palace of this version
                db.execute("ATTACH ? AS real", (read_only_uri(path),))
                db.execute("BEGIN")
                for table in _WITHOUT_WORDS:
                    db.execute(f"INSERT INTO main.{table} SELECT * FROM real.{table}")  # noqa: S608
                db.execute("COMMIT")
                db.execute("DETACH real")
            return cls(db, path, aside.keep_forgotten(db, path))

    def close(self) -> None:
        """Another palace that took this one's place must not find its log there."""
        try:
            if self.has_moved():
                aside.keep_log_of(self.path, self._log)
        finally:
            self.db.close()

    def has_moved(self) -> bool:
        """Is the file at its path another one than this writer has open, or is there none?"""
        try:
            return self._file is not None and aside.file_at(self.path) != self._file
        except OSError:
            return False  # nobody can tell

    def __enter__(self) -> Palace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check_place(self) -> None:
        """Raises PalaceMoved where what was stored is in no palace that anybody would look into."""
        if self.has_moved():
            raise _moved(self.path)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The write transaction: all of it or nothing. Raises PalaceMoved where it would be for
        nothing."""
        with self._explained():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
                self.check_place()
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent look; errors come out explained."""
        with self._explained():
            yield self.db

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What SQLite makes of a file that is gone from under it tells nothing."""
        try:
            with _explained(self.path):
                yield
        except (MemPalaceError, sqlite3.Error) as error:
            if isinstance(error, PalaceMoved) or not self.has_moved():
                raise
            raise _moved(self.path) from error

    def note(self, name: str) -> str | None:
        """A small fact about the palace itself, or None."""
        with self.reading() as db:
            row = db.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_note(self, name: str, value: str) -> None:
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO notes (name, value) VALUES (?, ?)", (name, value))


def _moved(path: str) -> PalaceMoved:
    return PalaceMoved(
        f"{path} was moved, replaced or removed while it was open",
        "run the command again: it begins with the palace that is there now",
    )


def _refuse_others(db: sqlite3.Connection, path: str) -> None:
    """Another program's database, or a newer palace: before the first byte of it is changed."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise other_version(path, version)
    if version == 0 and db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise PalaceDamaged(
            f"{path} is a database, but no palace", "choose another home with MEMPALACE_HOME"
        )


def _migrate(db: sqlite3.Connection) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    while version < len(MIGRATIONS):
        db.execute("BEGIN IMMEDIATE")
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]  # another may have been first
            if version < len(MIGRATIONS):
                for statement in _statements(MIGRATIONS[version]):
                    db.execute(statement)
                version += 1
                db.execute(f"PRAGMA user_version = {version}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def _statements(script: str) -> Iterator[str]:
    """`executescript` would commit; this keeps a migration in its transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn SQLite's errors into sentences that name the file and what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        explained = explanation(error, path)
        if explained is None:
            raise
        raise explained from error


def explanation(error: sqlite3.DatabaseError, path: str) -> MemPalaceError | None:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code
    folder = os.path.dirname(path)
    unreadable = next((told for told in _UNREADABLE if told in str(error)), "")
    if unreadable or code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return PalaceDamaged(
            f"{path} is damaged: {unreadable or error}",  # an error may quote what it cannot read
            f"nothing was changed; `{aside.command(path)}` sets it aside and files again what is"
            " still on disk; keep what is set aside, to recover the rest",
        )
    if code == sqlite3.SQLITE_FULL:
        return PalaceFull(
            f"the disk with {folder} is full",
            "free some space; nothing was lost, capture goes on where it stopped",
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Locked(
            f"{path} is locked by another process",
            "another mempalace process is writing; try again, or see `mempalace status`",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return MemPalaceError(
            f"{path} cannot be opened or written: {error}",
            f"check the permissions of {folder}",
        )
    if code == sqlite3.SQLITE_IOERR:
        return PalaceFull(
            f"reading or writing {path} failed: {error}",
            "check the disk's health and space; nothing was lost, capture goes on where it stopped",
        )
    return None
