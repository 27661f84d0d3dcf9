"""One line where capture is down, paused, blind or behind: the first of every wake-up (R7).

Owns: that sentence, and the look at what is unread where nobody else looks.
Never: walks a folder, waits, or imports more than it must: wake-up pays for every module.
Called by: mempalace.layers.
"""

from __future__ import annotations

import os
import sqlite3

from mempalace.store.heartbeat import last_heartbeat, last_pause
from mempalace.wording import minute

_FILES_LOOKED_AT = 100  # for what is unread, where capture is down


def capture_trouble(db: sqlite3.Connection, home: str, now: float) -> str:
    """One line where capture is down, paused, blind or behind, and what mends it (R7); '' where all
    is well."""
    pause = last_pause(home, now)
    if pause is not None:
        return (
            f"! Capture is paused, nothing is filed: {pause.state}. It goes on by itself when that"
            " is mended; `mempalace doctor` says how."
        )
    beat = last_heartbeat(db)
    if beat is not None and beat.is_up(now):
        if beat.trouble:
            return f"! Capture is degraded: {beat.trouble}. `mempalace status` says more."
        oldest = beat.oldest_unread_at
        if not beat.unread_bytes or oldest is None or now - oldest <= 2 * beat.reconcile_seconds:
            return ""
        return (
            f"! Capture is behind: {beat.unread_bytes:,} bytes are unread, the oldest since"
            f" {minute(oldest)}. `mempalace status` says why; if it does not catch up, start"
            " `mempalace watch` anew."
        )
    since = f" since {minute(beat.seen_at)}" if beat is not None and beat.seen_at else ""
    unread, files = _unread(db)
    left = f"At least {unread:,} bytes of {files:,} transcripts are unread. " if unread else ""
    return (
        f"! Capture is down{since}: what is said now is not filed until it runs. {left}"
        "Start it with `mempalace watch`."
    )


def _unread(db: sqlite3.Connection) -> tuple[int, int]:
    """(bytes, files) that the files read last have more than was read: a look, not a count."""
    unread = files = 0
    for path, size in db.execute(
        "SELECT path, size FROM files WHERE gone_at IS NULL ORDER BY mtime_ns DESC LIMIT ?",
        (_FILES_LOOKED_AT,),
    ):
        try:
            more = os.stat(path).st_size - size
        except (OSError, ValueError):  # gone, or known under the name of an excluded file
            continue
        if more > 0:
            unread += more
            files += 1
    return unread, files
