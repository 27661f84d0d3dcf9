"""How well the watcher sees, as values: each root, a rescan that is owed, a pause (R7).

Owns: the states and their words, and the two places where they are left for others: the note in
the palace, and, where that cannot be written, a small file beside it.
Never: finds out anything itself; waits; asks for a byte that the disk does not have yet.
Called by: watcher.daemon, watcher.events.

What others read: mempalace.store.heartbeat.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mempalace import paths
from mempalace.errors import MemPalaceError
from mempalace.store.heartbeat import PAUSE_BYTES


class Following(StrEnum):
    """How a root is followed."""

    WATCHING = "watching"  # by events, and the scan behind them
    POLLING = "polling"  # by the scan alone, which then comes more often
    MISSING = "missing"  # picked up when it appears
    UNREADABLE = "unreadable"  # all of it, or a part


@dataclass(frozen=True, slots=True)
class Sight:
    """How one root is followed, and why not better."""

    following: Following
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.following}: {self.reason}" if self.reason else str(self.following)


@dataclass(slots=True)
class Health:
    """Everything that is not as it should be at the moment. Empty words: all is well."""

    roots: dict[str, Sight] = field(default_factory=dict)
    rescan: str = ""  # why everything is to be looked at anew, until what that found is read
    paused: str = ""  # why nothing can be stored

    def note(self) -> dict[str, Any]:
        """For the heartbeat, as JSON values."""
        return {
            "roots": {path: str(sight) for path, sight in self.roots.items()},
            "rescan": self.rescan,
            "trouble": self.trouble(),
        }

    def trouble(self) -> str:
        """One line for who begins a session: what may keep words from the palace now. Polling
        does not: it is only slower."""
        blind = [s.reason for s in self.roots.values() if s.following is Following.UNREADABLE]
        if blind:
            return f"the watcher may not read {blind[0]}"
        return f"everything is looked at anew: {self.rescan}" if self.rescan else ""


class PauseFile:
    """Where a pause is told when the palace cannot be written: a file of one block.

    Its bytes are there from the start and are only ever overwritten in place, which a full disk
    allows.
    """

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self._path = os.path.join(home, paths.WATCH_PAUSE)
        self._text = ""

    def prepare(self) -> None:
        """Make the file, or take an old pause out of it; a full disk gives none."""
        try:
            paths.keep_private(self._path)
        except MemPalaceError:  # border: `status` then sees an old heartbeat only
            return
        self._write("")

    def tell(self, why: str, *, started_at: float, now: float, interval: float) -> None:
        """Say that nothing can be stored, and that we are alive. Say it again and again."""
        self._write(f"{os.getpid()} {started_at:.0f} {now:.0f} {interval:.0f} {why}")

    def clear(self) -> None:
        if self._text:
            self._write("")

    def _write(self, text: str) -> None:
        data = " ".join(text.split()).encode("utf-8", "replace")[:PAUSE_BYTES]
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.pwrite(descriptor, data.ljust(PAUSE_BYTES), 0)
            finally:
                os.close(descriptor)
        except OSError:
            return  # border: the disk forbids even that; an old heartbeat tells
        self._text = text
