"""Vectors of talk drawers as float16 blobs, and the outbox that says which are missing.

Owns: the tables `models` and `vectors`, and the librarian's side of the outbox. A vector is kept
only where the drawer still has the text that was embedded: its row in the outbox, which follows
every change of the text in the same transaction, still has that MD5.
Never: computes with a vector; to this module it is bytes.
Called by: mempalace.index; mempalace.status for the counts.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mempalace.ids import drawer_id
from mempalace.model import Stream

_ID = 32  # hexadecimal digits of an exchange's id, with which a drawer's begins
_IS_TALK = f"substr(o.item, {_ID + 1}, 6) = '-talk-'"
_POSITION = f"CAST(substr(o.item, {_ID + 7}) AS INTEGER)"
_PAGE = 4_096  # rows read at once
PROJECTION_NOTE = "projection"  # what is known of Chroma's folder
_PROBLEM_NOTE = "librarian"
_PROBLEM_SECONDS = 600.0  # after which another start is tried


@dataclass(frozen=True, slots=True)
class Due:
    """A drawer whose text must be embedded."""

    item: str  # its id
    md5: bytes
    drawer: int
    exchange: int
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """A vector as it is kept. `n` grows from each one kept to the next."""

    n: int
    drawer: int
    exchange: int
    vector: bytes  # float16


# --- models ---------------------------------------------------------------------------------------


def model_number(db: sqlite3.Connection, name: str, dimension: int, fingerprint: str) -> int:
    """The number of a model, which it is given when it is first met."""
    db.execute(
        "INSERT OR IGNORE INTO models (name, dimension, fingerprint) VALUES (?, ?, ?)",
        (name, dimension, fingerprint),
    )
    row = db.execute("SELECT n FROM models WHERE fingerprint = ?", (fingerprint,)).fetchone()
    return int(row[0])


def counts(db: sqlite3.Connection) -> dict[int, int]:
    """How many vectors each model has made."""
    return dict(db.execute("SELECT model, COUNT(*) FROM vectors GROUP BY model").fetchall())


def may_lack_some(db: sqlite3.Connection, model: int) -> bool:
    """Are there more drawers of talk than vectors of this model and rows in the outbox?"""
    drawers = db.execute("SELECT COUNT(*) FROM talk_docsize").fetchone()[0]
    return int(drawers) > count(db, model) + waiting(db)


def post_missing(db: sqlite3.Connection, model: int, after: int, limit: int) -> int | None:
    """Enter talk drawers behind number `after` that this model has no vector of into the outbox.

    Looks at `limit` drawers; gives the last one's number, None where there are no more.
    """
    rows = db.execute(
        "SELECT d.n, e.id, d.position, d.text, v.drawer FROM drawers d"
        " JOIN exchanges e ON e.n = d.exchange"
        " LEFT JOIN vectors v ON v.model = ?1 AND v.drawer = d.n"
        " WHERE d.n > ?2 AND d.stream = ?3 ORDER BY d.n LIMIT ?4",
        (model, after, Stream.TALK, limit),
    ).fetchall()
    missing = [
        (drawer_id(exchange, Stream.TALK, position), md5_of(text))
        for _, exchange, position, text, vector in rows
        if vector is None
    ]
    db.executemany(
        "INSERT OR IGNORE INTO outbox (item, operation, md5, due_at) VALUES (?, 'embed', ?, 0)",
        missing,
    )
    return int(rows[-1][0]) if rows else None


def drop_other_models(db: sqlite3.Connection, model: int, limit: int) -> int:
    """Delete vectors that other models have made, `limit` at most; how many."""
    return db.execute(
        "DELETE FROM vectors WHERE n IN (SELECT n FROM vectors WHERE model <> ? LIMIT ?)",
        (model, limit),
    ).rowcount


def md5_of(text: str) -> bytes:
    """Of a drawer's text, as the outbox has it."""
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()


# --- the outbox -----------------------------------------------------------------------------------


