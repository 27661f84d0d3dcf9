"""The file system and the clock, as the watcher sees them: one seam for tests and faults.

Owns: opening transcripts for reading only (R4) and telling the time.
Never: writes.
Called by: everything under watcher/.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """What `stat` says of a regular file."""

    device: int
    inode: int
    size: int
    mtime_ns: int


class NotAFile(OSError):
    """A FIFO, a folder, a device: named like a transcript, but nothing to read."""


class Disk:
    """The real one. Tests subclass it to lose, to fail and to lie."""

    def look(self, path: str) -> Look:
        """Raises OSError where there is nothing, NotAFile where it is no regular file."""
        return _look(os.stat(path), path)

    def open(self, path: str) -> int:
        """A descriptor for reading; never blocks, not on a FIFO that took the file's place."""
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def look_at(self, descriptor: int) -> Look:
        return _look(os.fstat(descriptor), str(descriptor))

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        """At most `length` bytes from `offset`; fewer at the end of the file."""
        return os.pread(descriptor, length, offset)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        with os.scandir(folder) as found:
            yield from found

    def now(self) -> float:
        """Seconds since 1970, as the wall clock has it."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go backwards, for intervals."""
        return time.monotonic()


def _look(status: os.stat_result, path: str) -> Look:
    if not stat.S_ISREG(status.st_mode):
        raise NotAFile(f"{path} is no regular file")
    return Look(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
