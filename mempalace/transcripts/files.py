"""Every file below a root that may be a transcript, with its stat: one walk for all who look.

Owns: how a root is walked: no folder twice, no file that is none, what could not be looked at.
Never: opens a file, or decides by more than its name what it holds.
Called by: watcher.roots, mempalace.status.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import PurePath

from mempalace.transcripts.registry import may_be_transcript, may_hold_transcripts

OnError = Callable[[OSError], None]


def walk(root: str, on_error: OnError) -> Iterator[tuple[str, os.stat_result]]:
    """Path and stat of every regular file below `root` whose name may be a transcript's.

    Links are followed, but no folder is entered twice, and none that holds the root. What could
    not be looked at goes to `on_error`, each with its `filename`: a root or folder that is missing
    or closed, a link that leads to itself, and what is named like a transcript but is no file
    (EINVAL). What vanished since its folder was listed does not.
    """
    above = os.path.realpath(root) + os.sep
    seen: set[tuple[int, int]] = set()
    folders: list[str] = [root]
    links: list[str] = []
    while folders or links:
        folder = folders.pop() if folders else links.pop()  # a folder goes before a link to it
        try:
            here = os.stat(folder)
            if (here.st_dev, here.st_ino) in seen:
                continue
            seen.add((here.st_dev, here.st_ino))
            with os.scandir(folder) as entries:
                for entry in entries:
                    if not _is_folder(entry, on_error):
                        if _is_wanted(entry.name) and (found := _stat(entry, on_error)):
                            yield entry.path, found
                    elif may_hold_transcripts(entry.name):
                        if not entry.is_symlink():
                            folders.append(entry.path)
                        elif not above.startswith(os.path.realpath(entry.path).rstrip("/") + "/"):
                            links.append(entry.path)
        except FileNotFoundError as error:
            if folder == root:
                on_error(error)
        except OSError as error:  # border: one folder's trouble is its own (R6, R7)
            on_error(error)


# 32,768: the names of a large installation, so that a second look asks about none of them again
@lru_cache(maxsize=32_768)
def _is_wanted(name: str) -> bool:
    return may_be_transcript(PurePath(name))


def _is_folder(entry: os.DirEntry[str], on_error: OnError) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # a link that leads to itself
        if may_hold_transcripts(entry.name) and not _is_wanted(entry.name):
            on_error(error)  # else `_stat` says so
        return False


def _stat(entry: os.DirEntry[str], on_error: OnError) -> os.stat_result | None:
    try:
        found = entry.stat()
    except FileNotFoundError:
        return None  # gone meanwhile, or a link to what is gone
    except OSError as error:
        on_error(error)
        return None
    if stat.S_ISREG(found.st_mode):
        return found
    on_error(OSError(errno.EINVAL, "not a regular file", entry.path))
    return None
