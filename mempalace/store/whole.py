"""Exchanges read back whole: each record in the order of its arrival, sessions as they began.

Owns: the order of an export, and that a long reading sees one moment of the palace.
Never: writes, formats, or holds more than one exchange.
Called by: the commands `show` and `export`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mempalace.model import Role
from mempalace.store import exchanges
from mempalace.store.checkpoints import HIDDEN
from mempalace.store.derived import entities_of
from mempalace.store.exchanges import Stored


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange with all its words. Times are microseconds since 1970 UTC."""

    id: str
    source: str
    session_id: str
    started_at: int | None
    ended_at: int | None
    cwd: str | None  # its own, else its session's
    wing: str | None
    room: str
    hall: str | None
    memory_type: str | None
    importance: int
    key_sentence: str
    entities: list[tuple[str, str]]  # (kind, name), the most telling first
    headless: bool
    retired: str | None
    records: list[Stored]
    sightings: list[tuple[str, int]]  # (path, offset) of its prompt, or of its first record


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """All statements inside see the same moment, whatever is written meanwhile."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("COMMIT")


def exchange(db: sqlite3.Connection, n: int) -> Exchange:
    """One exchange by its number."""
    row = db.execute(
        "SELECT e.id, s.source, s.id, e.started_at, e.ended_at, COALESCE(e.cwd, s.cwd), w.name,"
        " e.room, e.headless, e.retired, e.hall, e.memory_type, e.importance,"
        " COALESCE(e.key_sentence, '') FROM exchanges e JOIN sessions s ON s.n = e.session"
        " LEFT JOIN wings w ON w.id = e.wing WHERE e.n = ?",
        (n,),
    ).fetchone()
    exchange_id, source, session, started_at, ended_at, cwd, wing, room, headless, retired = row[
        :10
    ]
    hall, memory_type, importance, key_sentence = row[10:]
    records = exchanges.load(db, n)
    first = next((r for r in records if r.role is Role.HUMAN), records[0] if records else None)
    return Exchange(
        id=exchange_id,
        source=source,
        session_id=session,
        started_at=started_at,
        ended_at=ended_at,
        cwd=cwd,
        wing=wing,
        room=room,
        hall=hall,
        memory_type=memory_type,
        importance=importance,
        key_sentence=key_sentence,
        entities=entities_of(db, n),
        headless=bool(headless),
        retired=retired,
        records=records,
        sightings=_sightings(db, first.n) if first else [],
    )


def _sightings(db: sqlite3.Connection, record: int) -> list[tuple[str, int]]:
    rows = db.execute(
        "SELECT f.path, s.offset FROM sightings s JOIN files f ON f.n = s.file"
        " WHERE s.record = ? ORDER BY f.path, s.offset",
        (record,),
    )
    return [(path, offset) for path, offset in rows if not path.startswith(HIDDEN)]


def in_order(
    db: sqlite3.Connection, *, wing: int | None, session: int | None, headless: bool
) -> Iterator[Exchange]:
    """Every exchange that is not retired: sessions as they began, each in file order.

    Where a session is in several files, the one that begins first comes first.
    """
    if session is None:
        numbers = db.execute(
            "SELECT n FROM sessions ORDER BY started_at IS NULL, started_at, n"
        ).fetchall()
    else:
        numbers = [(session,)]
    for (number,) in numbers:
        for n in _of_session(db, number, wing=wing, headless=headless):
            yield exchange(db, n)


def _of_session(
    db: sqlite3.Connection, session: int, *, wing: int | None, headless: bool
) -> list[int]:
    rows = db.execute(
        "SELECT n, file, started_at, content, offset FROM exchanges WHERE session = ?"
        " AND retired IS NULL AND (? OR headless = 0) AND (? IS NULL OR wing = ?)",
        (session, headless, wing, wing),
    ).fetchall()
    starts: dict[int | None, float] = {}
    for _, file, started_at, _, _ in rows:
        start = float("inf") if started_at is None else started_at
        starts[file] = min(start, starts.get(file, start))
    rows.sort(key=lambda row: (starts[row[1]], row[1] or 0, row[3], row[4], row[0]))
    return [row[0] for row in rows]
