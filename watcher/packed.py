"""A compressed rollout read as if it were plain: bytes at an offset, nothing unpacked to disk.

Codex compresses a session that nobody has touched for a week (`X.jsonl` → `X.jsonl.zst`), and
unpacks it before it goes on.

Owns: reading forward through zstd frames, and starting anew where an earlier byte is wanted.
Never: keeps more than one block in memory, writes.
Called by: watcher.disk.
"""

from __future__ import annotations

import errno
import os
from typing import BinaryIO

import zstandard

SUFFIX = ".zst"
_BLOCK = 256 * 1024  # bytes


class Packed:
    """An open compressed file. `size` is that of its content, in bytes.

    Raises OSError (EIO) where it is no zstd or ends in the middle of a frame.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._stream: BinaryIO | None = None
        self._at = 0
        self._block = b""
        self.size = 0
        while block := self.read(_BLOCK, self.size):
            self.size += len(block)

    def read(self, length: int, offset: int) -> bytes:
        """At most `length` bytes of the content from `offset`; fewer at its end."""
        if self._stream is None or offset < self._at - len(self._block):
            self._start()
        parts = []
        while length > 0:
            begin = offset - (self._at - len(self._block))
            if begin < len(self._block):
                part = self._block[begin : begin + length]
                parts.append(part)
                offset += len(part)
                length -= len(part)
            elif not self._advance():
                break
        return b"".join(parts)

    def _start(self) -> None:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        raw = os.fdopen(os.dup(self._descriptor), "rb")
        self._stream = zstandard.ZstdDecompressor().stream_reader(
            raw, read_across_frames=True, closefd=True
        )
        self._at, self._block = 0, b""

    def _advance(self) -> bool:
        assert self._stream is not None  # noqa: S101 - read() starts it
        try:
            block = self._stream.read(_BLOCK)
        except zstandard.ZstdError as error:
            raise OSError(errno.EIO, f"not a whole zstd file ({error})") from error
        self._at += len(block)
        self._block = block or self._block
        return bool(block)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
