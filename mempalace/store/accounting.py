"""What is on disk against what is accounted for, by `stat` alone: one comparison for all who ask.

Owns: when a file has something to read, and how many of its bytes are unread.
Never: walks a folder, opens a transcript, writes.
Called by: watcher.scan, mempalace.status, service.doctor.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mempalace.config import Config
from mempalace.store.checkpoints import HIDDEN, hidden


@dataclass(frozen=True, slots=True)
class Known:
    """What the palace knows of a file."""

    n: int
    size: int
    offset: int
    mtime_ns: int
    is_stale: bool  # another parser or other settings have read it (R5)
    is_gone: bool
    waits: bool  # something of it waits until it is cold


@dataclass(frozen=True, slots=True)
class Account:
    """One file on disk, held against the palace."""

    path: str
    size: int
    mtime_ns: int
    known: Known | None
    is_excluded: bool  # by its path or session: it is not even opened (R10)

    @property
    def unread(self) -> int:
        """Bytes to read: what it grew, or all of it where it shrank."""
        if self.known is None:
            return self.size
        grew = self.size - self.known.size
        return grew if grew >= 0 else self.size

    @property
    def is_behind(self) -> bool:
        """Has it anything to read, also where that adds no byte?"""
        if self.is_excluded or not self.size:
            return False
        known = self.known
        if known is None or (known.size, known.mtime_ns) != (self.size, self.mtime_ns):
            return True
        return known.is_stale or known.waits


class Accounts:
    """The checkpoints of all files at one moment."""

    def __init__(
        self,
        db: sqlite3.Connection,
        config: Config,
        versions: Mapping[str, int],
        *,
        waiting: Collection[int] = (),
    ) -> None:
        """`versions` are those of the parsers by source, `waiting` the numbers of files with
        something that waits until they are cold."""
        self._config = config
        current = config.current_settings()
        self.known: dict[str, Known] = {}
        for n, path, size, offset, mtime_ns, source, parser, read_with, gone_at in db.execute(
            "SELECT n, path, size, offset, mtime_ns, source, parser, settings, gone_at FROM files"
        ):
            is_stale = parser != versions.get(source) or read_with not in current
            self.known[path] = Known(
                n, size, offset, mtime_ns, is_stale, gone_at is not None, n in waiting
            )
        self._has_hidden = any(path.startswith(HIDDEN) for path in self.known)

    def of(self, path: str, look: os.stat_result) -> Account:
        """A file that a walk has found."""
        config = self._config
        session = os.path.basename(path).partition(".")[0] if config.exclude else None
        is_excluded = config.excludes(cwd=None, path=path, session=session)
        known = self.known.get(path)
        if known is None and self._has_hidden:
            known = self.known.get(hidden(path))
        return Account(path, look.st_size, look.st_mtime_ns, known, is_excluded)
