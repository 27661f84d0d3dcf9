"""The streams of the exchanges that one transaction touches.

Owns: appending (only the last window of a stream is rewritten, once a transaction) and rebuilding
(only from the first window that changed), and moving records from one exchange to another.
Never: decides where a record belongs; opens or ends a transaction.
Called by: mempalace.filing.messages.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass, field

from mempalace.filing.derivation import judge
from mempalace.mining.chunk import windows
from mempalace.model import STREAM_OF, Role, Stream
from mempalace.store import drawers, exchanges
from mempalace.store.exchanges import SEPARATOR, Known, Stored


@dataclass(slots=True)
class _Growing:
    """What waits to be appended to an exchange."""

    seq: int
    ended_at: int | None = None
    texts: dict[Stream, list[str]] = field(default_factory=lambda: {s: [] for s in Stream})


class Streams:
    """Use `append` for what is new, the rest for what changes, `close` before the commit."""

    def __init__(self, db: sqlite3.Connection, now: int) -> None:
        self._db = db
        self._now = now
        self._growing: dict[int, _Growing] = {}
        self._changed: set[int] = set()  # exchanges whose talk is another now
        self.drawers = 0

    def close(self) -> None:
        """Write everything that still waits, and judge what has changed by its words."""
        for exchange in list(self._growing):
            self.flush(exchange)
        for exchange in sorted(self._changed):
            judge(self._db, exchange)
        self._changed.clear()

    def append(
        self,
        exchange: int,
        role: Role,
        text: str,
        *,
        keys: Collection[bytes],
        kind: str,
        omitted: int,
        said_at: int | None,
        parser: int,
        call: int | None,
    ) -> int:
        """A new record at the end of an exchange; its number."""
        growing = self._growing.get(exchange)
        if growing is None:
            growing = _Growing(exchanges.next_seq(self._db, exchange))
            self._growing[exchange] = growing
        record = exchanges.add_record(
            self._db, exchange, growing.seq, role,
            keys=tuple(keys), kind=kind, chars=len(text), omitted=omitted,
            said_at=said_at, parser=parser, call=call,
        )  # fmt: skip
        growing.seq += 1
        if text:
            growing.texts[STREAM_OF[role]].append(text)
        if said_at is not None:
            growing.ended_at = max(growing.ended_at or said_at, said_at)
        return record

    def flush(self, exchange: int) -> None:
        """Append what waits to the exchange's streams."""
        growing = self._growing.pop(exchange, None)
        if growing is None:
            return
        for stream, texts in growing.texts.items():
            if not texts:
                continue
            position, start, before = drawers.last_window(self._db, exchange, stream) or (
                0,
                0,
                "",
            )
            text = SEPARATOR.join([before, *texts] if before else texts)
            self._put(exchange, stream, position, windows(text, start))
        if growing.ended_at is not None:
            self._db.execute(
                "UPDATE exchanges SET ended_at = MAX(COALESCE(ended_at, ?1), ?1) WHERE n = ?2",
                (growing.ended_at, exchange),
            )

    def load(self, exchange: int) -> list[Stored]:
        """Every record of an exchange with its text."""
        self.flush(exchange)
        return exchanges.load(self._db, exchange)

    def rebuild(self, exchange: int, records: list[Stored]) -> None:
        """Make these records' texts the streams of an exchange that they belong to already."""
        for stream in Stream:
            texts = [r.text for r in records if STREAM_OF[r.role] is stream and r.text]
            self._put(exchange, stream, 0, windows(SEPARATOR.join(texts)))
        times = [record.said_at for record in records if record.said_at is not None]
        self._db.execute(
            "UPDATE exchanges SET ended_at = ? WHERE n = ?", (max(times, default=None), exchange)
        )

    def replace_text(self, known: Known, text: str, omitted: int, parser: int) -> None:
        """A record is read better, or has grown: its text changes in place."""
        records = self.load(known.exchange)
        for record in records:
            if record.n == known.n and record.text != text:
                record.text = text
                self.rebuild(known.exchange, records)
        self._db.execute(
            "UPDATE records SET chars = ?, omitted = ?, parser = ? WHERE n = ?",
            (len(text), omitted, parser, known.n),
        )

    def move(self, records: list[Stored], to: int) -> None:
        """Hand records, taken from `load`, to another exchange, behind what it has."""
        target = self.load(to)
        exchanges.move(self._db, [record.n for record in records], to)
        self.rebuild(to, target + records)

    def merge(self, keep: Known, drop: Known) -> None:
        """Two records are one: the second's names go to the first, what followed it moves."""
        rest = [record for record in self.load(drop.exchange) if record.n != drop.n]
        exchanges.merge_records(self._db, keep.n, drop.n)
        if keep.exchange == drop.exchange:
            self.rebuild(keep.exchange, rest)
        else:
            self.move(rest, keep.exchange)
            self.remove(drop.exchange)

    def absorb(self, keep: Known, drop: Known) -> None:
        """A text is the beginning of one that is known: it becomes another name of that."""
        rest = [record for record in self.load(drop.exchange) if record.n != drop.n]
        exchanges.merge_records(self._db, keep.n, drop.n)
        self.rebuild(drop.exchange, rest)

    def drop(self, known: Known) -> None:
        """A record goes from its stream; the last one takes its exchange along."""
        rest = [record for record in self.load(known.exchange) if record.n != known.n]
        exchanges.erase(self._db, known.n)
        if rest:
            self.rebuild(known.exchange, rest)
        else:
            self.remove(known.exchange)

    def remove(self, exchange: int) -> None:
        """An exchange that has no record left goes, and its drawers with it."""
        self._growing.pop(exchange, None)
        for stream in Stream:
            self._put(exchange, stream, 0, [])
        self._changed.discard(exchange)
        self._db.execute("DELETE FROM exchanges WHERE n = ?", (exchange,))

    def _put(self, exchange: int, stream: Stream, first: int, parts: list[tuple[int, str]]) -> None:
        exchange_id = exchanges.id_of(self._db, exchange)
        self.drawers += drawers.put_windows(
            self._db, exchange, exchange_id, stream, first, parts, now=self._now
        )
        if stream is Stream.TALK:
            self._changed.add(exchange)
        length = parts[-1][0] + len(parts[-1][1]) if parts else 0
        exchanges.measure(self._db, exchange, stream, first + len(parts), length)
