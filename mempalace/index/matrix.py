"""All vectors of one model in memory: exact scores, for any drawers and below any filter.

Owns: the array, and how it follows palace.db. Measured at 200,000 vectors of 384 numbers: 307 MB,
loaded in 1.1 s; all scores of a question 15 ms, those of a wing in proportion.
Never: writes; knows what a wing is (who asks names the exchanges that count).
Called by: mempalace.index.librarian.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mempalace.store import vectors

_LEAST = 1_024  # rows of room
_COPY_COSTS = 25  # times as much to pick a row out as to multiply it, measured at 200,000


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a question sees: it is replaced, never changed, so that no question needs a lock."""

    drawers: NDArray[np.int64]
    exchanges: NDArray[np.int64]
    vectors: NDArray[np.float32]  # (rows, dimension)
    place: dict[int, int]  # drawer -> its row


class Matrix:
    """One thread follows palace.db with `refresh`; any thread may ask."""

    def __init__(self, model: int, dimension: int) -> None:
        self.model = model
        self.upto = 0  # the last vector's number in palace.db
        self._room = np.empty((_LEAST, dimension), np.float32)
        self._numbers = np.empty((2, _LEAST), np.int64)  # drawers, exchanges
        self._used = 0
        self._place: dict[int, int] = {}
        self._show()

    def __len__(self) -> int:
        return len(self._rows.place)

    # --- following palace.db ----------------------------------------------------------------------

    def refresh(self, db: sqlite3.Connection) -> bool:
        """Take in a page of vectors that are new; True where there may be more."""
        page = vectors.since(db, self.model, self.upto)
        if not page:
            return False
        all_of_them = vectors.count(db, self.model) if not self._used else 0
        self._make_room(max(len(page), all_of_them))  # at the start, once for all
        rows = slice(self._used, self._used + len(page))
        blob = b"".join(row.vector for row in page)
        self._room[rows] = np.frombuffer(blob, np.float16).reshape(len(page), -1)
        self._numbers[0, rows] = [row.drawer for row in page]
        self._numbers[1, rows] = [row.exchange for row in page]
        for place, row in enumerate(page, self._used):
            self._place[row.drawer] = place  # a drawer that grew leaves its old row behind
        self._used = rows.stop
        self.upto = page[-1].n
        if self._used > 2 * len(self._place) + _LEAST:
            self._compact()
        self._show()
        return True

    def drop_gone(self, db: sqlite3.Connection) -> None:
        """Let go of drawers that palace.db has no vector of any more."""
        here = set(vectors.drawers_of(db, self.model))
        gone = [drawer for drawer in self._place if drawer not in here]
        if gone:
            for drawer in gone:
                del self._place[drawer]
            self._compact()
            self._show()

    def _make_room(self, more: int) -> None:
        need = self._used + more
        if need > len(self._room):
            size = need * 9 // 8
            room = np.empty((size, self._room.shape[1]), np.float32)
            room[: self._used] = self._room[: self._used]
            numbers = np.empty((2, size), np.int64)
            numbers[:, : self._used] = self._numbers[:, : self._used]
            self._room, self._numbers = room, numbers

    def _compact(self) -> None:
        """New arrays with the rows that count: a question may still look at the old ones."""
        kept = np.fromiter(self._place.values(), np.int64, len(self._place))
        kept.sort()
        self._room, self._numbers = self._room[kept], self._numbers[:, kept]
        self._used = len(kept)
        self._place = {int(drawer): row for row, drawer in enumerate(self._numbers[0])}

    def _show(self) -> None:
        used = self._used
        self._rows = _Rows(
            self._numbers[0, :used], self._numbers[1, :used], self._room[:used], self._place
        )

    # --- questions --------------------------------------------------------------------------------

    def nearest(
        self, question: NDArray[np.float32], limit: int, exchanges: NDArray[np.int64] | None = None
    ) -> list[tuple[int, float]]:
        """(drawer, cosine) of the best drawers, best first; of all, or of these exchanges'."""
        rows = self._rows
        passes = np.ones(len(rows.drawers), bool)
        if exchanges is not None:
            passes = np.isin(rows.exchanges, exchanges)
        places = np.flatnonzero(passes)
        if len(places) * _COPY_COSTS > len(passes):
            scores = (rows.vectors @ question)[places]
        else:
            scores = rows.vectors[places] @ question
        more = min(len(scores), 2 * limit)  # a drawer that grew may stand there twice
        best = np.argpartition(-scores, more - 1)[:more] if more < len(scores) else range(more)
        found: dict[int, float] = {}
        for at in sorted(best, key=lambda at: -scores[at]):
            row = int(places[at])
            drawer = int(rows.drawers[row])
            if rows.place.get(drawer) == row and len(found) < limit:
                found[drawer] = float(scores[at])
        return list(found.items())

    def scores(self, question: NDArray[np.float32], drawers: Sequence[int]) -> dict[int, float]:
        """The cosine of each of these drawers that has a vector."""
        rows = self._rows
        places = {drawer: rows.place[drawer] for drawer in drawers if drawer in rows.place}
        found = rows.vectors[list(places.values())] @ question
        return dict(zip(places, map(float, found), strict=True))
