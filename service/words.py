"""Is what is stored what the transcripts say, character for character? (R2)

Owns: the text that filing keeps of a message, and the exchanges of which no transcript on disk says
what is stored, or whose drawers contradict each other.
Never: names a word of either; reads a transcript; writes.
Called by: service.proof.
"""

from __future__ import annotations

import sqlite3

from mempalace.mining import private
from mempalace.model import Message, Stream
from mempalace.store import exchanges
from mempalace.store.exchanges import Known


class Kept:
    """What is kept of the words of one file's messages, which it must be given in order: private
    ones are out, and what MemPalace itself put in (R10, R11). So does mempalace.filing.messages."""

    def __init__(self) -> None:
        self._private_to_its_end = ""  # a message, by name

    def text(self, message: Message) -> str:
        whole = message.whole or f"@{message.offset}"
        is_out = whole == self._private_to_its_end
        if is_out and message.grows is None:
            return ""
        if private.is_left_open(message.text):
            self._private_to_its_end = whole
        elif is_out:
            self._private_to_its_end = ""
        return private.strip_echo(private.strip_private(message.text))


class Words:
    """Call `compare` for every stored record that a transcript tells; a record is told by many: by
    a fork, a resume, an earlier line that had less of it. One that says what is stored is enough.
    """

    def __init__(self) -> None:
        self._agreed = bytearray()  # a bit for each record, by its number
        self._other: dict[int, str] = {}  # record -> its exchange, where none has agreed so far
        self._torn: set[str] = set()
        self.forget_exchange()

    def forget_exchange(self) -> None:
        """The palace may have changed since: look at it anew."""
        self._exchange, self._texts = -1, dict[int, str]()

    def compare(self, db: sqlite3.Connection, known: Known, text: str, *, grows: bool) -> None:
        """`grows`: there may be more of the text by now than was read."""
        byte, bit = divmod(known.n, 8)
        if byte >= len(self._agreed):
            self._agreed.extend(bytes(byte + 1 - len(self._agreed)))
        if known.exchange != self._exchange:
            self._load(db, known.exchange)
        stored = self._texts.get(known.n, "")
        if stored == text or (grows and stored.startswith(text)):
            self._agreed[byte] |= 1 << bit
            self._other.pop(known.n, None)
        elif not self._agreed[byte] & 1 << bit:
            self._other[known.n] = exchanges.id_of(db, known.exchange)

    def _load(self, db: sqlite3.Connection, exchange: int) -> None:
        self._exchange = exchange
        self._texts = {one.n: one.text for one in exchanges.load(db, exchange)}
        end, before = 0, ""
        for start, text in db.execute(
            "SELECT start, text FROM drawers WHERE exchange = ? AND stream = ? ORDER BY position",
            (exchange, Stream.TALK),
        ):
            overlap = end - start
            if overlap > 0 and before[-overlap:] != text[:overlap]:
                self._torn.add(exchanges.id_of(db, exchange))
            end, before = start + len(text), text

    def differing(self) -> list[str]:
        """The ids of the exchanges that are not stored as they were said."""
        return sorted(self._torn.union(self._other.values()))
