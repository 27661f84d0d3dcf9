"""A question becomes hits: candidates, filtered, grouped by exchange, best first.

Owns: what a hit is, the filters, and when enough was found.
Never: waits for a writer, or answers with what is retired.
Called by: the command `search`, mempalace.layers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mempalace.ids import drawer_id, slug
from mempalace.model import STREAM_OF, Role, Stream
from mempalace.search.keywords import Candidate, Keywords
from mempalace.search.lookup import source_called, wing_called
from mempalace.search.query import Query
from mempalace.store.checkpoints import HIDDEN
from mempalace.store.exchanges import SEPARATOR
from mempalace.store.palace import Palace
from mempalace.store.whole import snapshot

KEYWORDS_ONLY = "keywords only: no vectors yet"
_BATCH = 256  # candidates looked up at once
_TOGETHER = 1_024  # drawers with some of the words, looked up to join those of one exchange
_TIES = 1_000  # exchanges of one score among which the latest are chosen


@dataclass(frozen=True, slots=True)
class Hit:
    """The best drawer of an exchange that was found."""

    drawer_id: str
    exchange_id: str
    session_id: str
    wing: str | None
    room: str
    source: str
    path: str | None  # the file of the exchange's first sighting
    cwd: str | None
    said_at: int | None  # microseconds since 1970 UTC
    score: float
    matched_via: tuple[str, ...]
    text: str
    marks: tuple[tuple[int, int], ...]  # where the words of the question stand in the text


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, and why it may be less than there is."""

    query: str
    degraded: tuple[str, ...]
    results: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    drawer: int
    score: float
    said_at: int | None


def find(palace: Palace, query: Query) -> Answer:
    """The best exchanges for a question. Raises WrongUsage where it has no word."""
    with palace.reading() as db, snapshot(db):
        keywords = Keywords(db, query.text, query.stream)
        filters = _Filters(db, query)
        found: dict[int, _Found] = {}
        for candidates in keywords.with_all():
            _collect(candidates, filters, found, query.limit)
            if len(found) >= query.limit:
                break
        if len(found) < query.limit:
            _add_partial(keywords, filters, found, query.limit)
        best = sorted(found.values(), key=lambda one: (-one.score, -(one.said_at or 0), one.drawer))
        hits = tuple(
            hit(
                db,
                one.drawer,
                said_at=one.said_at,
                score=one.score,
                matched_via=("keyword",),
                marks=keywords.marks,
            )
            for one in best[: query.limit]
        )
    return Answer(query.text, (KEYWORDS_ONLY,), hits)


def _collect(
    candidates: Iterator[tuple[int, float]],
    filters: _Filters,
    found: dict[int, _Found],
    limit: int,
) -> None:
    """Take candidates, best first, until no further one can be among the first `limit`."""
    fresh = 0
    last = 1.0
    while batch := list(islice(candidates, _BATCH)):
        exchanges = filters.exchanges_of([drawer for drawer, _ in batch])
        for drawer, score in batch:
            if fresh >= limit and (score < last or fresh >= limit + _TIES):
                return
            exchange = exchanges.get(drawer)
            if exchange is None:
                continue
            before = found.get(exchange)
            if before is not None and before.score >= score:
                continue
            said_at = filters.said_at(exchange, drawer)
            if not filters.is_in_time(said_at):
                continue
            found[exchange] = _Found(drawer, score, said_at)
            fresh += before is None
            last = score


