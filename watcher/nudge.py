"""Somebody must embed what was stored: a librarian is started when something is due.

Owns: when to look. A window that grows is due five seconds after it was still.
Never: embeds, or waits for the librarian.
Called by: watcher.daemon, mempalace.cli.backfill.
"""

from __future__ import annotations

from mempalace.config import Config
from mempalace.index import client
from mempalace.store import vectors
from mempalace.store.palace import Palace
from watcher.disk import Disk

_DUE_SECONDS = 5.5  # a little more than a window must be still
_AGAIN_SECONDS = 30.0  # the one that ran may have been about to leave


class Nudge:
    """Call `stored` after drawers were written, and `turn` now and then."""

    def __init__(self, palace: Palace, config: Config, disk: Disk) -> None:
        self._palace = palace
        self._config = config
        self._disk = disk
        self.at = float("-inf")  # on the monotonic clock; at the start there may be work left

    def stored(self) -> None:
        """Something is due in a moment."""
        self.at = min(self.at, self._disk.monotonic() + _DUE_SECONDS)

    def finish(self) -> None:
        """A one-shot command leaves: whatever is not due yet will be in a moment."""
        with self._palace.reading() as db:
            is_waiting = vectors.waiting(db) and not vectors.problem(db, self._disk.now())
        if self._config.vectors and is_waiting:
            client.wake(self._config.home, after=_DUE_SECONDS)

    def turn(self) -> None:
        """Start a librarian where something is due and none runs."""
        if self._disk.monotonic() < self.at:
            return
        self.at = float("inf")
        client.reap()
        now = self._disk.now()
        with self._palace.reading() as db:
            is_due = vectors.is_anything_due(db, int(now * 1_000_000))
            is_hopeless = bool(vectors.problem(db, now))
        if self._config.vectors and is_due:
            self.at = self._disk.monotonic() + _AGAIN_SECONDS
            if not is_hopeless:
                client.wake(self._config.home)
