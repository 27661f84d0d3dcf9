"""Which sessions there are, the latest first.

Owns: what a list of sessions tells of each.
Never: reads more of a session than the beginning of its first prompt.
Called by: the command `sessions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mempalace.search.lookup import wing_called
from mempalace.store.checkpoints import HIDDEN
from mempalace.store.moments import opening
from mempalace.store.palace import Palace
from mempalace.store.whole import snapshot


@dataclass(frozen=True, slots=True)
class Session:
    """A session in a list. Times are microseconds since 1970 UTC."""

    id: str
    source: str
    wing: str | None
    cwd: str | None
    path: str | None  # the file that its first exchange was seen in
    started_at: int | None
    ended_at: int | None
    exchanges: int
    characters: int  # of talk
    first_prompt: str | None  # its beginning, None where only answers were found


def sessions(
    palace: Palace, *, wing: str | None = None, since: int | None = None, limit: int = 20
) -> list[Session]:
    """Sessions in which something was said since then, the latest said first."""
    with palace.reading() as db, snapshot(db):
        wing_n = None if wing is None else wing_called(db, wing)
        rows = db.execute(
            "SELECT e.session, COUNT(*), SUM(e.talk_chars), MIN(e.started_at),"
            " MAX(COALESCE(e.ended_at, e.started_at)) AS latest FROM exchanges e"
            " WHERE e.retired IS NULL AND (?1 IS NULL OR e.wing = ?1) GROUP BY e.session"
            " HAVING ?2 IS NULL OR latest >= ?2 ORDER BY latest DESC, e.session DESC LIMIT ?3",
            (wing_n, since, limit),
        ).fetchall()
        found = []
        for n, exchanges, characters, started_at, ended_at in rows:
            session_id, source, cwd, wing_name = db.execute(
                "SELECT s.id, s.source, s.cwd, w.name FROM sessions s"
                " LEFT JOIN wings w ON w.id = s.wing WHERE s.n = ?",
                (n,),
            ).fetchone()
            first = db.execute(
                "SELECT e.n, e.headless, f.path FROM exchanges e LEFT JOIN files f ON f.n = e.file"
                " WHERE e.session = ? AND e.retired IS NULL AND (?2 IS NULL OR e.wing = ?2)"
                " ORDER BY e.headless, e.started_at IS NULL, e.started_at, e.content, e.offset"
                " LIMIT 1",
                (n, wing_n),
            ).fetchone()
            is_hidden = first[2] is None or first[2].startswith(HIDDEN)
            found.append(
                Session(
                    id=session_id,
                    source=source,
                    wing=wing_name,
                    cwd=cwd,
                    path=None if is_hidden else first[2],
                    started_at=started_at,
                    ended_at=ended_at,
                    exchanges=exchanges,
                    characters=characters,
                    first_prompt=None if first[1] else opening(db, first[0]),
                )
            )
    return found
