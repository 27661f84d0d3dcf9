"""Exchanges, their records and drawers: the rows behind what was said.

Owns: how a record is found by its keys, read back, moved and merged. Every function works inside
the caller's write transaction.
Never: decides where a record belongs (mempalace.filing does) or where a window ends (mining.chunk).
Called by: mempalace.filing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mempalace.model import STREAM_OF, Role, Stream
from mempalace.store.drawers import text_of

SEPARATOR = "\n\n"  # between the texts of two records of a stream; it belongs to neither


@dataclass(frozen=True, slots=True)
class Known:
    """A record that is in the palace already."""

    n: int
    exchange: int
    role: Role
    chars: int
    omitted: int
    parser: int


@dataclass(slots=True)
class Stored:
    """A record with its text, as it is read back from its stream."""

    n: int
    role: Role
    kind: str
    text: str
    omitted: int
    said_at: int | None
    call: int | None


def find(db: sqlite3.Connection, key: bytes) -> Known | None:
    row = db.execute(
        "SELECT r.n, r.exchange, r.role, r.chars, r.omitted, r.parser"
        " FROM keys JOIN records r ON r.n = keys.record WHERE keys.key = ?",
        (key,),
    ).fetchone()
    if row is None:
        return None
    n, exchange, role, chars, omitted, parser = row
    return Known(n, exchange, Role(role), chars, omitted, parser)


def is_tombstoned(db: sqlite3.Connection, keys: Iterable[bytes]) -> bool:
    """Was any of these forgotten? A tombstone wins over every later reading (R4)."""
    for key in keys:
        if db.execute("SELECT 1 FROM tombstones WHERE key = ?", (key,)).fetchone():
            return True
    return False


def withdraw(db: sqlite3.Connection, keys: Iterable[bytes]) -> None:
    """Remember that these words were taken back: a copy that ends before that tells otherwise."""
    db.executemany("INSERT OR IGNORE INTO withdrawn (key) VALUES (?)", [(key,) for key in keys])


def is_withdrawn(db: sqlite3.Connection, key: bytes) -> bool:
    row = db.execute("SELECT 1 FROM withdrawn WHERE key = ?", (key,)).fetchone()
    return row is not None


def add_record(
    db: sqlite3.Connection,
    exchange: int,
    seq: int,
    role: Role,
    *,
    keys: Sequence[bytes],
    kind: str,
    chars: int,
    omitted: int,
    said_at: int | None,
    parser: int,
    call: int | None,
) -> int:
    cursor = db.execute(
        "INSERT INTO records (exchange, seq, role, kind, chars, omitted, said_at, parser, call)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (exchange, seq, role, kind, chars, omitted, said_at, parser, call),
    )
    record = cursor.lastrowid
    assert record is not None  # noqa: S101 - an INSERT has a row id
    name(db, record, keys)
    return record


def name(db: sqlite3.Connection, record: int, keys: Iterable[bytes]) -> None:
    """Give a record further keys; one that names another record already keeps doing so."""
    db.executemany(
        "INSERT OR IGNORE INTO keys (key, record) VALUES (?, ?)", [(key, record) for key in keys]
    )


def see(db: sqlite3.Connection, record: int, file: int, content: int, offset: int) -> None:
    """Note a sighting."""
    db.execute(
        "INSERT INTO sightings (file, offset, record, content) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET content = excluded.content",
        (file, offset, record, content),
    )


def next_seq(db: sqlite3.Connection, exchange: int) -> int:
    row = db.execute("SELECT MAX(seq) FROM records WHERE exchange = ?", (exchange,)).fetchone()
    return 0 if row[0] is None else int(row[0]) + 1


def load(db: sqlite3.Connection, exchange: int) -> list[Stored]:
    """Every record of an exchange with its text, in order of arrival."""
    rows = db.execute(
        "SELECT n, role, kind, chars, omitted, said_at, call FROM records"
        " WHERE exchange = ? ORDER BY seq",
        (exchange,),
    ).fetchall()
    streams = {stream: text_of(db, exchange, stream) for stream in Stream}
    at = dict.fromkeys(Stream, 0)
    result = []
    for n, role, kind, chars, omitted, said_at, call in rows:
        stream = STREAM_OF[Role(role)]
        begin = at[stream]
        text = streams[stream][begin : begin + chars]
        if chars:
            at[stream] = begin + chars + len(SEPARATOR)
        result.append(Stored(n, Role(role), kind, text, omitted, said_at, call))
    return result


def move(db: sqlite3.Connection, records: Sequence[int], to: int) -> None:
    """Hand records to another exchange, behind what is there; the streams are the caller's."""
    seq = next_seq(db, to)
    for place, record in enumerate(records, seq):
        db.execute("UPDATE records SET exchange = ?, seq = ? WHERE n = ?", (to, place, record))


def merge_records(db: sqlite3.Connection, keep: int, drop: int) -> None:
    """Two records turn out to be one: its names and sightings go to the one that is kept."""
    db.execute("UPDATE keys SET record = ? WHERE record = ?", (keep, drop))
    db.execute("UPDATE records SET call = ? WHERE call = ?", (keep, drop))
    db.execute("UPDATE OR IGNORE sightings SET record = ? WHERE record = ?", (keep, drop))
    db.execute("DELETE FROM sightings WHERE record = ?", (drop,))
    db.execute("DELETE FROM records WHERE n = ?", (drop,))


def erase(db: sqlite3.Connection, record: int) -> None:
    """A record goes, with its names and sightings; its stream is the caller's."""
    for statement in (
        "DELETE FROM keys WHERE record = ?",
        "DELETE FROM sightings WHERE record = ?",
        "UPDATE records SET call = NULL WHERE call = ?",
        "DELETE FROM records WHERE n = ?",
    ):
        db.execute(statement, (record,))


