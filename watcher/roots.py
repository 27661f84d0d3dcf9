"""Which folders and files are followed, and what a file's place tells of its project.

Owns: the roots, the walk from newest to oldest, the guess at a folder that no record names.
Never: reads a transcript's content (only Claude Code's own history.jsonl, for that guess).
Called by: watcher.daemon, watcher.backfill, watcher.capture through `folder_of`.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from mempalace.config import Config
from mempalace.errors import WrongUsage
from mempalace.store.palace import Palace
from mempalace.transcripts.files import walk

_HISTORY_READ = 64 * 1024 * 1024  # bytes of history.jsonl looked at for a session's project
_ENCODED = re.compile(r"(?:-|[A-Za-z]--)[A-Za-z0-9-]*")


@dataclass(frozen=True, slots=True)
class Found:
    """A file that may be a transcript."""

    path: str
    size: int
    mtime_ns: int


def roots(config: Config) -> tuple[str, ...]:
    """The folders to follow; they need not exist yet."""
    return tuple(str(folder) for folder in (*config.claude_code_roots, *config.codex_roots))


def transcripts_in(root: str, on_error: Callable[[OSError], None]) -> Iterator[Found]:
    """Every file below `root` that may be a transcript."""
    for path, status in walk(root, on_error):
        yield Found(path, status.st_size, status.st_mtime_ns)


def transcripts_at(paths: Iterable[str], on_error: Callable[[OSError], None]) -> list[Found]:
    """The files that these paths name or hold, newest first. A file that is named is taken
    whatever it is called."""
    found: dict[str, Found] = {}
    for given in paths:
        path = os.path.abspath(os.path.expanduser(given))
        try:
            status = os.stat(path)
        except OSError as error:
            raise WrongUsage(
                f"cannot read {given}: {error.strerror}", "give a transcript or a folder of them"
            ) from error
        if stat.S_ISDIR(status.st_mode):
            found.update((one.path, one) for one in transcripts_in(path, on_error))
        else:
            found[path] = Found(path, status.st_size, status.st_mtime_ns)
    return sorted(found.values(), key=lambda one: (-one.mtime_ns, one.path))


class Folders:
    """Guesses at the working folder of a session that never names one."""

    def __init__(self, palace: Palace) -> None:
        self._palace = palace

    def __call__(self, path: str) -> str | None:
        """A folder; the encoded name where nothing better is known; None for other places."""
        match = re.search(r"^(.*)/projects/([^/]+)/", path)
        if match is None or not _ENCODED.fullmatch(match.group(2)):
            return None
        encoded = match.group(2)
        return (
            self._of_siblings(f"{match.group(1)}/projects/{encoded}/")
            or _of_history(match.group(1), os.path.basename(path).removesuffix(".jsonl"))
            or _existing(encoded)
            or encoded
        )

    def _of_siblings(self, folder: str) -> str | None:
        with self._palace.reading() as db:
            row = db.execute(
                "SELECT s.cwd FROM files f JOIN exchanges e ON e.file = f.n"
                " JOIN sessions s ON s.n = e.session"
                " WHERE f.path >= ? AND f.path < ? AND s.cwd IS NOT NULL LIMIT 1",
                (folder, folder[:-1] + "0"),  # '0' follows '/'
            ).fetchone()
        return None if row is None else str(row[0])


def _of_history(claude: str, session: str) -> str | None:
    """The project that Claude Code's list of prompts has for a session."""
    path = os.path.join(claude, "history.jsonl")
    try:
        return _history(path, os.stat(path).st_mtime_ns).get(session)
    except OSError:
        return None


@lru_cache(maxsize=4)
def _history(path: str, mtime_ns: int) -> dict[str, str]:  # noqa: ARG001 - a newer file is read again
    projects: dict[str, str] = {}
    with open(path, "rb") as stream:
        for line in stream.read(_HISTORY_READ).split(b"\n"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and isinstance(entry.get("project"), str):
                session = entry.get("sessionId")
                if isinstance(session, str):
                    projects[session] = entry["project"]
    return projects


def _existing(encoded: str) -> str | None:
    """The folder on this machine whose name is encoded like this, or None."""
    if not encoded.startswith("-"):
        return None
    return _descend("/", encoded[1:])


def _descend(folder: str, rest: str) -> str | None:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return None
    for name in sorted(names, key=len, reverse=True):  # the longest match
        code = re.sub(r"[^A-Za-z0-9-]", "-", name)
        if rest == code:
            return os.path.join(folder, name)
        if rest.startswith(code + "-"):
            found = _descend(os.path.join(folder, name), rest[len(code) + 1 :])
            if found:
                return found
    return None
