"""One process a palace for a job: the lock that the operating system ends with the process.

Owns: how such a lock is taken.
Never: waits.
Called by: watcher.daemon, mempalace.index.librarian.
"""

from __future__ import annotations

import os

from filelock import FileLock, Timeout

from mempalace import paths
from mempalace.errors import Locked


def only_one(home: str | os.PathLike[str], name: str, *, what: str, hint: str) -> FileLock:
    """Hold the lock `name` of this home. Raises Locked where another process does."""
    path = os.path.join(home, name)
    paths.keep_private(path)
    lock = FileLock(path, mode=paths.FILE_MODE)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise Locked(what, hint) from error
    return lock
