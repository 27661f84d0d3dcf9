"""The proof that everything said on disk is in the palace, from the sources themselves (R1, R2).

Owns: `doctor --deep`: every transcript is read once more from its start, each of its human and
assistant records is looked up by its keys, and its words are held against those that are stored.
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
from mempalace.model import Message, Role
from mempalace.store import exchanges, whole
from mempalace.store.accounting import Account, Accounts
from mempalace.store.palace import Palace
from mempalace.transcripts import registry
from mempalace.transcripts.base import COPIED
from service.words import Kept, Words
from watcher.disk import Disk
from watcher.replay import Heard, Replay
from watcher.roots import roots
from watcher.work import COLD_SECONDS

_SPOKEN = frozenset({Role.HUMAN, Role.SAID, Role.ASSISTANT})


class Fate(Enum):
    """What became of a record."""

    STORED = "stored"
    FORGOTTEN = "forgotten"
    LEFT_OUT = "left out by rule"
    WAITING = "left to a parent that was not read yet"
    UNREAD = "not read yet"
    MISSING = "missing"


@dataclass(slots=True)
class FileProof:
    """One file: how many of its records met which fate; `trouble` where it could not be read."""

    path: str
    stored: int = 0
    forgotten: int = 0
    left_out: int = 0
    waiting: int = 0  # of a fork: its parent tells them
    unread: int = 0  # behind the checkpoint: the watcher still comes to it
    missing: int = 0
    first_missing: int | None = None  # the offset of its line
    trouble: str = ""

    _COUNTS: ClassVar[dict[Fate, str]] = {
        Fate.STORED: "stored",
        Fate.FORGOTTEN: "forgotten",
        Fate.LEFT_OUT: "left_out",
        Fate.WAITING: "waiting",
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


def prove(config: Config, words: Words, on_error: Callable[[OSError], None]) -> Iterator[FileProof]:
    """One proof a file, of every file below the roots that is not excluded. When all are there,
    `words` knows what is not stored as it was said."""
    disk = Disk()
    replay = Replay(config, disk)
    with Palace.reader(config.home) as palace:
        with palace.reading() as db:
            accounts = Accounts(db, config, registry.versions())
        for root in roots(config):
            for path, look in disk.walk(root, on_error):
                one = accounts.of(path, look)
                if not one.is_excluded and one.size:
                    yield _prove_file(palace, config, disk, replay, words, one)


def _prove_file(
    palace: Palace, config: Config, disk: Disk, replay: Replay, words: Words, one: Account
) -> FileProof:
    is_cold = abs(disk.now() - one.mtime_ns / 1e9) >= COLD_SECONDS
    proving = _Proving(config, words, one, is_cold=is_cold)
    try:
        for heard in replay.read(one.path, cold=is_cold):
            with palace.reading() as db, whole.snapshot(db):
                proving.add(db, heard)
    except OSError as error:  # border: one file's trouble is its own (R6)
        proving.proof.trouble = error.strerror or type(error).__name__
    return proving.proof


class _Proving:
    """One file, piece by piece."""

    def __init__(self, config: Config, words: Words, one: Account, *, is_cold: bool) -> None:
        self.proof = FileProof(one.path)
        self._config = config
        self._words = words
        self._kept = Kept()
        self._is_cold = is_cold
        known = one.known
        self._file = known.n if known is not None else None
        self._read_to = max(known.size, known.offset) if known is not None else 0
        self._is_stale = known is not None and known.is_stale  # older rules have chosen its words

    def add(self, db: sqlite3.Connection, heard: Heard) -> None:
        self._words.forget_exchange()
        for message in heard.messages:
            rule = self._rule(message, heard.folder)
            text = "" if rule and rule != COPIED else self._kept.text(message)
            if message.role in _SPOKEN:
                self.proof.count(self._fate(db, message, rule, text), message.offset)

    def _rule(self, message: Message, folder: str | None) -> str:
        """The rule that leaves a message out, or ''."""
        config = self._config
        cwd = message.cwd or folder
        if config.excludes(cwd=cwd, path=self.proof.path, session=message.session):
            return "excluded"
        is_kept = message.text and config.keeps(message.rule)
        return message.rule if message.rule and not is_kept else ""

    def _fate(self, db: sqlite3.Connection, message: Message, rule: str, text: str) -> Fate:
        for key in message.keys:
            known = exchanges.find(db, key)
            if known is not None:
                is_read = message.offset < self._read_to and not self._is_stale
                if is_read and text.strip():
                    self._words.compare(db, known, text, grows=not self._is_cold)
                return Fate.STORED
        if exchanges.is_tombstoned(db, message.keys):
            return Fate.FORGOTTEN
        if self._is_owed(db, message):
            return Fate.WAITING
        if rule or not text.strip():  # R10, R11: nothing is left of it
            return Fate.LEFT_OUT
        is_unread = self._is_stale or message.offset >= self._read_to
        return Fate.UNREAD if is_unread else Fate.MISSING

    def _is_owed(self, db: sqlite3.Connection, message: Message) -> bool:
        found = "SELECT 1 FROM owed WHERE file = ? AND key = ? AND NOT called"
        return db.execute(found, (self._file, message.keys[0])).fetchone() is not None
