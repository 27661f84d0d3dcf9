"""The file system and the clock, as the watcher sees them: one seam for tests and faults.

Owns: opening transcripts for reading only (R4), walking roots, what kind of file system a folder is
on, whether one more folder could be watched, and telling the time.
Never: writes.
Called by: everything under watcher/.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mempalace.transcripts.files import OnError, walk
from watcher.limits import filesystem, may_watch
from watcher.packed import SUFFIX, Unpacking


@dataclass(frozen=True, slots=True)
class Look:
    """What `stat` says of a regular file; of an open compressed one, `size` is its content's."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    packed: int | None = None  # the bytes that a compressed file takes on disk


class NotAFile(OSError):
    """A FIFO, a folder, a device: named like a transcript, but nothing to read."""


class Disk:
    """The real one. Tests subclass it to lose, to fail and to lie."""

    def __init__(self) -> None:
        self._unpacking = Unpacking()

    def look(self, path: str) -> Look:
        """Raises OSError where there is nothing, NotAFile where it is no regular file."""
        return _look(os.stat(path), path)

    def open(self, path: str) -> int:
        """A descriptor for reading; never blocks, not on a FIFO that took the file's place."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if path.endswith(SUFFIX):
            try:
                self._unpacking.open(descriptor)
            except OSError:
                os.close(descriptor)
                raise
        return descriptor

    def look_at(self, descriptor: int) -> Look:
        look = _look(os.fstat(descriptor), str(descriptor))
        packed = self._unpacking.get(descriptor)
        return look if packed is None else replace(look, size=packed.size, packed=look.size)

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        """At most `length` bytes from `offset`; fewer at the end of the file."""
        packed = self._unpacking.get(descriptor)
        return (
            os.pread(descriptor, length, offset) if packed is None else packed.read(length, offset)
        )

    def close(self, descriptor: int) -> None:
        self._unpacking.close(descriptor)
        os.close(descriptor)

    def walk(self, root: str, on_error: OnError) -> Iterator[tuple[str, os.stat_result]]:
        """Every file below `root` that may be a transcript."""
        return walk(root, on_error)

    def folder(self, path: str) -> tuple[int, int]:
        """(device, inode) of a folder: another pair is another folder of that name. Raises OSError
        where there is none."""
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return status.st_dev, status.st_ino

    def filesystem(self, path: str) -> str:
        """The kind of file system, as the system calls it; '' where it does not say."""
        return filesystem(path)

    def may_watch(self) -> bool:
        """Would the system let us watch one more folder?"""
        return may_watch()

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
