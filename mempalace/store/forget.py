"""Forgetting: the rows that go, and the names that keep them from coming back (R4).

Owns: which exchanges a session or a wing holds, what of an exchange is deleted, and tombstones.
Every function that changes something works inside the caller's write transaction.
Never: asks, or decides what is forgotten; wipes what the deleted rows leave in the file (sweep).
Called by: mempalace.filing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter

from mempalace.ids import closet_id, drawer_id
from mempalace.model import Role, Stream
from mempalace.store import sweep
from mempalace.store.exchanges import load
from mempalace.store.moments import opening

_AT_ONCE = 500  # exchanges in one transaction


@dataclass(frozen=True, slots=True)
class Going:
    """What would go. Times are microseconds since 1970 UTC."""

    exchanges: int
    records: int
    drawers: int
    wings: list[str]
    sessions: list[str]
    begin: int | None
    end: int | None
    openings: list[tuple[str, str]]  # (exchange id, how it begins) of the first few


@dataclass(slots=True)
class Gone:
    """What exchanges were that are no more."""

    exchanges: int = 0
    records: int = 0
    drawers: int = 0
    files: set[int] = field(default_factory=set)  # where their records were seen
    prompts: set[str] = field(default_factory=set)  # where texts wait: copies may be among them
    ended: set[str] = field(default_factory=set)  # ids of sessions of which nothing is left


# --- what is there --------------------------------------------------------------------------------


def of_session(db: sqlite3.Connection, session: int) -> list[str]:
    """The ids of every exchange of a session, retired and headless ones included."""
    rows = db.execute(
        "SELECT id FROM exchanges WHERE session = ? ORDER BY started_at, n", (session,)
    )
    return [row[0] for row in rows]


def of_wing(db: sqlite3.Connection, wing: int) -> list[str]:
    """The ids of every exchange of a wing, retired and headless ones included."""
    rows = db.execute("SELECT id FROM exchanges WHERE wing = ? ORDER BY started_at, n", (wing,))
    return [row[0] for row in rows]


def going(db: sqlite3.Connection, ids: Sequence[str], openings: int) -> Going:
    """What these exchanges are, told before they go; at most so many `openings`."""
    listed = json.dumps(list(ids))
    chosen = "exchanges e JOIN json_each(?) j ON e.id = j.value"
    count, begin, end, talk, tools = db.execute(
        "SELECT COUNT(*), MIN(e.started_at), MAX(COALESCE(e.ended_at, e.started_at)),"  # noqa: S608 - constants
        f" TOTAL(e.talk_drawers), TOTAL(e.tools_drawers) FROM {chosen}",
        (listed,),
    ).fetchone()
    records = db.execute(
        f"SELECT COUNT(*) FROM {chosen} JOIN records r ON r.exchange = e.n",  # noqa: S608 - constants
        (listed,),
    ).fetchone()[0]
    wings = db.execute(
        f"SELECT DISTINCT w.name FROM {chosen} JOIN wings w ON w.id = e.wing ORDER BY 1",  # noqa: S608 - constants
        (listed,),
    )
    sessions = db.execute(
        f"SELECT DISTINCT s.id FROM {chosen} JOIN sessions s ON s.n = e.session ORDER BY 1",  # noqa: S608 - constants
        (listed,),
    )
    return Going(
        exchanges=count,
        records=records,
        drawers=int(talk + tools),
        wings=[row[0] for row in wings],
        sessions=[row[0] for row in sessions],
        begin=begin,
        end=end,
        openings=[(one, _opening(db, one)) for one in ids[:openings]],
    )


def _opening(db: sqlite3.Connection, exchange_id: str) -> str:
    """How an exchange begins: its prompt, else its talk, else what a tool was told."""
    row = db.execute("SELECT n FROM exchanges WHERE id = ?", (exchange_id,)).fetchone()
    if row is None:
        return ""
    prompt = opening(db, row[0])
    if prompt:
        return prompt
    first = db.execute(
        "SELECT text FROM drawers WHERE exchange = ? ORDER BY stream, position LIMIT 1", row
    ).fetchone()
    return str(first[0]) if first else ""


# --- what goes ------------------------------------------------------------------------------------


def forget(
    db: sqlite3.Connection, ids: Iterable[str], now: int, *, until: float = inf
) -> tuple[Gone, bool]:
    """Delete exchanges, and the sessions and wings of which nothing is left with them; the keys of
    their records become tombstones. Stops after a few hundred, or when `perf_counter` is past
    `until`; then the second value is true: there is more of `ids`.

    By id, never by number: SQLite gives the number of a deleted row to the next new one.
    """
    gone = Gone()
    sessions: set[int] = set()
    wings: set[int] = set()
    is_more = False
    for number, exchange_id in enumerate(ids, 1):
        row = db.execute(
            "SELECT n, session, wing FROM exchanges WHERE id = ?", (exchange_id,)
        ).fetchone()
        if row is not None:
            _delete(db, row[0], exchange_id, gone, now)
            sessions.add(row[1])
            wings |= set() if row[2] is None else {row[2]}
        if number >= _AT_ONCE or perf_counter() >= until:
            is_more = True
            break
    gone.ended = _tidy(db, sessions, wings)
    sweep.owe(db)
    return gone, is_more


def _delete(db: sqlite3.Connection, n: int, exchange_id: str, gone: Gone, now: int) -> None:
    records = [row[0] for row in db.execute("SELECT n FROM records WHERE exchange = ?", (n,))]
    files = db.execute(
        "SELECT file FROM exchanges WHERE n = ?1 AND file IS NOT NULL UNION SELECT s.file"
        " FROM sightings s JOIN records r ON r.n = s.record WHERE r.exchange = ?1",
        (n,),
    )
    seen_in = {row[0] for row in files}
    if paths_that_wait(db, seen_in):
        gone.prompts.update(r.text for r in load(db, n) if r.role is Role.HUMAN)
    _bury(db, n, exchange_id)
    _post_deletions(db, n, exchange_id, now)
    for record in records:
        db.execute("DELETE FROM keys WHERE record = ?", (record,))
        db.execute("DELETE FROM sightings WHERE record = ?", (record,))
    db.execute("DELETE FROM records WHERE exchange = ?", (n,))
    gone.drawers += db.execute("DELETE FROM drawers WHERE exchange = ?", (n,)).rowcount
    db.execute("DELETE FROM closets WHERE exchange = ?", (n,))
    db.execute("DELETE FROM exchanges WHERE n = ?", (n,))
    gone.exchanges += 1
    gone.records += len(records)
    gone.files |= seen_in


def _bury(db: sqlite3.Connection, exchange: int, exchange_id: str) -> None:
    """Every name of every record; the exchange's own as well: a reader's state may hold it."""
    db.execute(
        "INSERT OR IGNORE INTO tombstones (key) SELECT k.key FROM keys k"
        " JOIN records r ON r.n = k.record WHERE r.exchange = ?",
        (exchange,),
    )
    tombstone(db, [bytes.fromhex(exchange_id)])


def _post_deletions(db: sqlite3.Connection, exchange: int, exchange_id: str, now: int) -> None:
    """The vector index hears of it; what waits to be embedded waits no longer."""
    talk = db.execute(
        "SELECT position FROM drawers WHERE exchange = ? AND stream = ?", (exchange, Stream.TALK)
    ).fetchall()
    closets = db.execute("SELECT position FROM closets WHERE exchange = ?", (exchange,)).fetchall()
    items = [drawer_id(exchange_id, Stream.TALK, position) for (position,) in talk]
    items += [closet_id(exchange_id, position) for (position,) in closets]
    db.executemany(
        "INSERT OR REPLACE INTO outbox (item, operation, md5, due_at) VALUES (?, 'delete', x'', ?)",
        [(item, now) for item in items],
    )


def _tidy(db: sqlite3.Connection, sessions: Iterable[int], wings: Iterable[int]) -> set[str]:
    """Remove of these what nothing is left of, names and folders included; the sessions' ids.

    Files stay with their checkpoints: their bytes remain accounted for (R5).
    """
    ended: set[str] = set()
    for session in sorted(sessions):
        left = db.execute("SELECT 1 FROM exchanges WHERE session = ? LIMIT 1", (session,))
        if left.fetchone() is None:
            gone = db.execute("DELETE FROM sessions WHERE n = ? RETURNING id", (session,))
            ended.update(row[0] for row in gone.fetchall())
        else:
            db.execute(
                "UPDATE sessions SET started_at = (SELECT MIN(started_at) FROM exchanges"
                " WHERE session = ?1) WHERE n = ?1",
                (session,),
            )
    for wing in sorted(wings):
        db.execute(
            "DELETE FROM sessions WHERE wing = ? AND NOT EXISTS"
            " (SELECT 1 FROM exchanges e WHERE e.session = sessions.n)",
            (wing,),
        )
        left = db.execute(
            "SELECT 1 FROM exchanges WHERE wing = ?1 UNION ALL"
            " SELECT 1 FROM sessions WHERE wing = ?1 LIMIT 1",
            (wing,),
        )
        if left.fetchone() is None:
            db.execute("DELETE FROM folders WHERE wing = ?", (wing,))
            db.execute("DELETE FROM wings WHERE id = ?", (wing,))
    return ended


# --- names that keep them out ---------------------------------------------------------------------


def tombstone(db: sqlite3.Connection, keys: Iterable[bytes]) -> None:
    """Whatever has one of these names is forgotten, now and whenever it is met again."""
    db.executemany("INSERT OR IGNORE INTO tombstones (key) VALUES (?)", [(key,) for key in keys])


def is_anything_forgotten(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM tombstones LIMIT 1").fetchone() is not None


# --- texts that wait ------------------------------------------------------------------------------


def paths_that_wait(db: sqlite3.Connection, files: Iterable[int]) -> list[str]:
    """The paths of those files of which some text waits."""
    rows = db.execute(
        "SELECT path FROM files WHERE n IN (SELECT value FROM json_each(?))"
        " AND n IN (SELECT file FROM waiting)",
        (json.dumps(sorted(files)),),
    )
    return [row[0] for row in rows]


def stop_waiting(db: sqlite3.Connection, file: int, digests: Iterable[str]) -> None:
    """Drop waiting texts of a file. Whoever is reading it right now holds them in memory and would
    write them back: a new generation has its work thrown away (R5)."""
    rows = [(file, digest) for digest in digests]
    if rows:
        db.executemany("DELETE FROM waiting WHERE file = ? AND digest = ?", rows)
        db.execute("UPDATE files SET generation = generation + 1 WHERE n = ?", (file,))
