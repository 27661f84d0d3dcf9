"""What the watcher says of itself, and whether it is still there to say it.

Owns: how the note `daemon` is read, and what counts as alive.
Never: imports more than sqlite3, or writes the note (watcher.daemon does): wake-up pays for every
module.
Called by: mempalace.layers, mempalace.status.
"""

from __future__ import annotations

import os
import sqlite3

_LONGEST_BEAT_SECONDS = 15  # between two notes of a daemon, whatever its interval
_GRACE_SECONDS = 5
_FIELDS = ("pid", "started_at", "seen_at", "reconcile_seconds", "unread_bytes", "oldest_unread_at")


class Heartbeat:
    """The last note of a watcher; all times are seconds since 1970."""

    __slots__ = (*_FIELDS, "roots", "state")

    def __init__(self, numbers: tuple[object, ...], state: object, roots: object) -> None:
        pid, started_at, seen_at, interval, unread, oldest = (_number(value) for value in numbers)
        self.pid = int(pid or 0)
        self.started_at = started_at
        self.seen_at = seen_at or 0.0  # 0: it left in order
        self.reconcile_seconds = interval or 0.0
        self.unread_bytes = int(unread or 0)
        self.oldest_unread_at = oldest
        self.state = state if isinstance(state, str) else ""
        self.roots = roots if isinstance(roots, str) else "{}"  # JSON: root -> how it is followed

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
    fields = "".join(f", json_extract(value, '$.{name}')" for name in (*_FIELDS, "state", "roots"))
    row = db.execute(
        f"SELECT name{fields} FROM notes WHERE name = 'daemon' AND json_valid(value)"  # noqa: S608
    ).fetchone()
    return None if row is None else Heartbeat(row[1:-2], row[-2], row[-1])


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
