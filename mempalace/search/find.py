"""A question becomes hits: candidates, filtered, grouped by exchange, best first.

Owns: what a hit is, when enough was found, and the union of what keywords and vectors find.
Never: waits for a writer, or answers with what is retired.
Called by: the command `search`, mempalace.layers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mempalace.ids import drawer_id, slug
from mempalace.model import Stream
from mempalace.search.filters import Filters
from mempalace.search.fusion import fuse
from mempalace.search.keywords import Candidate, Keywords
from mempalace.search.lookup import wing_called
from mempalace.search.meaning import Meaning
from mempalace.search.query import Query
from mempalace.store import vectors
from mempalace.store.checkpoints import HIDDEN
from mempalace.store.palace import Palace
from mempalace.store.whole import snapshot

_POOL = 50  # candidates of each kind: beyond, what was asked for is hardly ever
_FEW = 100  # drawers without a vector that need no mention: what was said a moment ago
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
    matched_via: tuple[str, ...] = ()


def find(palace: Palace, query: Query) -> Answer:
    """The best exchanges for a question. Raises WrongUsage where it has no word."""
    meaning = Meaning(palace) if query.stream is Stream.TALK else None
    try:
        with palace.reading() as db, snapshot(db):
            keywords = Keywords(db, query.text, query.stream)
            filters = Filters(db, query)
            if meaning is not None:
                meaning.ask(query.text, max(query.limit, _POOL), filters.exchanges())
            found = _by_keyword(keywords, filters, max(query.limit, _POOL if meaning else 0))
            near = {} if meaning is None else _by_meaning(meaning, filters, found)
            best = _best(found, near, query.limit)
            hits = tuple(
                hit(
                    db,
                    one.drawer,
                    said_at=one.said_at,
                    score=one.score,
                    matched_via=one.matched_via,
                    marks=keywords.marks,
                )
                for one in best
            )
            missing = "" if meaning is None else meaning.missing or _still_waiting(db)
        return Answer(query.text, (missing,) if missing else (), hits)
    finally:
        if meaning is not None:
            meaning.close()


def _still_waiting(db: sqlite3.Connection) -> str:
    waiting = vectors.waiting(db)
    return f"{waiting:,} drawers have no vector yet" if waiting > _FEW else ""


def _by_keyword(keywords: Keywords, filters: Filters, limit: int) -> dict[int, _Found]:
    """The best drawer of each exchange that keywords find, `limit` exchanges and equals."""
    found: dict[int, _Found] = {}
    for candidates in keywords.with_all():
        _collect(candidates, filters, found, limit)
        if len(found) >= limit:
            break
    if len(found) < limit:
        _add_partial(keywords, filters, found, limit)
    return found


def _by_meaning(
    meaning: Meaning, filters: Filters, by_keyword: Mapping[int, _Found]
) -> dict[int, _Found]:
    """The nearest drawer of each exchange, of those that keywords have found as well."""
    scores = dict(meaning.found())
    wanted = [one.drawer for one in by_keyword.values() if one.drawer not in scores]
    scores |= meaning.scores(wanted) if scores or wanted else {}
    exchanges = filters.exchanges_of(list(scores))
    found: dict[int, _Found] = {}
    for drawer, score in sorted(scores.items(), key=lambda pair: -pair[1]):
        exchange = exchanges.get(drawer)
        if exchange is None or exchange in found:
            continue
        if filters.may_be_found(exchange, drawer):
            found[exchange] = _Found(drawer, score, filters.said_at(exchange, drawer))
    return found


def _best(
    by_keyword: Mapping[int, _Found], by_meaning: Mapping[int, _Found], limit: int
) -> list[_Found]:
    """One order of both; an exchange is shown by the drawer that weighs heavier."""
    worth = fuse(
        {exchange: one.score for exchange, one in by_keyword.items()},
        {exchange: one.score for exchange, one in by_meaning.items()},
    )
    found = []
    for exchange, fused in worth.items():
        first = by_keyword if fused.matched_via[0] == "keyword" else by_meaning
        one = first[exchange]
        found.append(_Found(one.drawer, fused.score, one.said_at, fused.matched_via))
    found.sort(key=lambda one: (-one.score, -(one.said_at or 0), one.drawer))
    return found[:limit]


def _collect(
    candidates: Iterator[tuple[int, float]],
    filters: Filters,
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
            if not filters.may_be_found(exchange, drawer):
                continue
            found[exchange] = _Found(drawer, score, filters.said_at(exchange, drawer))
            fresh += before is None
            last = score


def _add_partial(
    keywords: Keywords, filters: Filters, found: dict[int, _Found], limit: int
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
            if not filters.may_be_found(exchange, one.drawer):
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
