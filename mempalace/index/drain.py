"""The outbox becomes vectors: what was said last first, each distinct text once.

Owns: the order and size of the steps, and the one rule that a vector is committed with the row of
the outbox that asked for it.
Never: opens Chroma, or decides when to run.
Called by: mempalace.index.librarian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mempalace.store import vectors
from mempalace.store.palace import Palace
from mempalace.store.vectors import Due

_PLANNED = 2_048  # drawers put in order at once: a second at 200,000, for half a minute of work
_STEP = 16  # texts embedded between two commits


class Embeds(Protocol):
    """What the librarian needs of an embedder."""

    name: str
    dimension: int

    @property
    def fingerprint(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector of length 1 for each text: (len(texts), dimension)."""


class Drain:
    """Works for one model. Call `step` until it gives 0."""

    def __init__(self, palace: Palace, embedder: Embeds, model: int, now: Callable[[], float]):
        self._palace = palace
        self._embedder = embedder
        self._model = model
        self._now = now
        self._plan: list[str] = []
        self.embedded = 0  # texts that went through the model
        self.stored = 0

    def step(self) -> int:
        """Embed a few texts and commit their vectors; how many drawers were dealt with."""
        now = int(self._now() * 1_000_000)
        with self._palace.reading() as db:
            if not self._plan:
                self._plan = vectors.newest_due(db, now, _PLANNED)[::-1]
            asked = [self._plan.pop() for _ in range(min(_STEP, len(self._plan)))]
            due = list(vectors.due(db, asked, now))
            known = {one.md5: vectors.known(db, self._model, one.md5) for one in due}
        made = self._embed(due, known)
        if made:
            with self._palace.transaction() as db:
                self.stored += vectors.keep(db, self._model, made)
        elif asked:  # they changed meanwhile, or name no drawer: then they would be asked for again
            with self._palace.transaction() as db:
                vectors.drop_orphans(db)
        return len(asked)

    def _embed(
        self, due: Sequence[Due], known: dict[bytes, bytes | None]
    ) -> list[tuple[Due, bytes]]:
        texts = {one.md5: one.text for one in due if known[one.md5] is None}
        if texts:
            made = self._embedder.embed(list(texts.values())).astype(np.float16)
            self.embedded += len(texts)
            known = known | {md5: row.tobytes() for md5, row in zip(texts, made, strict=True)}
        return [(one, blob) for one in due if (blob := known[one.md5]) is not None]

    def replan(self) -> None:
        """What was said meanwhile comes first."""
        self._plan.clear()
