"""What a session should start with: exchanges by importance, and how one begins.

Owns: those two questions to the database, and that they are answered from an index.
Never: imports more than sqlite3, or formats: wake-up pays for every module.
Called by: mempalace.layers; search.sessions for the first prompt of a session.
"""

from __future__ import annotations

import sqlite3

TYPE_CHECKING = False  # typing itself costs 5 ms that wake-up does not have
if TYPE_CHECKING:
    from collections.abc import Iterator

# Stored numbers of model.Role and model.Stream, which would cost enum and dataclasses.
_HUMAN = 0
_TALK_ROLES = (0, 1, 2, 7)
_TALK = 0
_SEPARATOR = 2  # characters between two records of a stream

Moment = tuple[int, int, str, str | None, int | None]  # exchange, session, room, sentence, time


def most_important(db: sqlite3.Connection, wing: int | None) -> Iterator[Moment]:
    """Exchanges with a prompt, the most important first, then the latest said."""
    of_wing = "wing = ? AND " if wing is not None else ""
    yield from db.execute(
        "SELECT n, session, room, key_sentence, started_at FROM exchanges"  # noqa: S608 - constants
        f" WHERE {of_wing}retired IS NULL AND headless = 0"
        " ORDER BY importance DESC, started_at DESC",
        () if wing is None else (wing,),
    )


def opening(db: sqlite3.Connection, exchange: int) -> str:
    """How its prompt begins: at most one window of it, '' where there is none."""
    start = 0
    for role, chars in db.execute(
        "SELECT role, chars FROM records WHERE exchange = ? ORDER BY seq", (exchange,)
    ):
        if role == _HUMAN:
            break
        if role in _TALK_ROLES and chars:
            start += chars + _SEPARATOR
    else:
        return ""
    window = db.execute(
        "SELECT start, text FROM drawers WHERE exchange = ? AND stream = ? AND start <= ?"
        " ORDER BY position DESC LIMIT 1",
        (exchange, _TALK, start),
    ).fetchone()
    if window is None:
        return ""
    begin = start - int(window[0])
    return str(window[1][begin : begin + chars])
