"""What may be asked: a question and its filters, checked once, before anything is opened.

Owns: the forms in which users give a time, a kind and a limit, and the sentences that refuse them.
Never: opens the palace.
Called by: the commands `search` and `sessions`, mempalace.layers.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mempalace.errors import WrongUsage
from mempalace.model import Stream

KINDS = {"talk": Stream.TALK, "tools": Stream.TOOLS}
LARGEST_LIMIT = 1_000
TIME_FORMS = (
    "2026-01-31, 2026-01-31T14:30, 2026-01-31T14:30:00+01:00 (UTC where no offset), 7d, 24h"
)

_MICROSECONDS = 1_000_000
_AGO = re.compile(r"(\d{1,6})\s*([mhdw])")
_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")

Clock = Callable[[], float]  # seconds since 1970


@dataclass(frozen=True, slots=True)
class Query:
    """A question that makes sense. Times are microseconds since 1970 UTC; `until` is excluded."""

    text: str
    wing: str | None = None
    room: str | None = None
    source: str | None = None
    since: int | None = None
    until: int | None = None
    stream: Stream = Stream.TALK
    limit: int = 5


def ask(
    text: str,
    *,
    wing: str | None = None,
    room: str | None = None,
    source: str | None = None,
    since: str | None = None,
    until: str | None = None,
    kind: str = "talk",
    limit: int = 5,
    now: Clock = time.time,
) -> Query:
    """A Query out of what a user typed. Raises WrongUsage with the forms that are understood."""
    if kind not in KINDS:
        raise WrongUsage(f"there is no kind `{kind}` yet", f"the kinds are {', '.join(KINDS)}")
    if not 1 <= limit <= LARGEST_LIMIT:
        raise WrongUsage(f"a limit of {limit} makes no sense", f"ask for 1 to {LARGEST_LIMIT:,}")
    begin, end = since_moment(since, now=now), until_moment(until, now=now)
    if begin is not None and end is not None and begin >= end:
        raise WrongUsage("nothing can be since then and until then", "exchange the two")
    return Query(text, wing, room, source, begin, end, KINDS[kind], limit)


def since_moment(text: str | None, *, now: Clock = time.time) -> int | None:
    """The first moment that counts."""
    return None if text is None else _moment(text, now)[0]


def until_moment(text: str | None, *, now: Clock = time.time) -> int | None:
    """The first moment that no longer counts: a day is meant to its end."""
    if text is None:
        return None
    moment, is_day = _moment(text, now)
    return moment + _UNITS["d"] * _MICROSECONDS if is_day else moment


def _moment(text: str, now: Clock) -> tuple[int, bool]:
    """Microseconds since 1970, and whether a whole day was named."""
    given = text.strip()
    ago = _AGO.fullmatch(given.lower())
    if ago:
        seconds = int(ago.group(1)) * _UNITS[ago.group(2)]
        return int((now() - seconds) * _MICROSECONDS), False
    try:
        when = datetime.fromisoformat(given)
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        gap = when - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise WrongUsage(f"`{text}` is no time", f"give one of: {TIME_FORMS}") from error
    return gap // timedelta(microseconds=1), bool(_DAY.fullmatch(given))
