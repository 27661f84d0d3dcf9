"""Candidates from the full-text index, best first, each with how much of the question it explains.

Owns: which words of a question are asked for, AND before OR, and what a BM25 score is worth.
Never: looks at an exchange; decides what is a hit (find does).
Called by: mempalace.search.find.

Measured at 200,000 drawers: AND of two words 2 ms, a ranked hit 1.1 us, one that is only listed
0.25 us, and nearly all hits are of words that stand in every tenth drawer and tell nothing. So stop
words go, all that is left is asked for at once, the newest drawers first where it is too common to
rank, and only where that gives too little is any of the rarest six.

A score has two floors: 0.5 and more explains every term, less does not. What holds only some is
worth the share of the question's idf that it explains, and BM25, which favours what is short,
decides among what explains about as much.
"""

from __future__ import annotations

import math
import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from mempalace.errors import WrongUsage
from mempalace.model import Stream
from mempalace.store.fulltext import goes_on, is_run, plain_form, terms, words_in

TABLES = {Stream.TALK: "talk", Stream.TOOLS: "tools"}
_K1 = 1.2  # FTS5's own constant: no term can score more than its idf * (k1 + 1)
_RAREST = 6
_MOST_HITS = 30_000  # ranked for OR: 2 ms a thousand; commoner words tell less than they cost
_SLICE = 20_000  # hits ranked at once of words that are too common
ALL = 0.5  # the least score of what holds every term
_SOME = 0.49  # the most that what holds only some may score
_BM25 = 0.2  # of that: a quarter more explained always comes first
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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A drawer that holds some terms of a question: which (one bit each), and its BM25 score as a
    share of the most that the question can score."""

    drawer: int
    held: int
    bm25: float


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
        self._chosen: list[Term] = []
        self._most = sum(self._idf(term) for term in self.terms) * (_K1 + 1)

    def with_all(self) -> Iterator[Iterator[tuple[int, float]]]:
        """(drawer, score) of what holds every term, best first. Terms that stand in too many
        drawers are ranked slice by slice, the newest first."""
        if all(term.hits for term in self.terms):
            expression = " AND ".join(term.expression for term in self.terms)
            for first, last in self._slices(min(term.hits for term in self.terms)):
                yield self._ranked(expression, first, last)

    def with_any(self) -> Iterator[Candidate]:
        """What holds any of the rarest terms, best first."""
        known = sorted((t for t in self.terms if t.hits), key=lambda term: term.hits)
        totals = accumulate(term.hits for term in known)
        few = [term for term, total in zip(known, totals, strict=True) if total <= _MOST_HITS]
        self._chosen = (few or known[:1])[:_RAREST]
        if len(self.terms) == 1:
            return
        held: dict[int, int] = {}
        worth: dict[int, float] = {}  # (1 - _BM25) of its share, _BM25 of its BM25 score
        for bit, term in enumerate(self._chosen):
            first, last = next(self._slices(term.hits))
            share, scale = self._share(1 << bit) * (1 - _BM25), _BM25 / self._most
            for drawer, rank in self._db.execute(
                f"SELECT rowid, rank FROM {self.table}"  # noqa: S608 - constants
                f" WHERE {self.table} MATCH ? AND rowid BETWEEN ? AND ?",
                (term.expression, first, last),
            ):  # the ranks of terms add up to the rank of their OR
                held[drawer] = held.get(drawer, 0) | 1 << bit
                worth[drawer] = worth.get(drawer, 0.0) + share - scale * rank
        for drawer in sorted(worth, key=worth.__getitem__, reverse=True):
            share = self._share(held[drawer]) * (1 - _BM25)
            yield Candidate(drawer, held[drawer], (worth[drawer] - share) / _BM25)

    def score(self, held: int, bm25: float) -> float:
        """What holds these of the terms that `with_any` asked for is worth."""
        bm25 = min(1.0, max(0.0, bm25))
        if held.bit_count() == len(self.terms):
            return _rounded(ALL + (1 - ALL) * bm25)
        return _rounded(_SOME * (self._share(held) * (1 - _BM25) + _BM25 * bm25))

    def _share(self, held: int) -> float:
        """How much of the question's idf these terms are."""
        explained = sum(self._idf(t) for bit, t in enumerate(self._chosen) if held >> bit & 1)
        return explained * (_K1 + 1) / self._most

    def _slices(self, hits: int) -> Iterator[tuple[int, int]]:
        """(first, last) drawer of parts of the palace with about as many hits as can be ranked."""
        if hits <= _MOST_HITS:
            yield 0, self._last
            return
        width = max(1, self._last * _SLICE // hits)
        for last in range(self._last, 0, -width):
            yield max(0, last - width + 1), last

    def marks(self, drawer: int, text: str) -> list[tuple[int, int]]:
        """Where the terms stand in a drawer's text: (begin, end), in order, apart."""
        spans = [] if text.isascii() else _spans_of_segments(text, self.terms)
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

    def _ranked(self, expression: str, first: int, last: int) -> Iterator[tuple[int, float]]:
        rows = self._db.execute(
            f"SELECT rowid, rank FROM {self.table}"  # noqa: S608 - constants
            f" WHERE {self.table} MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rank",
            (expression, first, last),
        )
        for drawer, rank in rows:
            bm25 = min(1.0, max(0.0, -rank / self._most))
            yield drawer, _rounded(ALL + (1 - ALL) * bm25)

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
    return expression.startswith('"') and expression.strip('"') in _STOP_WORDS


def _rounded(score: float) -> float:
    return round(score, 4)


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


def _spans_of_segments(text: str, wanted: list[Term]) -> list[tuple[int, int]]:
    """Where runs stand, and words that are glued to something: the column that finds them is not
    what people read."""
    spans = []
    plain = "".join(map(_plain_character, text))
    for term in wanted:
        for match in re.finditer(_pattern(words_in(term.expression)), plain, re.IGNORECASE):
            begin, end = match.span()
            edges = (plain[max(0, begin - 1) : begin + 1], plain[end - 1 : end + 1])
            if is_run(term.expression) or not any(map(goes_on, edges)):
                spans.append((begin, end))
    return spans


def _pattern(words: list[str]) -> str:
    """Words with punctuation between them, or none where another script begins."""
    pattern = re.escape(words[0])
    for before, word in pairwise(words):
        pattern += r"[\W_]" + ("+" if goes_on(before[-1] + word[0]) else "*") + re.escape(word)
    return pattern


def _plain_character(character: str) -> str:
    """Its plain form where that is one character too, so that places stay what they are."""
    form = character if character.isascii() else plain_form(character)
    return form if len(form) == 1 else character


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same characters in spans that neither overlap nor touch, in order."""
    result: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        elif end > begin:
            result.append((begin, end))
    return result
