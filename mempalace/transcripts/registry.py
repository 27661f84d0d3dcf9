"""Which format is this file? Decided by its content (FORMATS are many, names lie).

Owns: the list of formats and the files beside transcripts that are none.
Never: reads a file.
Called by: watcher.roots, watcher.capture, and whoever asks which files are stale.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from mempalace.transcripts.base import Format
from mempalace.transcripts.claude_code import ClaudeCode
from mempalace.transcripts.codex import Codex

FORMATS: tuple[Format, ...] = (ClaudeCode(), Codex())
VERSION = sum(one.version for one in FORMATS)  # rises when any format may read more
RECORDS_LOOKED_AT = 200  # a session file may begin with this many lines that are no turn

_NOT_TRANSCRIPTS = frozenset(
    {"journal.jsonl", "history.jsonl", "session_index.jsonl", "sessions-index.json"}
)
_NOT_FOLDERS = frozenset({"tool-results", "memory"})


def may_be_transcript(path: PurePath) -> bool:
    """By its name alone: worth opening?"""
    if path.name in _NOT_TRANSCRIPTS or path.name.endswith(".meta.json"):
        return False
    return path.suffix in (".jsonl", ".json") or path.name.endswith(".jsonl.zst")


def may_hold_transcripts(folder_name: str) -> bool:
    """By its name alone: worth looking into?"""
    return folder_name not in _NOT_FOLDERS


def by_source(source: str) -> Format | None:
    return next((one for one in FORMATS if one.source == source), None)


def versions() -> dict[str, int]:
    """The version of each source's parser; under '' that of what no format knows."""
    return {one.source: one.version for one in FORMATS} | {"": VERSION}


def recognise(records: Iterable[dict[str, Any]]) -> Format | None:
    """The format of the first of these records that any format knows."""
    for record in records:
        for one in FORMATS:
            if one.recognises(record):
                return one
    return None


def records_of_document(value: object) -> list[dict[str, Any]] | None:
    """The records of a file that is one JSON value, None where it is none that is known: an export
    of Claude Code on the web, a session of the first Codex."""
    if not isinstance(value, dict):
        return None
    lines, head = value.get("loglines"), []
    if isinstance(value.get("session"), dict) and isinstance(value.get("items"), list):
        lines, head = value["items"], [value["session"]]
    if not isinstance(lines, list):
        return None
    return [record for record in [*head, *lines] if isinstance(record, dict)]
