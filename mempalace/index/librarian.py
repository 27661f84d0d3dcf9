"""The librarian: the one process that has the embedding model and Chroma (docs/design.md §6).

Owns: its life. It holds `librarian.lock` from before anything is loaded until everything is closed;
it embeds what the outbox asks for, opens the index at the first question, and leaves when nobody
needs it. Its main thread works, at low priority; questions are answered from threads of the server.
Never: captures; is needed for anything that keywords can do.
Called by: mempalace.cli.librarian; started by search, watch and backfill through index.client.
"""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempalace import paths
from mempalace.errors import Locked, MemPalaceError
from mempalace.index.client import ASKED_FOR
from mempalace.index.drain import Drain, Embeds
from mempalace.index.finder import Finder
from mempalace.index.server import Server
from mempalace.store import vectors
from mempalace.store.palace import Palace, PalaceDamaged, PalaceMoved
from mempalace.store.single import only_one

log = logging.getLogger("mempalace.librarian")

IDLE_SECONDS = 60.0  # without anything to embed, where the index is closed
QUESTION_SECONDS = 600.0  # without a question, where it is open (docs/design.md §6)
_LOOK_SECONDS = 1.0  # between two looks at the outbox
_RETRY_SECONDS = 5.0
_MOST_FAILURES = 60
_HEALED = 4_096  # drawers looked at in one step
_DROPPED = 2_000  # vectors of another model deleted in one transaction
_NICE = 10

Maker = Callable[[], Embeds]


