"""The names of human words in a Claude Code session (docs/formats/claude-code.md, "Names").

Owns: that a resume, which writes new uuids and keeps the times, gives the same words a name that is
known; and that words with neither are named by their place.
Never: knows whose words they are.
Called by: mempalace.transcripts.claude_code.
"""

from __future__ import annotations

from typing import Any

from mempalace.ids import record_key
from mempalace.transcripts.base import instant
from mempalace.transcripts.claude_blocks import text_at

_SOURCE = "claude-code"
_TO_THE_SECOND = len("2026-01-01T00:00:00")


class Names:
    """Gives names, and counts those that are given by place: `ordinal` is its whole state."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal

    def of_words(self, record: dict[str, Any], session: str, raw: str) -> list[bytes]:
        """The keys of human words with the digest `raw`, at least one."""
        keys = []
        uuid = text_at(record, "uuid")
        if uuid:
            keys.append(record_key(_SOURCE, uuid, raw))
        stamp = record.get("timestamp")
        at = instant(stamp)
        is_exact = not isinstance(stamp, str) or len(stamp) >= _TO_THE_SECOND
        if at is not None and is_exact:
            keys.append(record_key(_SOURCE, at, raw))
        return keys or [self.of_place(session, raw)]

    def of_place(self, session: str, raw: str) -> bytes:
        """The key of a record that has neither an id nor a time: its place in the conversation."""
        self.ordinal += 1
        return record_key(_SOURCE, session, self.ordinal, raw)
