"""Questions by meaning: one model's vectors in memory, and Chroma where it is in step.

Owns: which of the two answers, and how the projection is opened, filled and kept in step. All
vectors are compared, or all below a filter; where they are too many for that, Chroma gives the
candidates of an unfiltered question. Either way the scores are exact, from the blobs.
Never: embeds; serves a socket.
Called by: mempalace.index.librarian: `step` from one thread, `nearest` and `scores` from any.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mempalace.errors import MemPalaceError
from mempalace.index.matrix import Matrix
from mempalace.index.projection import Projection, Torn
from mempalace.store import vectors
from mempalace.store.palace import Palace

log = logging.getLogger("mempalace.librarian")

# Vectors up to which all of them are compared, in 40 ms at most. A graph is quicker and passes over
# some: of 1,418 drawers of one topic and 20 of others, the nearest one for 3 questions of 20.
_EXACT = 500_000
_CALM_SECONDS = 1.0  # whoever removes a home removes its files one by one
_CHUNK = 1_000  # vectors given to Chroma in one step, most of a second
_QUIET_SECONDS = 30.0  # without an addition, the folder is closed and opened again: it is clean
_MOST_REBUILDS = 3  # by one process; then something else is wrong, and all vectors are compared


class Finder:
    """The index of one model. Call `step` until it gives False; it may be asked at once."""

    def __init__(
        self, palace: Palace, folder: str, model: int, fingerprint: str, dimension: int
    ) -> None:
        self._palace = palace
        self.model = model
        self.matrix = Matrix(model, dimension)
        self.is_loaded = False
        self._chroma = Projection(palace, folder, fingerprint)
        self._is_open = False
        self._rebuilds = 0
        self._last_addition = time.monotonic()
        self.rebuild_reason = ""  # why it is being filled anew, while it is
        self.added = 0  # since that began
        self.given_up = ""  # why Chroma is not filled any more; all vectors are compared
        self.is_in_step = False

    # --- keeping it in step -----------------------------------------------------------------------

    def step(self) -> bool:
        """Do a little of what is to do; True where there is more."""
        with self._palace.reading() as db:
            if self.matrix.refresh(db):
                self.is_in_step = False
                return True
        self.is_loaded = True
        if self._rebuilds > _MOST_REBUILDS:
            return False
        try:
            if not self._is_open:
                self._chroma.open()
                self._is_open = True
                return True
            return self._follow()
        except Torn as torn:
            time.sleep(_CALM_SECONDS)
            self._palace.check_place()
            self._begin_anew(torn.what)
            return True

    def rebuild(self, reason: str) -> None:
        """Fill Chroma's folder anew from the blobs, in the steps that follow."""
        self._rebuilds, self.given_up = 0, ""
        self._begin_anew(reason)

    def close(self) -> None:
        """Close the folder so that the next one finds it clean."""
        self.is_in_step = False
        try:
            self._chroma.close()
        except MemPalaceError as error:  # torn, or the palace is gone: the next one fills it anew
            log.warning("projection.left", extra={"why": error.what})
        self._is_open = False

    def _begin_anew(self, reason: str) -> None:
        self.is_in_step = False
        self._rebuilds += 1
        if self._rebuilds > _MOST_REBUILDS:
            log.error("projection.given_up", extra={"why": reason})
            self.given_up, self.rebuild_reason = reason, ""
            return
        log.info("projection.rebuild", extra={"why": reason})
        self.rebuild_reason, self.added = reason, 0
        try:
            self._chroma.create()
            self._is_open = True
        except (Torn, OSError) as error:
            self._is_open = False
            log.warning("projection.failed", extra={"why": str(error)})

    def _follow(self) -> bool:
        with self._palace.reading() as db:
            gone = vectors.deletions(db, _CHUNK)
            page = vectors.since(db, self.model, self._chroma.upto, limit=_CHUNK)
            ids = vectors.ids_of(db, [row.drawer for row in page])
        if gone:
            self._remove(gone)
        if page:
            rows = [row for row in page if row.drawer in ids]
            blob = b"".join(row.vector for row in rows)
            made = np.frombuffer(blob, np.float16).reshape(len(rows), -1).astype(np.float32)
            self._chroma.add([ids[row.drawer] for row in rows], made, page[-1].n)
            self._last_addition = time.monotonic()
            self.added += len(rows)
        if gone or page:
            self.is_in_step = False
            return True
        if not self.is_in_step:
            self._compare()
        elif self._chroma.was_changed():
            raise Torn("its files were changed", "")
        if self._chroma.is_dirty and time.monotonic() - self._last_addition > _QUIET_SECONDS:
            self._settle()
        return False

    def _remove(self, gone: Sequence[str]) -> None:
        self._chroma.remove(gone)
        with self._palace.transaction() as db:
            vectors.deleted(db, gone)
        with self._palace.reading() as db:
            self.matrix.drop_gone(db)
        self._last_addition = time.monotonic()

    def _compare(self) -> None:
        """All that is known is in it; is what is in it all that is known?"""
        held = self._chroma.count()
        with self._palace.reading() as db:
            db.execute("BEGIN")
            try:
                wanted = vectors.count(db, self.model)
                is_still = not vectors.deletions(db, 1) and not vectors.since(
                    db, self.model, self._chroma.upto, limit=1
                )
            finally:
                db.execute("COMMIT")
        if is_still and held != wanted:
            raise Torn(f"it holds {held:,} of {wanted:,} vectors", "")
        if is_still:
            self.is_in_step = True
            self.rebuild_reason = ""
            self._rebuilds = 0

    def _settle(self) -> None:
        """Close it and open it again, so that a kill finds nothing half done."""
        self.close()
        self._chroma.open()
        self._is_open = self.is_in_step = True

    # --- questions --------------------------------------------------------------------------------

    def nearest(
        self,
        db: sqlite3.Connection,
        question: NDArray[np.float32],
        limit: int,
        exchanges: NDArray[np.int64] | None,
    ) -> list[tuple[int, float]]:
        """(drawer, cosine), best first. `db` is a connection of the caller's thread."""
        if exchanges is None and self.is_in_step and len(self.matrix) > _EXACT:
            try:
                ids = self._chroma.nearest(question, limit)
                numbers = vectors.numbers_of(db, ids)
                scores = self.matrix.scores(question, list(numbers.values()))
                return sorted(scores.items(), key=lambda pair: -pair[1])
            except Torn:
                self.is_in_step = False  # the next step looks into it
        return self.matrix.nearest(question, limit, exchanges)

    def scores(self, question: NDArray[np.float32], drawers: Sequence[int]) -> dict[int, float]:
        """The cosine of each of these drawers that has a vector."""
        return self.matrix.scores(question, drawers)
