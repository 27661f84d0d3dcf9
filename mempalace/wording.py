"""How words and times stand on one line of what a session starts with.

Owns: shortening, control characters, our own envelope (R11), and years that no clock can show.
Never: imports more than time: wake-up pays for every module.
Called by: mempalace.layers, mempalace.session_story, mempalace.trouble.
"""

from __future__ import annotations

import time

CONTROLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], "\ufffd")  # a terminal obeys them


def shortened(line: str, most: int) -> str:
    """At most so many characters, cut between two words where that does not cost half of it."""
    if len(line) <= most:
        return line
    cut = line.rfind(" ", 0, most)
    return line[: cut if cut > most // 2 else most - 1].rstrip() + "…"


def safe(line: str) -> str:
    """A line with words of a transcript, for a terminal and inside our envelope."""
    return harmless(line.translate(CONTROLS))


def harmless(text: str) -> str:
    """Words about our own envelope must not open or close it (R11)."""
    return text.replace("<mempalace-context", "‹mempalace-context").replace(
        "</mempalace-context", "‹/mempalace-context"
    )


def date(moment: int) -> str:
    try:
        return time.strftime("%Y-%m-%d", time.gmtime(moment // 1_000_000))
    except (OverflowError, ValueError, OSError):  # a transcript may name any year
        return "no date"


def minute(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "an unknown time"
