"""Is a message one of those that were forgotten, or does it go on where they ended? (R4)

Owns: how tombstones are put to the messages of a later reading, and how they spread: to the other
names of a forgotten record, and to what follows it up to the next prompt.
Never: changes a stored word.
Called by: mempalace.filing.messages.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from mempalace.model import Message, Role
from mempalace.store import exchanges
from mempalace.store.forget import is_anything_forgotten, tombstone

RULE = "forgotten"  # under which it is counted


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Stands where an exchange was: what still follows it is left out as it was."""

    key: bytes  # a tombstone

    @property
    def id(self) -> str:
        """Its name in a reader's state: like the exchange's own."""
        return self.key.hex()


End = int | Forgotten | None
"""Where the next record belongs: to an exchange, to one that was forgotten, to none."""


class Tombstones:
    """Asked for every message; where nothing was ever forgotten that costs nothing."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._is_any = is_anything_forgotten(db)

    def end_of(self, exchange_id: str | None) -> Forgotten | None:
        """What a reader's state names, where that was forgotten."""
        if not exchange_id or not self._is_any:
            return None
        key = bytes.fromhex(exchange_id)
        return Forgotten(key) if self.hold([key]) else None

    def hold(self, keys: Iterable[bytes]) -> bool:
        """Is any of these names one of a forgotten record?"""
        return self._is_any and exchanges.is_tombstoned(self._db, keys)

    def cover(self, message: Message, end: End) -> bool:
        """Was it forgotten, or does it belong to what was? `end` is where it would be added.

        A record that is stored is not forgotten for what is around it; only its own names can
        tell. A prompt begins something new, and what answers a stored call follows that.
        """
        if not self._is_any:
            return False
        if self.hold(message.keys):
            return True
        if message.role is Role.HUMAN or self._is_stored(message):
            return False
        before = [key for key in (message.call, message.grows) if key is not None]
        if self.hold(before):
            return True
        if not isinstance(end, Forgotten):
            return False
        if message.call is None:
            return True
        is_lost = exchanges.find(self._db, message.call) is None
        return is_lost and message.role is not Role.RESULT  # ADR 0003: that answers nobody

    def spread(self, message: Message) -> Forgotten:
        """All names of a forgotten message keep it out from now on: a fork may know it by one of
        them alone. Not where one names a record that is stored."""
        if not self._is_stored(message):
            tombstone(self._db, message.keys)
        buried = (key for key in message.keys if self.hold([key]))
        return Forgotten(next(buried, message.keys[0]))

    def opened_by(self, message: Message) -> list[int]:
        """The exchanges of prompts that are stored under one name of a prompt that was forgotten
        under another: nothing told so far that they are the same words."""
        found = [exchanges.find(self._db, key) for key in message.keys]
        prompts = {one.exchange for one in found if one and one.role is Role.HUMAN}
        return sorted(prompts) if message.role is Role.HUMAN else []

    def _is_stored(self, message: Message) -> bool:
        return any(exchanges.find(self._db, key) for key in message.keys)