class Librarian:
    """One home's librarian. `makers` give embedders, the one to use first; another one is used only
    to ask for what it made, until the first has made everything anew."""

    def __init__(
        self,
        home: str | os.PathLike[str],
        makers: Sequence[Maker],
        *,
        opens: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.home = os.path.abspath(home)
        self._makers = makers
        self._clock = clock
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._embedders: dict[int, Embeds] = {}  # by number of the model, the present one first
        self._finder: Finder | None = None
        self._wants_index = opens  # at the first question, or at once
        self._wants_rebuild = False
        self._last_question = self._last_work = clock()
        self._healed_upto: int | None = None  # of drawers looked at; None: nothing is to be healed
        self._has_others: bool | None = None  # vectors of models that are no more; None: unknown
        self._failures = 0

    # --- life -------------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until nobody needs it. Raises Locked where another one does, NotThereYet where
        there is no palace, ModelMissing where nothing can be embedded."""
        what, hint = "another librarian has this palace", "nothing to do"
        with Palace.writer(self.home) as palace:
            self._palace = palace
            try:
                with only_one(self.home, paths.LIBRARIAN_LOCK, what=what, hint=hint):
                    self._live()
            except Locked:
                raise
            except PalaceMoved as error:  # another one may be needed there
                log.info("palace.moved", extra={"what": error.what})
            except MemPalaceError as error:
                self._note_problem(error.what)
                raise
            except Exception as error:  # border: who asks is told why there are no vectors
                self._note_problem(f"the librarian ended with an unexpected {type(error).__name__}")
                raise

    def _live(self) -> None:
        os.umask(0o077)  # Chroma's files are the owner's alone, too (R12)
        self._handle_signals()
        server = Server(self)
        server.open()  # before the model is loaded: who asks is told that it is warming
        log.info("librarian.start")
        try:
            self._lower_priority()
            self._load()
            self._work()
        finally:
            server.close()
            if self._finder is not None:
                self._finder.close()
        log.info("librarian.stop")

    def stop(self) -> None:
        """Leave after the step at hand."""
        self._stopping.set()
        self._wake.set()

    def _handle_signals(self) -> None:
        def stop(_signal: int, _frame: FrameType | None) -> None:
            self.stop()

        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, stop)
            signal.signal(signal.SIGINT, stop)

    def _lower_priority(self) -> None:
        """Of this thread and those it starts; the server's threads keep theirs. Elsewhere than on
        Linux that would slow down the answers too."""
        if sys.platform == "linux" and threading.current_thread() is threading.main_thread():
            os.nice(_NICE)

    def _load(self) -> None:
        for maker in self._makers:
            embedder = maker()
            with self._palace.transaction() as db:
                number = vectors.model_number(
                    db, embedder.name, embedder.dimension, embedder.fingerprint
                )
            self._embedders[number] = embedder
        self._model = next(iter(self._embedders))
        self._drain = Drain(self._palace, self._embedders[self._model], self._model, time.time)
        with self._palace.transaction() as db:
            vectors.forget_problem(db)
            self._healed_upto = 0 if vectors.may_lack_some(db, self._model) else None

    def _note_problem(self, what: str) -> None:
        log.error("librarian.problem", extra={"what": what})
        try:
            with self._palace.transaction() as db:
                vectors.note_problem(db, what, time.time())
        except MemPalaceError:
            pass  # border: the palace itself is the problem

    # --- work -------------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                busy = self._turn()
                self._failures = 0
            except (PalaceDamaged, PalaceMoved):
                raise
            except MemPalaceError as error:  # border: a full disk or a lock passes
                self._failures += 1
                log.warning("librarian.trouble", extra={"what": error.what})
                if self._failures > _MOST_FAILURES:
                    raise
                self._stopping.wait(_RETRY_SECONDS)
                continue
            if busy:
                continue
            if self._may_leave():
                break
            self._wake.wait(_LOOK_SECONDS)
            self._wake.clear()

    def _turn(self) -> bool:
        """A little of everything that is to do; True where there is more."""
        self._palace.check_place()
        if self._wants_index and self._is_unasked():
            self._close_index()
        busy = self._wants_index and self._serve()
        if self._drain.step():
            self._last_work = self._clock()
            return True
        return self._heal() or busy

    def _serve(self) -> bool:
        """Open the index, keep it in step, or change to the new model."""
        model = self._answering()
        finder = self._finder
        if finder is None or finder.model != model:
            if finder is not None:
                finder.close()
            embedder = self._embedders[model]
            folder = os.path.join(self.home, paths.VECTORS)
            finder = Finder(self._palace, folder, model, embedder.fingerprint, embedder.dimension)
            self._finder = finder
        if self._wants_rebuild and finder.is_loaded:
            self._wants_rebuild = False
            finder.rebuild(ASKED_FOR)
        return finder.step()

    def _answering(self) -> int:
        """The model that questions are put to: the present one, unless another one still knows
        more."""
        if len(self._embedders) == 1:
            return self._model
        with self._palace.reading() as db:
            counts = vectors.counts(db)
        known = {model: counts.get(model, 0) for model in self._embedders}
        best = max(known, key=lambda model: known[model])
        return best if known[best] > known[self._model] else self._model

    def _heal(self) -> bool:
        """Drawers that no outbox names and that have no vector (an older palace, another model);
        rows of the outbox that name no drawer; vectors of models that are no more."""
        if self._healed_upto is not None:
            with self._palace.transaction() as db:
                self._healed_upto = vectors.post_missing(
                    db, self._model, self._healed_upto, _HEALED
                )
                if self._healed_upto is None:
                    vectors.drop_orphans(db)
            return True
        if self._has_others is None:
            with self._palace.reading() as db:
                if vectors.waiting(db) or self._answering() != self._model:
                    return False
                self._has_others = len(vectors.counts(db)) > 1
        if self._has_others:
            with self._palace.transaction() as db:
                self._has_others = vectors.drop_other_models(db, self._model, _DROPPED) > 0
            return True
        return False

    def _may_leave(self) -> bool:
        return not self._wants_index and self._clock() - self._last_work > IDLE_SECONDS

    def _is_unasked(self) -> bool:
        """Nobody has asked for long; but what is being filled is filled."""
        is_filling = self._finder is not None and bool(self._finder.rebuild_reason)
        return not is_filling and self._clock() - self._last_question > QUESTION_SECONDS

    def _close_index(self) -> None:
        self._wants_index = False
        finder, self._finder = self._finder, None
        if finder is not None:
            finder.close()

    # --- what the server asks ---------------------------------------------------------------------

    def question(self, text: str) -> NDArray[np.float32] | None:
        """A question's vector, None while the index is warming."""
        self._last_question = self._clock()
        if not self._wants_index:
            self._wants_index = True
            self._wake.set()
        finder = self._finder
        if finder is None or not finder.is_loaded:
            return None
        vector: NDArray[np.float32] = self._embedders[finder.model].embed([text])[0]
        return vector

    def nearest(
        self,
        db: sqlite3.Connection,
        question: NDArray[np.float32],
        limit: int,
        exchanges: NDArray[np.int64] | None,
    ) -> list[tuple[int, float]]:
        """(drawer, cosine), best first."""
        finder = self._finder
        return [] if finder is None else finder.nearest(db, question, limit, exchanges)

    def scores(self, question: NDArray[np.float32], drawers: list[int]) -> dict[int, float]:
        finder = self._finder
        return {} if finder is None else finder.scores(question, drawers)

    def reindex(self) -> None:
        """Open the index, and fill Chroma's folder anew."""
        self._last_question = self._clock()
        self._wants_index = self._wants_rebuild = True
        self._wake.set()

    def state(self) -> dict[str, Any]:
        """What it is doing; for `reindex` and `status`."""
        finder = self._finder
        return {
            "pid": os.getpid(),
            "model": self._embedders[self._model].name if self._embedders else None,
            "embedded": self._drain.embedded if self._embedders else 0,
            "is_loaded": finder is not None and finder.is_loaded,
            "is_in_step": finder is not None and finder.is_in_step and not self._wants_rebuild,
            "vectors": 0 if finder is None else len(finder.matrix),
            "added": 0 if finder is None else finder.added,
            "given_up": "" if finder is None else finder.given_up,
            "rebuilding": "" if finder is None else finder.rebuild_reason,
        }
