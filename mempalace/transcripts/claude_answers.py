"""One answer over many lines: which block of an assistant line is which record.

Claude Code writes a message of the API as one line a block, with one message id; old and
streaming writers repeat the message so far, with the last text grown; resumes copy it under other
uuids. So a block's key is (source, message id, MD5), and equal blocks of one message are told
apart by their ordinal (R3).

Owns: that ordinal, and which earlier text a longer one replaces.
Never: decides what is kept.
Called by: mempalace.transcripts.claude_code.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from mempalace.ids import digest, record_key
from mempalace.transcripts.claude_blocks import Block

_SOURCE = "claude-code"
# In the state (R5): at most about 30 KiB of its 64.
_MESSAGES_KEPT = 6  # messages that may still grow: parallel tool calls interleave at most a few
_PARTS_KEPT = (
    160  # blocks of all these messages; 14 lines of one message are the most that was seen
)
_RECENT_KEPT = 40  # texts that a later line may supersede


@dataclass(slots=True)
class _Part:
    """One block as it was read: by digest and length, never by text."""

    type: str
    digest: str
    length: int
    key: str


@dataclass(slots=True)
class _Line:
    uuid: str
    parent: str
    parts: list[_Part]


class Answers:
    """The messages of one file that may still grow."""

    def __init__(self, open_messages: list[list[Any]], recent: list[list[str]]) -> None:
        self._open: dict[str, list[_Line]] = {
            native: [
                _Line(uuid, parent, [_Part(*p) for p in parts]) for uuid, parent, parts in rows
            ]
            for native, rows in open_messages
        }
        self._recent = recent

    def state(self) -> dict[str, Any]:
        rows = [
            [
                native,
                [
                    [
                        line.uuid,
                        line.parent,
                        [[p.type, p.digest, p.length, p.key] for p in line.parts],
                    ]
                    for line in lines
                ],
            ]
            for native, lines in self._open.items()
        ]
        return {"answers": rows, "recent": self._recent}

    def keys(
        self, native: str, uuid: str, parent: str | None, blocks: list[Block]
    ) -> list[tuple[bytes, bytes | None]]:
        """For each block its key, and the key of the shorter text that it replaces, if any."""
        lines = self._open.pop(native, [])
        self._open[native] = lines  # the youngest last
        fresh = [_Part(b.type, _digest(b), len(b.text), "") for b in blocks]
        before = _snapshot_of(lines, uuid, parent or "", fresh, blocks)
        if before is not None:
            lines.remove(before)
        counts = Counter((part.type, part.digest) for line in lines for part in line.parts)
        result: list[tuple[bytes, bytes | None]] = []
        for index, (part, block) in enumerate(zip(fresh, blocks, strict=True)):
            old = before.parts[index] if before and index < len(before.parts) else None
            same = (part.type, part.digest)
            key = _key(native, part, 0 if block.id else counts[same])
            counts[same] += 1
            part.key = key.hex()
            grows = old is not None and old.digest != part.digest
            result.append((key, bytes.fromhex(old.key) if old and grows else None))
            if part.type == "text" and uuid:
                self._recent.append([uuid, part.key])
        del self._recent[:-_RECENT_KEPT]
        lines.append(_Line(uuid, parent or "", fresh[:_PARTS_KEPT]))
        self._trim()
        return result

    def _trim(self) -> None:
        """Forget the oldest lines of the oldest messages."""
        kept = sum(len(line.parts) for lines in self._open.values() for line in lines)
        while len(self._open) > _MESSAGES_KEPT or kept > _PARTS_KEPT:
            oldest = next(iter(self._open))
            lines = self._open[oldest]
            if len(self._open) == 1 and len(lines) == 1:
                return
            gone = [lines.pop(0)] if len(self._open) <= _MESSAGES_KEPT else lines
            kept -= sum(len(line.parts) for line in gone)
            if not lines or gone is lines:
                del self._open[oldest]

    def superseded(self, uuids: list[Any]) -> list[bytes]:
        """Keys of the recent texts that a line says it replaces (`supersedesUuids`)."""
        return [bytes.fromhex(key) for uuid, key in self._recent if uuid in uuids]


def _digest(block: Block) -> str:
    """Two calls of one tool with the same input are two calls: their ids say so."""
    return digest(f"{block.text}\0{block.id}" if block.id else block.text)


def _key(native: str, part: _Part, ordinal: int) -> bytes:
    if ordinal:
        return record_key(_SOURCE, native, part.digest, ordinal)
    return record_key(_SOURCE, native, part.digest)


def _snapshot_of(
    lines: list[_Line], uuid: str, parent: str, fresh: list[_Part], blocks: list[Block]
) -> _Line | None:
    """The earlier line of this message that the new line repeats, or repeats and goes on from.

    A line with the same uuid is the same line. Another is a snapshot where it hangs on the same
    parent, or says nothing of its parent and is longer: a block-by-block writer hangs each line on
    the one before.
    """
    for line in reversed(lines):
        if uuid and line.uuid == uuid:
            if _repeats(line, fresh, blocks):
                return line
            continue
        siblings = bool(parent) and parent == line.parent
        unknown = not parent or not line.parent
        longer = len(fresh) > len(line.parts) or sum(p.length for p in fresh) > sum(
            p.length for p in line.parts
        )
        if (siblings or (unknown and longer)) and _repeats(line, fresh, blocks):
            return line
    return None


def _repeats(line: _Line, fresh: list[_Part], blocks: list[Block]) -> bool:
    """Does the new line hold each block of the old one, equal or, for text, grown?"""
    if len(fresh) < len(line.parts):
        return False
    for old, new, block in zip(line.parts, fresh, blocks, strict=False):
        if old.type != new.type:
            return False
        if old.digest == new.digest:
            continue
        grown = new.type in ("text", "thinking") and new.length > old.length
        if not grown or digest(block.text[: old.length]) != old.digest:
            return False
    return True
