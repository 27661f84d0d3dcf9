"""What an exchange means: the columns and rows that are derived from its words.

Owns: reading the talk that they are derived from, and storing them; which rows are stale.
Never: derives (mempalace.mining does); touches a word, an id or a vector.
Called by: mempalace.filing.derivation; entities_of by whoever shows an exchange.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from mempalace.model import STREAM_OF, Role, Stream
from mempalace.store.drawers import text_of
from mempalace.store.exchanges import SEPARATOR

_HUMAN = (Role.HUMAN, Role.SAID)


@dataclass(frozen=True, slots=True)
class Talk:
    """The words that an exchange is judged by; alternates are not among them."""

    prompt: str | None  # with what was said inside tool results; None: it is headless
    answers: list[str]
    kind: str  # how the prompt was given


def talk_of(db: sqlite3.Connection, exchange: int) -> Talk | None:
    """What was said in an exchange; None where it is gone."""
    rows = db.execute(
        "SELECT role, kind, chars FROM records WHERE exchange = ? ORDER BY seq", (exchange,)
    ).fetchall()
    if not rows:
        return None
    text, at = text_of(db, exchange, Stream.TALK), 0
    said: list[str] = []
    answers: list[str] = []
    given = ""
    for number, kind, chars in rows:
        role = Role(number)
        if STREAM_OF[role] is not Stream.TALK or not chars:
            continue
        words = text[at : at + chars]
        at += chars + len(SEPARATOR)
        if role in _HUMAN:
            said.append(words)
            given = given or (kind if role is Role.HUMAN else "")
        elif role is Role.ASSISTANT:
            answers.append(words)
    return Talk("\n".join(said) if said else None, answers, given)


def save(
    db: sqlite3.Connection,
    exchange: int,
    *,
    version: int,
    room: str,
    hall: str,
    memory_type: str | None,
    importance: int,
    key_sentence: str,
    entities: Sequence[tuple[str, str]],
) -> None:
    """Store what was derived; `entities` are (kind, name)."""
    db.execute(
        "UPDATE exchanges SET derived = ?, room = ?, hall = ?, memory_type = ?, importance = ?,"
        " key_sentence = ? WHERE n = ?",
        (version, room, hall, memory_type, importance, key_sentence, exchange),
    )
    db.execute("DELETE FROM entities WHERE exchange = ?", (exchange,))
    db.executemany(
        "INSERT INTO entities (exchange, place, kind, name) VALUES (?, ?, ?, ?)",
        [(exchange, place, kind, name) for place, (kind, name) in enumerate(entities)],
    )


def entities_of(db: sqlite3.Connection, exchange: int) -> list[tuple[str, str]]:
    """(kind, name) of what it names, the most telling first."""
    rows = db.execute(
        "SELECT kind, name FROM entities WHERE exchange = ? ORDER BY place", (exchange,)
    )
    return rows.fetchall()


def stale(
    db: sqlite3.Connection, version: int, limit: int, *, wing: int | None = None
) -> list[int]:
    """Exchanges that an older version has judged, `limit` at most."""
    rows = db.execute(
        "SELECT n FROM exchanges WHERE derived < ? AND (? IS NULL OR wing = ?) LIMIT ?",
        (version, wing, wing, limit),
    )
    return [n for (n,) in rows]


def make_stale(db: sqlite3.Connection, wing: int | None) -> int:
    """Let every exchange (of a wing) be judged anew; how many."""
    return db.execute(
        "UPDATE exchanges SET derived = 0 WHERE ? IS NULL OR wing = ?", (wing, wing)
    ).rowcount