# --- exchanges ------------------------------------------------------------------------------------


def create(
    db: sqlite3.Connection,
    exchange_id: str,
    *,
    session: int,
    wing: int | None,
    importance: int,
    headless: bool,
    cwd: str | None,
    at: int | None,
    place: tuple[int, int, int],
) -> int:
    """A new exchange, first seen at `place` (file, content, offset); its number."""
    cursor = db.execute(
        "INSERT INTO exchanges (id, session, wing, importance, headless, cwd, started_at, ended_at,"
        " file, content, offset) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (exchange_id, session, wing, importance, headless, cwd, at, at, *place),
    )
    if at is not None:
        db.execute(
            "UPDATE sessions SET started_at = MIN(COALESCE(started_at, ?1), ?1) WHERE n = ?2",
            (at, session),
        )
    assert cursor.lastrowid is not None  # noqa: S101 - an INSERT has a row id
    return cursor.lastrowid


def create_beside(db: sqlite3.Connection, exchange: int, exchange_id: str) -> int:
    """A headless exchange with the session, wing and place of another."""
    cursor = db.execute(
        "INSERT INTO exchanges (id, session, wing, headless, cwd, started_at, ended_at, file,"
        " content, offset) SELECT ?, session, wing, 1, cwd, started_at, ended_at, file,"
        " content, offset FROM exchanges WHERE n = ?",
        (exchange_id, exchange),
    )
    assert cursor.lastrowid is not None  # noqa: S101 - an INSERT has a row id
    return cursor.lastrowid


def any_of_file(db: sqlite3.Connection, file: int) -> bool:
    """Were any words of this file stored?"""
    row = db.execute("SELECT 1 FROM exchanges WHERE file = ? LIMIT 1", (file,)).fetchone()
    return row is not None


def id_of(db: sqlite3.Connection, exchange: int) -> str:
    return str(db.execute("SELECT id FROM exchanges WHERE n = ?", (exchange,)).fetchone()[0])


def numbered(db: sqlite3.Connection, exchange_id: str) -> int | None:
    """The number of an exchange that is neither gone nor retired."""
    row = db.execute(
        "SELECT n FROM exchanges WHERE id = ? AND retired IS NULL", (exchange_id,)
    ).fetchone()
    return None if row is None else int(row[0])


def place_of(db: sqlite3.Connection, exchange: int) -> tuple[int, int, int]:
    """(file, content, offset) of its first sighting."""
    row: tuple[int, int, int] = db.execute(
        "SELECT file, content, offset FROM exchanges WHERE n = ?", (exchange,)
    ).fetchone()
    return row


def exists(db: sqlite3.Connection, exchange: int | None) -> bool:
    row = db.execute("SELECT 1 FROM exchanges WHERE n = ?", (exchange,)).fetchone()
    return row is not None


def is_headless(db: sqlite3.Connection, exchange: int) -> bool:
    row = db.execute("SELECT headless FROM exchanges WHERE n = ?", (exchange,)).fetchone()
    return row is not None and bool(row[0])


def measure(
    db: sqlite3.Connection, exchange: int, stream: Stream, drawers: int, chars: int
) -> None:
    """Keep an exchange's counts, so that `status` need not count drawers."""
    if stream is Stream.TALK:
        db.execute(
            "UPDATE exchanges SET talk_drawers = ?, talk_chars = ? WHERE n = ?",
            (drawers, chars, exchange),
        )
    else:
        db.execute("UPDATE exchanges SET tools_drawers = ? WHERE n = ?", (drawers, exchange))


def retire(db: sqlite3.Connection, exchange: int, reason: str) -> None:
    db.execute("UPDATE exchanges SET retired = ? WHERE n = ?", (reason, exchange))


def set_role(db: sqlite3.Connection, record: int, role: Role) -> None:
    db.execute("UPDATE records SET role = ? WHERE n = ?", (role, record))


def keys_of(db: sqlite3.Connection, record: int) -> list[bytes]:
    return [row[0] for row in db.execute("SELECT key FROM keys WHERE record = ?", (record,))]


def prompts_read_by_older(
    db: sqlite3.Connection, file: int, content: int, parser: int, begin: int, end: int
) -> list[tuple[int, int]]:
    """(offset, exchange) of prompts seen between two offsets that only an older parser has read.

    Prompts of the queue stand where they were typed, not where they are told of: not these.
    """
    rows = db.execute(
        "SELECT s.offset, r.exchange FROM sightings s JOIN records r ON r.n = s.record"
        " JOIN exchanges e ON e.n = r.exchange"
        " WHERE s.file = ? AND s.offset >= ? AND s.offset < ? AND s.content = ?"
        " AND r.role = ? AND r.kind NOT IN ('steer', 'bash') AND r.parser < ? AND e.retired IS NULL"
        " ORDER BY s.offset",
        (file, begin, end, content, Role.HUMAN, parser),
    )
    return rows.fetchall()


def prompt_before(db: sqlite3.Connection, file: int, content: int, offset: int) -> int | None:
    """The exchange of the last prompt before an offset of a file."""
    row = db.execute(
        "SELECT r.exchange FROM sightings s JOIN records r ON r.n = s.record"
        " JOIN exchanges e ON e.n = r.exchange"
        " WHERE s.file = ? AND s.offset < ? AND s.content = ? AND r.role = ?"
        " AND e.retired IS NULL ORDER BY s.offset DESC LIMIT 1",
        (file, offset, content, Role.HUMAN),
    ).fetchone()
    return None if row is None else int(row[0])
