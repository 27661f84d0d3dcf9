"""Claude Code session files, all versions, as the registry knows them.

Owns: the source's name and the version of its parser.
Never: reads a record (claude_fold does).
Called by: mempalace.transcripts.registry.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from mempalace.transcripts.base import TurnsOf, no_relatives
from mempalace.transcripts.claude_fold import SOURCE, ClaudeFold
from mempalace.transcripts.claude_records import is_ours

__all__ = ["SOURCE", "VERSION", "ClaudeCode", "ClaudeFold"]

VERSION = 1


class ClaudeCode:
    """The format, as the registry knows it."""

    source = SOURCE
    version = VERSION

    def fold(
        self,
        path: PurePath,
        state: dict[str, Any],
        waiting: dict[str, str],
        turns_of: TurnsOf = no_relatives,
    ) -> ClaudeFold:
        """A reader for `path`; a copy has the uuids of what it was copied from, so none is asked
        for its relatives."""
        del turns_of
        return ClaudeFold(path, state, waiting)

    def skims(self, line: bytes) -> str:
        """Every type may be large here, and words may stand in any."""
        del line
        return ""

    def recognises(self, record: dict[str, Any]) -> bool:
        return is_ours(record)
