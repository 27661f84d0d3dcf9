"""The windows of an exchange's streams, and what of them the vector index must be told.

Owns: the `drawers` table (full text follows by triggers) and the drawers' rows of the outbox. Every
function works inside the caller's write transaction.
Never: decides where a window ends (mining.chunk does).
Called by: mempalace.filing.streams; text_of by whoever reads an exchange back.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence

from mempalace.ids import drawer_id
from mempalace.model import Stream
from mempalace.store.fulltext import segments

_STILL_MICROSECONDS = 5_000_000  # an open window is embedded when it was still this long


def last_window(
    db: sqlite3.Connection, exchange: int, stream: Stream
) -> tuple[int, int, str] | None:
    """(position, start, text) of the open window of a stream."""
    row: tuple[int, int, str] | None = db.execute(
        "SELECT position, start, text FROM drawers WHERE exchange = ? AND stream = ?"
        " ORDER BY position DESC LIMIT 1",
        (exchange, stream),
    ).fetchone()
    return row


def text_of(db: sqlite3.Connection, exchange: int, stream: Stream) -> str:
    """A whole stream: its drawers joined without their overlaps (R2)."""
    pieces: list[str] = []
    length = 0
    for start, text in db.execute(
        "SELECT start, text FROM drawers WHERE exchange = ? AND stream = ? ORDER BY position",
        (exchange, stream),
    ):
        pieces.append(text[length - start :])
        length = start + len(text)
    return "".join(pieces)


def put_windows(
    db: sqlite3.Connection,
    exchange: int,
    exchange_id: str,
    stream: Stream,
    first: int,
    windows: Sequence[tuple[int, str]],
    *,
    now: int,
) -> int:
    """Make `windows` the drawers of a stream from position `first` on.

    Only what differs is written; each talk drawer that changed enters the outbox, and one that
    went leaves through it. Gives the number of drawers written.
    """
    old = {
        position: (n, start, text)
        for n, position, start, text in db.execute(
            "SELECT n, position, start, text FROM drawers"
            " WHERE exchange = ? AND stream = ? AND position >= ?",
            (exchange, stream, first),
        )
    }
    fresh: list[tuple[int, int, int, int, str, str | None]] = []
    changed: list[tuple[int, str]] = []
    for position, (start, text) in enumerate(windows, first):
        before = old.pop(position, None)
        if before is None:
            fresh.append((exchange, stream, position, start, text, segments(text)))
        elif before[1:] != (start, text):
            db.execute(
                "UPDATE drawers SET start = ?, text = ?, segments = ? WHERE n = ?",
                (start, text, segments(text), before[0]),
            )
        else:
            continue
        changed.append((position, text))
    if fresh:
        db.executemany(
            "INSERT INTO drawers (exchange, stream, position, start, text, segments)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            fresh,
        )
    for n, _, _ in old.values():
        db.execute("DELETE FROM drawers WHERE n = ?", (n,))
    if stream is Stream.TALK:
        last = first + len(windows) - 1
        _post(db, exchange_id, [(p, t, p == last) for p, t in changed], list(old), now)
    return len(changed)


def _post(
    db: sqlite3.Connection,
    exchange_id: str,
    changed: Sequence[tuple[int, str, bool]],
    gone: Sequence[int],
    now: int,
) -> None:
    rows = [
        (
            drawer_id(exchange_id, Stream.TALK, position),
            "embed",
            hashlib.md5(text.encode(), usedforsecurity=False).digest(),
            now + _STILL_MICROSECONDS if is_open else now,
        )
        for position, text, is_open in changed
    ]
    rows += [
        (drawer_id(exchange_id, Stream.TALK, position), "delete", b"", now) for position in gone
    ]
    db.executemany(
        "INSERT OR REPLACE INTO outbox (item, operation, md5, due_at) VALUES (?, ?, ?, ?)", rows
    )
