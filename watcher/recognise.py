"""What is this file? Told by its first records, or by its whole where it is one JSON value.

Owns: how much of a file is read for that.
Never: goes by a name alone.
Called by: watcher.capture, once for each new file.
"""

from __future__ import annotations

from pathlib import PurePath

import orjson

from mempalace.transcripts import registry
from mempalace.transcripts.base import Format
from mempalace.transcripts.jsonl import BOM, read_line
from watcher.disk import Disk, Look
from watcher.tail import read_piece

_HEAD = 1024 * 1024  # bytes
_LARGEST_DOCUMENT = 256 * 1024 * 1024  # a file that is one JSON value is read as a whole


def recognise(disk: Disk, path: str, descriptor: int, look: Look) -> tuple[Format, bool] | None:
    """The format, and whether the file is one JSON value; None where no format knows it."""
    piece = read_piece(disk, descriptor, 0, 0, limit=_HEAD)
    lines = piece.lines[: registry.RECORDS_LOOKED_AT]
    if piece.tail and len(lines) < registry.RECORDS_LOOKED_AT:
        lines = [*lines, (piece.end, piece.tail)]
    records = (record for at, line in lines for _, record in read_line(line, at).objects)
    form = registry.recognise(records)
    if form is not None:
        return form, False
    head = piece.lines[0][1] if piece.lines else piece.tail
    is_one_value = head.removeprefix(BOM).lstrip()[:1] in (b"{", b"[")
    if PurePath(path).suffix == ".json" and is_one_value and look.size <= _LARGEST_DOCUMENT:
        inside = registry.records_of_document(whole(disk, descriptor, look))
        form = registry.recognise(inside or [])
    return (form, True) if form is not None else None


def whole(disk: Disk, descriptor: int, look: Look) -> object:
    """The JSON value of a file; None where it is half written: it is looked at again."""
    try:
        return orjson.loads(disk.read(descriptor, look.size, 0).removeprefix(BOM))
    except orjson.JSONDecodeError:
        return None