def _add_partial(
    keywords: Keywords, filters: _Filters, found: dict[int, _Found], limit: int
) -> None:
    """Add exchanges that hold some terms. What one explains is what all its drawers explain
    together, as far as they are among the best `_TOGETHER`; it is shown by its best drawer."""
    candidates = keywords.with_any()
    best: dict[int, Candidate] = {}
    held: dict[int, int] = {}
    seen = 0
    while batch := list(islice(candidates, _BATCH)):
        exchanges = filters.exchanges_of([one.drawer for one in batch])
        for one in batch:
            exchange = exchanges.get(one.drawer)
            if exchange is None or exchange in found:
                continue
            if filters.has_times and not filters.is_in_time(filters.said_at(exchange, one.drawer)):
                continue
            best.setdefault(exchange, one)
            held[exchange] = held.get(exchange, 0) | one.held
        seen += len(batch)
        if seen >= _TOGETHER and len(best) >= limit:
            break
    scores = {n: keywords.score(held[n], one.bm25) for n, one in best.items()}
    order = sorted(scores, key=lambda n: -scores[n])
    for place, exchange in enumerate(order):
        if place >= limit and scores[exchange] < scores[order[limit - 1]]:
            break
        drawer = best[exchange].drawer
        found[exchange] = _Found(drawer, scores[exchange], filters.said_at(exchange, drawer))


class _Filters:
    """Which drawers a query may find."""

    def __init__(self, db: sqlite3.Connection, query: Query) -> None:
        self._db = db
        self._query = query
        self.has_times = query.since is not None or query.until is not None
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
            "SELECT d.n, d.exchange FROM drawers d JOIN exchanges e ON e.n = d.exchange"  # noqa: S608
            " JOIN sessions s ON s.n = e.session"
            f" WHERE d.n IN ({','.join('?' * len(drawers))}) AND e.retired IS NULL{self._where}",
            (*drawers, *self._values),
        )
        return dict(rows.fetchall())

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
        if STREAM_OF[Role(role)] is not stream or not chars:
            continue
        moment = moment if said_at is None else said_at
        end += chars + len(SEPARATOR)
        if start < end:
            break
    return moment


def hit(
    db: sqlite3.Connection,
    drawer: int,
    *,
    said_at: int | None,
    score: float,
    matched_via: tuple[str, ...] = (),
    marks: Callable[[int, str], list[tuple[int, int]]] | None = None,
) -> Hit:
    """A drawer as a hit; `marks` finds the words of the question in it."""
    row: tuple[Any, ...] = db.execute(
        "SELECT d.stream, d.position, d.text, e.id, s.id, w.name, e.room, s.source, f.path,"
        " COALESCE(e.cwd, s.cwd) FROM drawers d JOIN exchanges e ON e.n = d.exchange"
        " JOIN sessions s ON s.n = e.session LEFT JOIN wings w ON w.id = e.wing"
        " LEFT JOIN files f ON f.n = e.file WHERE d.n = ?",
        (drawer,),
    ).fetchone()
    stream, position, text, exchange, session, wing, room, source, path, cwd = row
    is_hidden = path is not None and path.startswith(HIDDEN)
    return Hit(
        drawer_id=drawer_id(exchange, stream, position),
        exchange_id=exchange,
        session_id=session,
        wing=wing,
        room=room,
        source=source,
        path=None if is_hidden else path,
        cwd=cwd,
        said_at=said_at,
        score=score,
        matched_via=matched_via,
        text=text,
        marks=tuple(marks(drawer, text)) if marks else (),
    )


def latest(palace: Palace, *, wing: str | None, room: str | None, limit: int) -> tuple[Hit, ...]:
    """How the latest exchanges of a wing, a room or both begin, the latest said first."""
    with palace.reading() as db, snapshot(db):
        rows = db.execute(
            "SELECT d.n, e.started_at FROM exchanges e"
            " JOIN drawers d ON d.exchange = e.n AND d.stream = ?1 AND d.position = 0"
            " WHERE e.retired IS NULL AND (?2 IS NULL OR e.wing = ?2)"
            " AND (?3 IS NULL OR e.room = ?3) ORDER BY e.started_at DESC, e.n DESC LIMIT ?4",
            (
                Stream.TALK,
                None if wing is None else wing_called(db, wing),
                None if room is None else slug(room),
                limit,
            ),
        ).fetchall()
        return tuple(hit(db, drawer, said_at=at, score=0.0) for drawer, at in rows)
