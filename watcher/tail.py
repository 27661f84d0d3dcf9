"""Complete lines from a byte offset, and the proof that it is still the same file.

Owns: the rule that a checkpoint rests after a newline (R5), how a file that was truncated,
replaced or rewritten is told from one that has grown, and bounded reading (R8).
Never: parses a line, touches the palace, writes.
Called by: watcher.capture.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from enum import Enum

from mempalace.model import Checkpoint, Fingerprint
from watcher.disk import Disk, Look

BLOCK = 256 * 1024  # bytes a read
LONGEST_LINE = (
    64 * 1024 * 1024
)  # lines of 7 MB are common, of 40 MB seen; a longer one is passed over
PREFIX = 4096  # 7 µs to hash
EDGE = 1024  # the bytes before the offset; with the prefix they tell a rewrite from growth


class Plan(Enum):
    """What a look at a file says about its checkpoint."""

    NOTHING = "nothing new"
    CONTINUE = "it has grown"
    REWRITTEN = "another content stands there: a new generation, from the start"


@dataclass(slots=True)
class Piece:
    """Whole lines from one offset on; `end` is just after the last newline that was read."""

    lines: list[tuple[int, bytes]] = field(default_factory=list)
    end: int = 0
    too_long: list[tuple[int, int]] = field(default_factory=list)  # (offset, length)
    tail: bytes = b""  # what follows the last newline, where the file ends
    at_end: bool = False
    crc: int = 0  # CRC-32 of everything before `end`


def plan(disk: Disk, descriptor: int, look: Look, checkpoint: Checkpoint) -> Plan:
    """Continue only where every proof holds; any doubt is a new generation, which R3 makes
    harmless. A device and inode prove nothing by themselves: ext4 gives a deleted file's inode to
    the next one."""
    old = checkpoint.fingerprint
    if look.size < checkpoint.offset or (look.device, look.inode) != (old.device, old.inode):
        if not _same_content(disk, descriptor, look, checkpoint):
            return Plan.REWRITTEN
    elif not _same_edges(disk, descriptor, checkpoint):
        return Plan.REWRITTEN
    seen = checkpoint.offset + checkpoint.tail
    if look.size != seen:
        return Plan.CONTINUE
    touched = look.mtime_ns != checkpoint.mtime_ns
    if touched and not _same_content(disk, descriptor, look, checkpoint):
        return Plan.REWRITTEN
    return Plan.NOTHING


def _same_edges(disk: Disk, descriptor: int, checkpoint: Checkpoint) -> bool:
    old = checkpoint.fingerprint
    if _md5(disk.read(descriptor, old.prefix_length, 0)) != old.prefix and old.prefix_length:
        return False
    return not checkpoint.offset or edge_of(disk, descriptor, checkpoint.offset) == old.edge


def _same_content(disk: Disk, descriptor: int, look: Look, checkpoint: Checkpoint) -> bool:
    """Byte for byte what was read before? For files that were touched or copied, not grown."""
    if look.size < checkpoint.offset:
        return False
    crc = crc_of(disk, descriptor, checkpoint.offset)
    return crc == checkpoint.fingerprint.crc and _same_edges(disk, descriptor, checkpoint)


def crc_of(disk: Disk, descriptor: int, length: int) -> int:
    """CRC-32 of the first `length` bytes, or of all where there are fewer."""
    crc, at = 0, 0
    while at < length:
        block = disk.read(descriptor, min(BLOCK, length - at), at)
        if not block:
            break
        crc = zlib.crc32(block, crc)
        at += len(block)
    return crc


def read_piece(disk: Disk, descriptor: int, offset: int, crc: int, *, limit: int) -> Piece:
    """Whole lines of about `limit` bytes from `offset` on, at least one where there is one."""
    piece = Piece(end=offset, crc=crc)
    rest = bytearray()
    at = offset
    while at - offset < limit or (not piece.lines and not piece.too_long):
        block = disk.read(descriptor, BLOCK, at)
        if not block:
            piece.at_end = True
            break
        at += len(block)
        if b"\n" not in block:
            rest += block
            if len(rest) > LONGEST_LINE and not _pass_over(disk, descriptor, piece, rest, at):
                piece.at_end = True
                return piece
            if piece.too_long and not rest:
                return piece
            continue
        rest += block
        _cut(piece, rest)
    piece.tail = bytes(rest) if piece.at_end else b""
    return piece


def _cut(piece: Piece, rest: bytearray) -> None:
    """Move the whole lines of `rest` into the piece, with one copy: a line may have 60 MB."""
    begin, last = 0, rest.rfind(b"\n") + 1
    with memoryview(rest) as view:
        piece.crc = zlib.crc32(view[:last], piece.crc)
        while begin < last:
            end = rest.find(b"\n", begin, last)
            if end > begin:
                piece.lines.append((piece.end, bytes(view[begin:end])))
            piece.end += end + 1 - begin
            begin = end + 1
    del rest[:last]


def _pass_over(disk: Disk, descriptor: int, piece: Piece, rest: bytearray, at: int) -> bool:
    """Read past a line that is too long to keep; False where it does not end yet."""
    begin = at - len(rest)
    crc = zlib.crc32(rest, piece.crc)
    while True:
        block = disk.read(descriptor, BLOCK, at)
        if not block:
            rest.clear()
            return False
        newline = block.find(b"\n")
        part = block if newline < 0 else block[: newline + 1]
        crc = zlib.crc32(part, crc)
        at += len(part)
        if newline >= 0:
            piece.too_long.append((begin, at - begin - 1))
            piece.end, piece.crc = at, crc
            rest.clear()
            return True


def fingerprint(
    disk: Disk, descriptor: int, look: Look, offset: int, crc: int, old: Fingerprint | None
) -> Fingerprint:
    """The proof for a checkpoint at `offset`. The prefix grows with the file up to 4 KiB."""
    length = min(PREFIX, offset)
    if old is not None and old.prefix_length == length:
        prefix = old.prefix
    else:
        prefix = _md5(disk.read(descriptor, length, 0))
    edge = edge_of(disk, descriptor, offset)
    return Fingerprint(look.device, look.inode, length, prefix, edge, crc)


def edge_of(disk: Disk, descriptor: int, offset: int) -> bytes:
    length = min(EDGE, offset)
    return _md5(disk.read(descriptor, length, offset - length))


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
