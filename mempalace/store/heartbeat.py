"""What the watcher says of itself, and whether it is still there to say it.

Owns: how the note `daemon` is read, and what counts as alive.
Never: imports more than sqlite3, or writes the note (watcher.daemon does): wake-up pays for every
module.
Called by: mempalace.layers, mempalace.status, service.doctor.

Two places tell: the note `daemon` in the palace, and, while the palace cannot be written (a full
disk, a lock that somebody keeps), a file of one block beside it.
"""

from __future__ import annotations

import os
import sqlite3

from mempalace import paths

PAUSE_BYTES = 512  # of that file, always
_LONGEST_BEAT_SECONDS = 15  # between two notes of a daemon, whatever its interval
_GRACE_SECONDS = 5
_FIELDS = ("pid", "started_at", "seen_at", "reconcile_seconds", "unread_bytes", "oldest_unread_at")
_TEXTS = ("state", "roots", "rescan", "trouble")


class Heartbeat:
    """The last note of a watcher; all times are seconds since 1970."""

    __slots__ = (*_FIELDS, *_TEXTS)

    def __init__(self, numbers: tuple[object, ...], texts: tuple[object, ...]) -> None:
        pid, started_at, seen_at, interval, unread, oldest = (_number(value) for value in numbers)
        self.pid = int(pid or 0)
        self.started_at = started_at
        self.seen_at = seen_at or 0.0  # 0: it left in order
        self.reconcile_seconds = interval or 0.0
        self.unread_bytes = int(unread or 0)
        self.oldest_unread_at = oldest
        state, roots, rescan, trouble = (v if isinstance(v, str) else "" for v in texts)
        self.state = state
        self.roots = roots or "{}"  # JSON: root -> how it is followed
        self.rescan = rescan  # why everything is looked at anew; '' where nothing is owed
        self.trouble = trouble  # what may keep words from the palace now; '' where all is well

    def is_up(self, now: float) -> bool:
        """Seen lately, and its process exists."""
        interval = max(self.reconcile_seconds, _LONGEST_BEAT_SECONDS)
        if self.pid <= 0 or now - self.seen_at > 2 * interval + _GRACE_SECONDS:
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except OSError:
            pass  # it exists, but is not ours to signal
        return True


def last_heartbeat(db: sqlite3.Connection) -> Heartbeat | None:
    """What the last watcher noted; None where there never was one, or nobody can read it."""
    fields = "".join(f", json_extract(value, '$.{name}')" for name in (*_FIELDS, *_TEXTS))
    row = db.execute(
        f"SELECT name{fields} FROM notes WHERE name = 'daemon' AND json_valid(value)"  # noqa: S608
    ).fetchone()
    if row is None:
        return None
    numbers = 1 + len(_FIELDS)
    return Heartbeat(row[1:numbers], row[numbers:])


def last_pause(home: str | os.PathLike[str], now: float) -> Heartbeat | None:
    """A watcher that runs and can store nothing; its `state` is why. None where there is none."""
    try:
        with open(os.path.join(home, paths.WATCH_PAUSE), "rb") as stream:
            told = stream.read(PAUSE_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return None
    fields = told.split(" ", 4)
    if len(fields) < 5 or not all(field.isdigit() for field in fields[:4]):
        return None
    pid, started_at, seen_at, interval = map(int, fields[:4])
    pause = Heartbeat((pid, started_at, seen_at, interval, 0, None), (fields[4], "{}", "", ""))
    return pause if pause.is_up(now) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
