"""Which format is this file? Decided by its content (FORMATS are many, names lie).

Owns: the list of formats and the files beside transcripts that are none.
Never: reads a file.
Called by: watcher.roots, watcher.capture.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from mempalace.transcripts.base import Format
from mempalace.transcripts.claude_code import ClaudeCode

FORMATS: tuple[Format, ...] = (ClaudeCode(),)
VERSION = sum(one.version for one in FORMATS)  # rises when any format may read more
RECORDS_LOOKED_AT = 200  # a session file may begin with this many lines that are no turn

_NOT_TRANSCRIPTS = frozenset(
    {"journal.jsonl", "history.jsonl", "session_index.jsonl", "sessions-index.json"}
)
_NOT_FOLDERS = frozenset({"tool-results", "memory"})


def may_be_transcript(path: PurePath) -> bool:
    """By its name alone: worth opening?"""
    if path.suffix not in (".jsonl", ".json") or path.name in _NOT_TRANSCRIPTS:
        return False
    return not path.name.endswith(".meta.json")


def may_hold_transcripts(folder_name: str) -> bool:
    """By its name alone: worth looking into?"""
    return folder_name not in _NOT_FOLDERS


def by_source(source: str) -> Format | None:
    return next((one for one in FORMATS if one.source == source), None)


def recognise(records: Iterable[dict[str, Any]]) -> Format | None:
    """The format of the first of these records that any format knows."""
    for record in records:
        for one in FORMATS:
            if one.recognises(record):
                return one
    return None


def records_of_document(value: object) -> list[dict[str, Any]] | None:
    """The records of a file that is one JSON value (the web's export), None where it is none."""
    if isinstance(value, dict) and isinstance(value.get("loglines"), list):
        return [record for record in value["loglines"] if isinstance(record, dict)]
    return None
