"""How long bytes have been unread, and when they are lost if nobody reads them.

Owns: the two questions, as far as a file's times, its next record and Claude Code's settings tell.
Never: reads more of a transcript than the first unread record.
Called by: mempalace.status.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from mempalace.store.accounting import Account
from mempalace.transcripts.base import instant

_PURGE_DAYS = 30  # Claude Code's own default of `cleanupPeriodDays`
_PEEK = 64 * 1024  # bytes behind the last one read in which a time is looked for
_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"([^"\\]{10,40})"')


def unread_since(one: Account) -> float:
    """When the oldest unread byte of a file was written.

    That is the file's time where nobody writes to it any more. In a known file that still grows it
    is the time that the first unread record tells, but none before what was read last.
    """
    latest, known = one.mtime_ns / 1e9, one.known
    if known is None or known.size > one.size:
        return latest  # new: a copied history tells old times
    earliest = min(latest, known.mtime_ns / 1e9)
    if latest - earliest < 1:
        return earliest
    told = _first_time(one.path, known.offset)
    return latest if told is None else min(latest, max(earliest, told))


def _first_time(file: str, offset: int) -> float | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = _TIMESTAMP.search(os.pread(descriptor, _PEEK, offset))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    moment = instant(found.group(1).decode("ascii", "replace")) if found else None
    return None if moment is None else moment / 1e6


def purge_days(root: str) -> float:
    """How long Claude Code keeps a transcript that is not written to."""
    try:
        settings = json.loads((Path(root).parent / "settings.json").read_bytes())
        days = settings["cleanupPeriodDays"]
    except (OSError, ValueError, KeyError, TypeError):
        return _PURGE_DAYS
    is_number = isinstance(days, (int, float)) and not isinstance(days, bool)
    return float(days) if is_number and 0 <= days < 1e6 else _PURGE_DAYS
