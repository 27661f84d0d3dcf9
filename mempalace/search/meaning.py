"""The librarian's half of a search: what is near in meaning, and how near a drawer is.

Owns: how a search talks to the librarian, and the sentence that says why it went without.
Never: waits longer than the client does; raises: without vectors keywords answer.
Called by: mempalace.search.find.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from mempalace import __version__, config
from mempalace.errors import MemPalaceError
from mempalace.index import client
from mempalace.index.client import Connection, NoLibrarian
from mempalace.store import vectors
from mempalace.store.palace import Palace

OFF = "keywords only: vectors are off (index.vectors)"
WARMING = "keywords only: vectors are warming"


class Meaning:
    """One question. Ask at once, look for keywords meanwhile, then read `found` and `scores`."""

    def __init__(self, palace: Palace) -> None:
        self._palace = palace
        self._home = os.path.dirname(palace.path)
        self._connection: Connection | None = None
        self.missing = ""  # why there are no vectors, '' where there are

    def ask(self, text: str, limit: int, exchanges: Sequence[int] | None) -> None:
        """Put the question, below a filter where exchanges are named; do not wait."""
        try:
            self._connection = Connection(self._home)
            narrowed = None if exchanges is None else client.packed(exchanges)
            self._connection.send(
                "find", version=__version__, text=text, limit=limit, exchanges=narrowed
            )
        except NoLibrarian as error:
            self.missing = self._start(error)

    def found(self) -> list[tuple[int, float]]:
        """(drawer, cosine), best first."""
        answer = self._answer()
        return [(int(drawer), float(score)) for drawer, score in answer.get("found", ())]

    def scores(self, drawers: Sequence[int]) -> dict[int, float]:
        """The cosine of each of these drawers that has a vector."""
        if self._connection is None or self.missing:
            return {}
        try:
            self._connection.send("score", drawers=list(drawers))
        except NoLibrarian as error:
            self.missing = f"keywords only: {error.what}"
        answer = self._answer()
        return {int(drawer): float(score) for drawer, score in answer.get("scores", ())}

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _answer(self) -> dict[str, Any]:
        if self._connection is None or self.missing:
            return {}
        try:
            answer = self._connection.answer()
        except NoLibrarian as error:
            self.missing = f"keywords only: {error.what}"
            return {}
        if answer.get("state") != "ready":
            self.missing = WARMING if "error" not in answer else f"keywords only: {answer['error']}"
            return {}
        return answer

    def _start(self, error: NoLibrarian) -> str:
        """None answers: start one for the next question, where that may be; the reason for now."""
        with self._palace.reading() as db:
            problem = vectors.problem(db, time.time())
        if problem:
            return f"keywords only: {problem}"
        if isinstance(error.__cause__, PermissionError):  # nor would another one be reached
            return f"keywords only: {error.what}"
        try:
            if not config.load().vectors:
                return OFF
            client.start(self._home)
        except MemPalaceError as failed:  # a search needs neither config.yaml nor a process
            return f"keywords only: {failed.what}"
        return WARMING
