"""A compressed rollout read as if it were plain: bytes at an offset, nothing unpacked to disk.

Codex compresses a session that nobody has touched for a week (`X.jsonl` → `X.jsonl.zst`), and
unpacks it before it goes on.

Owns: reading forward through zstd frames, and starting anew where an earlier byte is wanted. A file
is opened anew for each of its pieces; the one that was read last is kept at hand while there is
more of it, so that the next piece costs no second pass through all that lies before it.
Never: keeps more than a few blocks in memory or more than one file open, writes.
Called by: watcher.disk.
"""

from __future__ import annotations

import errno
import os

import zstandard

SUFFIX = ".zst"
_BITE = 1024  # compressed bytes at a time: zstd makes at most 32 MB of so few, and commonly 10 KB
_HEAD = 64 * 1024  # bytes; the proof of a file begins with its first 4 KiB
_BEHIND = 4 * 1024 * 1024  # bytes kept behind the last one: a piece, and the proof before it


class Packed:
    """An open compressed file. `size` is that of its content, in bytes.

    Raises OSError (EIO) where it is no zstd or ends in the middle of a frame.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        self._frame: zstandard.ZstdDecompressionObj | None = None  # None between two frames
        self._raw = b""  # compressed bytes that were read and not yet unpacked
        self._raw_at = 0
        self._head = b""
        self._kept = bytearray()  # content up to `_at`
        self._at = 0
        self.size = 0
        try:
            self._start()
            while self._advance():
                pass
        except OSError:
            self.close()
            raise
        self.size = self._at

    def read(self, length: int, offset: int) -> bytes:
        """At most `length` bytes of the content from `offset`; fewer at its end."""
        if offset + length <= len(self._head):
            return self._head[offset : offset + length]
        if offset < self._at - len(self._kept):
            self._start()
        parts = []
        while length > 0:
            begin = offset - (self._at - len(self._kept))
            if begin < len(self._kept):
                part = bytes(self._kept[begin : begin + length])
                parts.append(part)
                offset += len(part)
                length -= len(part)
            elif not self._advance():
                break
        return b"".join(parts)

    @property
    def is_read(self) -> bool:
        """Is it read to its end? Then no piece of it is left."""
        return self._at == self.size

    def _start(self) -> None:
        self._frame, self._raw, self._raw_at = None, b"", 0
        self._at = 0
        self._kept.clear()

    def _advance(self) -> bool:
        """Unpack a little more; False at the end."""
        block = b""
        while not block:
            if not self._raw:
                self._raw = os.pread(self._descriptor, _BITE, self._raw_at)
                self._raw_at += len(self._raw)
            if not self._raw and self._frame is None:
                return False
            if not self._raw:
                raise OSError(errno.EIO, "not a whole zstd file: it ends within a frame")
            block = self._unpack()
        if self._at < _HEAD:
            self._head = self._head[: self._at] + block[: _HEAD - self._at]
        self._at += len(block)
        if len(self._kept) > _BEHIND:
            del self._kept[: len(self._kept) - _BEHIND // 2]
        self._kept += block
        return True

    def _unpack(self) -> bytes:
        if self._frame is None:
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            block = self._frame.decompress(self._raw)
        except zstandard.ZstdError as error:
            raise OSError(errno.EIO, f"not a whole zstd file ({error})") from error
        self._raw = self._frame.unused_data
        if self._frame.eof:
            self._frame = None
        return block

    def close(self) -> None:
        os.close(self._descriptor)


class Unpacking:
    """The compressed files that are open, by descriptor, and the last one that was."""

    def __init__(self) -> None:
        self._open: dict[int, Packed] = {}
        self._last: tuple[tuple[int, ...], Packed] | None = None

    def open(self, descriptor: int) -> None:
        """Raises OSError where it is no whole zstd file."""
        last, self._last = self._last, None
        if last is not None and last[0] == _identity(descriptor):
            self._open[descriptor] = last[1]
            return
        if last is not None:
            last[1].close()
        self._open[descriptor] = Packed(descriptor)

    def get(self, descriptor: int) -> Packed | None:
        return self._open.get(descriptor)

    def close(self, descriptor: int) -> None:
        """Before the descriptor itself is closed."""
        packed = self._open.pop(descriptor, None)
        if packed is None:
            return
        if self._last is not None:
            self._last[1].close()
            self._last = None
        if packed.is_read:
            packed.close()
        else:
            self._last = (_identity(descriptor), packed)


def _identity(descriptor: int) -> tuple[int, ...]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
