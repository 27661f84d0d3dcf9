"""The proof that everything said on disk is in the palace, from the sources themselves (R1).

Owns: `doctor --deep`: every transcript is read once more from its start, and each of its human and
assistant records is looked up by its keys.
Never: writes, repairs, or holds more than a piece of one file. It trusts the format modules for
what a record is, and nothing of what the watcher has noted.
Called by: service.doctor.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from mempalace.config import Config
from mempalace.mining import private
from mempalace.model import Message, Role
from mempalace.store.accounting import Account, Accounts
from mempalace.store.palace import Palace
from mempalace.transcripts import registry
from watcher.disk import Disk
from watcher.replay import Replay
from watcher.roots import roots

_SPOKEN = frozenset({Role.HUMAN, Role.SAID, Role.ASSISTANT})
_COLD_SECONDS = 60.0


class Fate(Enum):
    """What became of a record."""

    STORED = "stored"
    FORGOTTEN = "forgotten"
    LEFT_OUT = "left out by rule"
    UNREAD = "not read yet"
    MISSING = "missing"


@dataclass(slots=True)
class FileProof:
    """One file: how many of its records met which fate; `trouble` where it could not be read."""

    path: str
    stored: int = 0
    forgotten: int = 0
    left_out: int = 0
    unread: int = 0  # behind the checkpoint: the watcher still comes to it
    missing: int = 0
    first_missing: int | None = None  # the offset of its line
    trouble: str = ""

    _COUNTS: ClassVar[dict[Fate, str]] = {
        Fate.STORED: "stored",
        Fate.FORGOTTEN: "forgotten",
        Fate.LEFT_OUT: "left_out",
        Fate.UNREAD: "unread",
        Fate.MISSING: "missing",
    }

    def count(self, fate: Fate, offset: int) -> None:
        name = self._COUNTS[fate]
        setattr(self, name, getattr(self, name) + 1)
        if fate is Fate.MISSING and self.first_missing is None:
            self.first_missing = offset

    def add(self, other: FileProof) -> None:
        for name in self._COUNTS.values():
            setattr(self, name, getattr(self, name) + getattr(other, name))


def prove(config: Config, on_error: Callable[[OSError], None]) -> Iterator[FileProof]:
    """One proof a file, of every file below the roots that is not excluded."""
    disk = Disk()
    replay = Replay(config, disk)
    with Palace.reader(config.home) as palace:
        with palace.reading() as db:
            accounts = Accounts(db, config, registry.versions())
        for root in roots(config):
            for path, look in disk.walk(root, on_error):
                one = accounts.of(path, look)
                if not one.is_excluded and one.size:
                    yield _prove_file(palace, config, disk, replay, one)


def _prove_file(
    palace: Palace, config: Config, disk: Disk, replay: Replay, one: Account
) -> FileProof:
    proof = FileProof(one.path)
    is_cold = abs(disk.now() - one.mtime_ns / 1e9) >= _COLD_SECONDS
    read_to = one.known.size if one.known is not None else 0
    try:
        for heard in replay.read(one.path, cold=is_cold):
            with palace.reading() as db:
                for message in heard.messages:
                    if message.role in _SPOKEN:
                        fate = _fate(db, config, message, heard.folder, one.path)
                        if fate is Fate.MISSING and message.offset >= read_to:
                            fate = Fate.UNREAD
                        proof.count(fate, message.offset)
    except OSError as error:  # border: one file's trouble is its own (R6)
        proof.trouble = error.strerror or type(error).__name__
    return proof


def _fate(
    db: sqlite3.Connection, config: Config, message: Message, folder: str | None, path: str
) -> Fate:
    if _is_any(db, "SELECT 1 FROM keys WHERE key = ?", message):
        return Fate.STORED
    if _is_any(db, "SELECT 1 FROM tombstones WHERE key = ?", message):
        return Fate.FORGOTTEN
    cwd = message.cwd or folder
    if config.excludes(cwd=cwd, path=path, session=message.session):
        return Fate.LEFT_OUT
    if message.rule and not (message.text and config.keeps(message.rule)):
        return Fate.LEFT_OUT
    if not private.strip_echo(private.strip_private(message.text)).strip():
        return Fate.LEFT_OUT  # R10, R11: nothing is left of it
    return Fate.MISSING


def _is_any(db: sqlite3.Connection, statement: str, message: Message) -> bool:
    return any(db.execute(statement, (key,)).fetchone() for key in message.keys)