def newest_due(db: sqlite3.Connection, now: int, limit: int) -> list[str]:
    """Ids of drawers to be embedded, what was said last first."""
    rows = db.execute(
        "SELECT o.item FROM outbox o JOIN exchanges e ON e.id = substr(o.item, 1, ?)"  # noqa: S608 - constants
        f" WHERE o.operation = 'embed' AND o.due_at <= ? AND {_IS_TALK}"
        " ORDER BY COALESCE(e.ended_at, e.started_at) DESC, e.n DESC LIMIT ?",
        (_ID, now, limit),
    )
    return [item for (item,) in rows]


def due(db: sqlite3.Connection, items: Iterable[str], now: int) -> Iterator[Due]:
    """What of these is still to be embedded, with the text as it is at this moment."""
    for item in items:
        row = db.execute(
            "SELECT o.md5, d.n, d.exchange, d.text FROM outbox o"  # noqa: S608 - constants
            " JOIN exchanges e ON e.id = substr(o.item, 1, ?) JOIN drawers d"
            f" ON d.exchange = e.n AND d.stream = ? AND d.position = {_POSITION}"
            " WHERE o.item = ? AND o.operation = 'embed' AND o.due_at <= ?",
            (_ID, Stream.TALK, item, now),
        ).fetchone()
        if row is not None:
            yield Due(item, *row)


