"""Candidates from the full-text index, best first, each with how much of the question it explains.

Owns: which words of a question are asked for, AND before OR, and what a BM25 score is worth.
Never: looks at an exchange; decides what is a hit (find does).
Called by: mempalace.search.find.

Measured at 200,000 drawers: AND of two words 2 ms, OR of the words of a sentence 70 to 140 ms,
nearly all of it for words that stand in every tenth drawer and tell nothing. So stop words go, all
that is left is asked for at once, and only where that gives too little is any of the rarest six.
"""

from __future__ import annotations

import math
import sqlite3
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from mempalace.errors import WrongUsage
from mempalace.model import Stream
from mempalace.store.fulltext import terms

TABLES = {Stream.TALK: "talk", Stream.TOOLS: "tools"}
_K1 = 1.2  # FTS5's own constant: no term can score more than its idf * (k1 + 1)
_RAREST = 6
_MOST_HITS = 40_000  # ranked for OR: 1.5 ms a thousand; commoner words tell less than they cost
_MOST_TERMS = 64  # of a page that was pasted; its first words stand for it
_MOST_CHARACTERS = 4_096  # the same: one phrase of ten thousand words would take seconds
_COUNTED = 5_000  # hits counted of one term; beyond, their number is estimated

_CONTRACTED = (
    "aren t|can t|couldn t|did n t|didn t|doesn t|don t|hadn t|hasn t|haven t|he s|here s|how s|"
    "i d|i ll|i m|i ve|isn t|it s|let s|she s|shouldn t|that s|there s|they re|they ve|wasn t|"
    "we d|we ll|we re|we ve|weren t|what s|when s|where s|who s|won t|wouldn t|you d|you ll|"
    "you re|you ve"
)
_PLAIN = (
    "a about after all also am an and any are as at be because been before being both but by can "
    "could did do does doing each for from had has have having he her here him his how i if in "
    "into is it its just me more most my no not of on once only or other our out over own she "
    "should so some such than that the their them then there these they this those through to too "
    "under until up us very was we were what when where which while who whom why will with would "
    "you your"
)
_STOP_WORDS = frozenset(_PLAIN.split(" ") + _CONTRACTED.split("|"))


@dataclass(frozen=True, slots=True)
class Term:
    """One thing that a question names: its FTS5 expression, and how many drawers hold it."""

    expression: str
    hits: int


class Keywords:
    """A question as it is put to one full-text table."""

    def __init__(self, db: sqlite3.Connection, question: str, stream: Stream) -> None:
        self._db = db
        self.table = TABLES[stream]
        wanted = words_of(question)
        if not wanted:
            raise WrongUsage(
                "there is no word in this question", 'name what to look for: mempalace search "…"'
            )
        self._drawers = self._number("SELECT COUNT(*) FROM {}_docsize")
        self._last = self._number("SELECT MAX(id) FROM {}_docsize")
        self.terms = [Term(one, self._hits(one)) for one in wanted]
        self._most = sum(self._idf(term) for term in self.terms) * (_K1 + 1)

    def with_all(self) -> Iterator[tuple[int, float]]:
        """(drawer, score) of what holds every term, best first."""
        if all(term.hits for term in self.terms):
            yield from self._ranked(" AND ".join(term.expression for term in self.terms))

    def with_any(self) -> Iterator[tuple[int, float]]:
        """(drawer, score) of what holds any of the rarest terms, best first."""
        known = sorted((t for t in self.terms if t.hits), key=lambda term: term.hits)
        totals = accumulate(term.hits for term in known)
        few = [term for term, total in zip(known, totals, strict=True) if total <= _MOST_HITS]
        chosen = (few or known[:1])[:_RAREST]
        if chosen and len(self.terms) > 1:
            yield from self._ranked(" OR ".join(term.expression for term in chosen))

    def marks(self, drawer: int, text: str) -> list[tuple[int, int]]:
        """Where the terms stand in a drawer's text: (begin, end), in order, apart."""
        spans = _spans_of_runs(text, self.terms)
        opening, closing = _absent(text)
        expression = " OR ".join(term.expression for term in self.terms)
        row = self._db.execute(
            f"SELECT highlight({self.table}, 0, ?, ?) FROM {self.table}"  # noqa: S608 - constants
            f" WHERE rowid = ? AND {self.table} MATCH ?",
            (opening, closing, drawer, expression),
        ).fetchone()
        if row is not None:
            spans += _spans_of_highlight(row[0], opening, closing)
        return _apart(spans)

    def _ranked(self, expression: str) -> Iterator[tuple[int, float]]:
        rows = self._db.execute(
            f"SELECT rowid, rank FROM {self.table}"  # noqa: S608 - constants
            f" WHERE {self.table} MATCH ? ORDER BY rank",
            (expression,),
        )
        for drawer, rank in rows:
            yield drawer, round(min(1.0, max(0.0, -rank / self._most)), 4)

    def _number(self, statement: str) -> int:
        row = self._db.execute(statement.format(self.table)).fetchone()
        return int(row[0] or 0)

    def _hits(self, expression: str) -> int:
        """In how many drawers a term stands: counted to 5,000, then estimated from how far in the
        palace those reached."""
        count, reached = self._db.execute(
            f"SELECT COUNT(*), MAX(rowid) FROM (SELECT rowid FROM {self.table}"  # noqa: S608 - constants
            f" WHERE {self.table} MATCH ? LIMIT {_COUNTED})",
            (expression,),
        ).fetchone()
        if count < _COUNTED:
            return int(count)
        return min(self._drawers, int(count * self._last / reached))

    def _idf(self, term: Term) -> float:
        """As FTS5 has it, its floor included."""
        return max(1e-6, math.log((self._drawers - term.hits + 0.5) / (term.hits + 0.5)))


def words_of(question: str) -> list[str]:
    """The FTS5 expressions of a question; stop words only where there is nothing else."""
    composed = unicodedata.normalize("NFC", question[:_MOST_CHARACTERS])
    found = {term.lower(): term for term in terms(composed)}
    telling = [term for low, term in found.items() if not _is_stop_word(low)]
    return (telling or list(found.values()))[:_MOST_TERMS]


def _is_stop_word(expression: str) -> bool:
    column, _, phrase = expression.partition(" : ")
    return column == "text" and phrase.strip('"') in _STOP_WORDS


# --- marking --------------------------------------------------------------------------------------


def _absent(text: str) -> tuple[str, str]:
    """Two characters of private use that are not in the text."""
    free = [chr(code) for code in range(0xE000, 0xE000 + 900) if chr(code) not in text]
    return free[0], free[1]  # a drawer has at most 800 characters, so there are two


def _spans_of_highlight(marked: str, opening: str, closing: str) -> list[tuple[int, int]]:
    spans = []
    at = begin = 0
    for character in marked:
        if character == opening:
            begin = at
        elif character == closing:
            spans.append((begin, at))
        else:
            at += 1
    return spans


def _spans_of_runs(text: str, wanted: list[Term]) -> list[tuple[int, int]]:
    """Where the runs of unsegmented script stand: their column is not what people read."""
    spans = []
    for term in wanted:
        column, _, phrase = term.expression.partition(" : ")
        if column != "segments":
            continue
        pairs = phrase.rstrip("* ").strip('"').split(" ")
        run = pairs[0] + "".join(pair[1:] for pair in pairs[1:])
        at = text.find(run)
        while at >= 0:
            spans.append((at, at + len(run)))
            at = text.find(run, at + len(run))
    return spans


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same characters in spans that neither overlap nor touch, in order."""
    result: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        elif end > begin:
            result.append((begin, end))
    return result
