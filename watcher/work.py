"""What is to be read next: files that grow before history, history from its newest file on.

Owns: these lists, and what events told between two scans.
Never: reads a file, or looks at a clock.
Called by: watcher.daemon.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mempalace.store.accounting import Account

COLD_SECONDS = 60.0  # docs/design.md: without growth for this long, a last line counts as it is
_LIVE_SECONDS = 600.0  # what changed within this time is read before history
_MOST_TOLD = 8192  # files of which an event told, remembered from scan to scan


@dataclass(slots=True)
class Work:
    """Paths that may have grown, and history."""

    live: dict[str, None] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)  # the next one is the last
    warm: dict[str, float] = field(default_factory=dict)  # path -> when it may be cold
    behind: frozenset[str] = frozenset()  # what the last scan found unread
    told: dict[str, None] = field(default_factory=dict)  # by events, since the last scan

    @property
    def is_deaf(self) -> bool:
        """Did events tell of more than is remembered? Then they cannot be judged."""
        return len(self.told) >= _MOST_TOLD

    def hear(self, path: str) -> None:
        """An event told of a file."""
        self.live[path] = None
        if not self.is_deaf:
            self.told[path] = None

    def find(self, files: Iterable[Account], now: float) -> None:
        """A scan found these to be read."""
        recent = (now - _LIVE_SECONDS) * 1e9
        self.history = []
        for one in sorted(files, key=lambda one: one.mtime_ns):
            if one.mtime_ns >= recent:
                self.live[one.path] = None
            else:
                self.history.append(one.path)

    def warm_up(self, path: str, now: float, *, grew: bool) -> None:
        """Something in a file waits for it to be cold. A mere look must not put that off."""
        if grew or self.warm.get(path, now) <= now:
            self.warm[path] = now + COLD_SECONDS

    def cool(self, now: float) -> list[str]:
        """Those that may be cold by now: they are to be read."""
        cold = [path for path, at in self.warm.items() if at <= now]
        self.live.update(dict.fromkeys(cold))
        return cold

    def take(self) -> str | None:
        """The next file of all, which is then no more to be read; None where there is none."""
        path = next(iter(self.live), None) or (self.history[-1] if self.history else None)
        if path is not None:
            self.live.pop(path, None)
            if self.history and self.history[-1] == path:
                self.history.pop()
        return path