def is_anything_due(db: sqlite3.Connection, now: int) -> bool:
    """Is there something to embed?"""
    row = db.execute(
        "SELECT 1 FROM outbox WHERE operation = 'embed' AND due_at <= ? LIMIT 1", (now,)
    ).fetchone()
    return row is not None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far embedding is."""

    vectors: int  # drawers that have one
    waiting: int  # drawers without one of their present text
    model: str | None  # the name of the one that made most of them
    problem: str  # why no librarian can work here, '' where nothing is known


def progress(db: sqlite3.Connection, now: float) -> Progress:
    """What `status` tells; `now` is seconds since 1970."""
    made, model = db.execute(
        "SELECT COUNT(*), (SELECT name FROM models m WHERE m.n = model) FROM vectors"
        " GROUP BY model ORDER BY 1 DESC LIMIT 1"
    ).fetchone() or (0, None)
    return Progress(int(made), waiting(db), model, problem(db, now))


def waiting(db: sqlite3.Connection) -> int:
    """How many drawers have no vector of their present text."""
    row = db.execute("SELECT COUNT(*) FROM outbox WHERE operation = 'embed'").fetchone()
    return int(row[0])


def note_problem(db: sqlite3.Connection, what: str, now: float) -> None:
    """No librarian can work here, and why. `now` is seconds since 1970."""
    value = json.dumps({"what": what, "at": now})
    db.execute("INSERT OR REPLACE INTO notes (name, value) VALUES (?, ?)", (_PROBLEM_NOTE, value))


def forget_problem(db: sqlite3.Connection) -> None:
    """One works."""
    db.execute("DELETE FROM notes WHERE name = ?", (_PROBLEM_NOTE,))


def problem(db: sqlite3.Connection, now: float) -> str:
    """Why the last librarian could not work, if that was a moment ago; else ''."""
    row = db.execute("SELECT value FROM notes WHERE name = ?", (_PROBLEM_NOTE,)).fetchone()
    if row is None:
        return ""
    note = json.loads(row[0])
    return str(note["what"]) if now - float(note["at"]) < _PROBLEM_SECONDS else ""


def known(db: sqlite3.Connection, model: int, md5: bytes) -> bytes | None:
    """The vector of a text that was embedded before, wherever it stands."""
    row = db.execute(
        "SELECT vector FROM vectors WHERE md5 = ? AND model = ? LIMIT 1", (md5, model)
    ).fetchone()
    return None if row is None else bytes(row[0])


def keep(db: sqlite3.Connection, model: int, made: Sequence[tuple[Due, bytes]]) -> int:
    """Store vectors and take their rows from the outbox; those whose drawer has another text by
    now, or is gone, are dropped. Gives how many were stored."""
    stored = 0
    for one, vector in made:
        is_current = db.execute(
            "DELETE FROM outbox WHERE item = ? AND md5 = ? AND operation = 'embed'",
            (one.item, one.md5),
        ).rowcount
        if not is_current:
            continue
        row = db.execute("SELECT 1 FROM drawers WHERE n = ?", (one.drawer,)).fetchone()
        if row is None:  # deleted, and the same words stand under its id again: they are due
            _post_again(db, one)
            continue
        db.execute("DELETE FROM vectors WHERE model = ? AND drawer = ?", (model, one.drawer))
        db.execute(
            "INSERT INTO vectors (model, drawer, exchange, md5, vector) VALUES (?, ?, ?, ?, ?)",
            (model, one.drawer, one.exchange, one.md5, vector),
        )
        stored += 1
    return stored


def _post_again(db: sqlite3.Connection, one: Due) -> None:
    db.execute(
        "INSERT INTO outbox (item, operation, md5, due_at) VALUES (?, 'embed', ?, 0)",
        (one.item, one.md5),
    )


def drop_orphans(db: sqlite3.Connection) -> int:
    """Take rows from the outbox that name no drawer; how many."""
    return db.execute(
        "DELETE FROM outbox WHERE item IN (SELECT o.item FROM outbox o"  # noqa: S608 - constants
        f" LEFT JOIN exchanges e ON e.id = substr(o.item, 1, {_ID}) LEFT JOIN drawers d"
        f" ON d.exchange = e.n AND d.stream = {int(Stream.TALK)} AND d.position = {_POSITION}"
        f" WHERE o.operation = 'embed' AND {_IS_TALK} AND d.n IS NULL)"
    ).rowcount


def deletions(db: sqlite3.Connection, limit: int) -> list[str]:
    """Ids that have left the palace and may stand in the index."""
    rows = db.execute("SELECT item FROM outbox WHERE operation = 'delete' LIMIT ?", (limit,))
    return [item for (item,) in rows]


def deleted(db: sqlite3.Connection, items: Iterable[str]) -> None:
    """They are out of the index."""
    db.executemany(
        "DELETE FROM outbox WHERE item = ? AND operation = 'delete'", [(item,) for item in items]
    )


def forget_projection(db: sqlite3.Connection) -> None:
    """There is no index any more: nothing must leave it."""
    db.execute("DELETE FROM outbox WHERE operation = 'delete'")
    db.execute("DELETE FROM notes WHERE name = ?", (PROJECTION_NOTE,))


# --- reading --------------------------------------------------------------------------------------


def since(db: sqlite3.Connection, model: int, after: int, *, limit: int = _PAGE) -> list[Row]:
    """The next vectors of a model behind number `after`, in order."""
    rows = db.execute(
        "SELECT n, drawer, exchange, vector FROM vectors WHERE model = ? AND n > ?"
        " ORDER BY n LIMIT ?",
        (model, after, limit),
    )
    return [Row(*row) for row in rows]


def drawers_of(db: sqlite3.Connection, model: int) -> list[int]:
    """The numbers of all drawers with a vector of this model, in order."""
    rows = db.execute("SELECT drawer FROM vectors WHERE model = ? ORDER BY drawer", (model,))
    return [drawer for (drawer,) in rows]


def ids_of(db: sqlite3.Connection, drawers: Sequence[int]) -> dict[int, str]:
    """The ids of talk drawers by number; of those that are still there."""
    rows = db.execute(
        "SELECT d.n, e.id, d.position FROM drawers d JOIN exchanges e ON e.n = d.exchange"  # noqa: S608
        f" WHERE d.n IN ({','.join('?' * len(drawers))})",
        tuple(drawers),
    )
    return {n: drawer_id(exchange, Stream.TALK, position) for n, exchange, position in rows}


def numbers_of(db: sqlite3.Connection, items: Iterable[str]) -> dict[str, int]:
    """The numbers of talk drawers by id; of those that are still there."""
    found = {}
    for item in items:
        row = db.execute(
            "SELECT d.n FROM exchanges e JOIN drawers d ON d.exchange = e.n"
            " AND d.stream = ? AND d.position = ? WHERE e.id = ?",
            (Stream.TALK, int(item[_ID + 6 :]), item[:_ID]),
        ).fetchone()
        if row is not None:
            found[item] = int(row[0])
    return found


def count(db: sqlite3.Connection, model: int) -> int:
    row = db.execute("SELECT COUNT(*) FROM vectors WHERE model = ?", (model,)).fetchone()
    return int(row[0])
