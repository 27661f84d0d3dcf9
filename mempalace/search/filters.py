"""Which exchanges and drawers a question may find, and when a drawer was said.

Owns: what each filter means in SQL.
Never: ranks.
Called by: mempalace.search.find.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from mempalace.ids import slug
from mempalace.model import STREAM_OF, Stream
from mempalace.search.lookup import source_called, wing_called
from mempalace.search.query import Query
from mempalace.store.exchanges import SEPARATOR

_STREAM_OF = {int(role): stream for role, stream in STREAM_OF.items()}  # as palace.db has them


class Filters:
    """Which drawers a query may find."""

    def __init__(self, db: sqlite3.Connection, query: Query) -> None:
        self._db = db
        self._query = query
        self.has_times = query.since is not None or query.until is not None
        self._spans: dict[int, tuple[int | None, int | None]] = {}  # of exchanges looked up
        where: list[tuple[str, object]] = []
        if query.wing is not None:
            where.append(("e.wing = ?", wing_called(db, query.wing)))
        if query.room is not None:
            where.append(("e.room = ?", slug(query.room)))
        if query.source is not None:
            where.append(("s.source = ?", source_called(db, query.source)))
        if query.since is not None:  # an exchange may be said over hours; `is_in_time` is exact
            where.append(("COALESCE(e.ended_at, e.started_at) >= ?", query.since))
        if query.until is not None:
            where.append(("e.started_at < ?", query.until))
        self._where = "".join(f" AND {condition}" for condition, _ in where)
        self._values = [value for _, value in where]

    def exchanges_of(self, drawers: Sequence[int]) -> dict[int, int]:
        """The exchange of each of these drawers that passes."""
        rows = self._db.execute(
            "SELECT d.n, d.exchange, e.started_at, e.ended_at FROM drawers d"  # noqa: S608
            " JOIN exchanges e ON e.n = d.exchange JOIN sessions s ON s.n = e.session"
            f" WHERE d.n IN ({','.join('?' * len(drawers))}) AND e.retired IS NULL{self._where}",
            (*drawers, *self._values),
        )
        found = {}
        for drawer, exchange, begin, end in rows:
            found[drawer] = exchange
            self._spans[exchange] = begin, end
        return found

    def may_be_found(self, exchange: int, drawer: int) -> bool:
        """Was it said within the times that were asked for? Only where its exchange reaches over
        one of them need the drawer itself be looked at."""
        if not self.has_times:
            return True
        begin, end = self._spans[exchange]
        if self.is_in_time(begin) and self.is_in_time(end):
            return True
        return self.is_in_time(self.said_at(exchange, drawer))

    def exchanges(self) -> list[int] | None:
        """Every exchange that passes; None where there is no filter."""
        if not self._where:
            return None
        rows = self._db.execute(
            "SELECT e.n FROM exchanges e JOIN sessions s ON s.n = e.session"  # noqa: S608 - constants
            f" WHERE e.retired IS NULL{self._where}",
            self._values,
        )
        return [n for (n,) in rows]

    def said_at(self, exchange: int, drawer: int) -> int | None:
        """When the words at the beginning of a drawer were said."""
        stream, start = self._db.execute(
            "SELECT stream, start FROM drawers WHERE n = ?", (drawer,)
        ).fetchone()
        records = self._db.execute(
            "SELECT role, chars, said_at FROM records WHERE exchange = ? ORDER BY seq", (exchange,)
        )
        return _moment_at(records, Stream(stream), start)

    def is_in_time(self, said_at: int | None) -> bool:
        query = self._query
        if not self.has_times:
            return True
        if said_at is None:
            return False
        return (query.since is None or said_at >= query.since) and (
            query.until is None or said_at < query.until
        )


def _moment_at(
    records: Iterable[tuple[int, int, int | None]], stream: Stream, start: int
) -> int | None:
    """The time of the record that a code point of a stream belongs to; where it has none, of the
    last one before it that has one."""
    end = 0
    moment = None
    for role, chars, said_at in records:
        if _STREAM_OF[role] is not stream or not chars:
            continue
        moment = moment if said_at is None else said_at
        end += chars + len(SEPARATOR)
        if start < end:
            break
    return moment
