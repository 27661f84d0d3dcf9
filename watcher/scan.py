"""What is on disk against what is accounted for, by `stat` alone.

Owns: the comparison of a scan with the checkpoints, and marking files that are gone (R4).
Never: opens a transcript.
Called by: watcher.daemon.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from mempalace.config import Config
from mempalace.store import checkpoints
from mempalace.store.checkpoints import hidden
from mempalace.store.palace import Palace
from mempalace.transcripts import registry
from watcher.roots import Found


@dataclass(frozen=True, slots=True)
class Behind:
    """Files with something to read, their unread bytes, and the oldest of their times."""

    files: list[Found]
    bytes: int
    oldest: float | None  # seconds since 1970


def unread(
    palace: Palace, config: Config, found: Sequence[Found], *, below: Sequence[str], now: float
) -> Behind:
    """Compare a scan of the roots `below` with the checkpoints."""
    with palace.reading() as db:
        rows = db.execute(
            "SELECT path, n, size, mtime_ns, source, parser, settings, gone_at FROM files"
        ).fetchall()
        waiting = checkpoints.waiting(db)
    known = {row[0]: row[1:] for row in rows}
    versions = {one.source: one.version for one in registry.FORMATS} | {"": registry.VERSION}
    current = config.current_settings()
    files: list[Found] = []
    present: set[int] = set()
    back: list[tuple[None, int]] = []
    total, oldest = 0, None
    for one in found:
        session = os.path.basename(one.path).partition(".")[0]
        if not one.size or config.excludes(cwd=None, path=one.path, session=session):
            continue
        row = known.get(one.path) or known.get(hidden(one.path))
        size = 0
        if row is not None:
            n, size, mtime_ns, source, parser, read_with, gone_at = row
            present.add(n)
            if gone_at is not None:
                back.append((None, n))
            is_current = parser == versions.get(source) and read_with in current
            is_read = (size, mtime_ns) == (one.size, one.mtime_ns) and is_current
            if is_read and n not in waiting:
                continue
        files.append(one)
        if one.size != size:
            total += one.size - size if one.size > size else one.size
            seen = one.mtime_ns / 1e9
            oldest = seen if oldest is None else min(oldest, seen)
    gone = [
        (int(now * 1_000_000), row[1])
        for row in rows
        if row[7] is None
        and row[1] not in present
        and any(row[0].startswith(root.rstrip("/") + "/") for root in below)
    ]
    if gone or back:
        with palace.transaction() as db:
            db.executemany("UPDATE files SET gone_at = ? WHERE n = ?", [*gone, *back])
    return Behind(files, total, oldest)
