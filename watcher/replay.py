"""A transcript read once more from its start, as messages, with nothing stored.

Owns: running a format's fold over a whole file for whoever wants to compare (`doctor --deep`).
Never: writes, moves a checkpoint, or holds more than one piece of a file.
Called by: service.proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import orjson

from mempalace.config import Config
from mempalace.model import Checkpoint, Fingerprint, Message
from mempalace.transcripts import registry
from mempalace.transcripts.base import Format
from mempalace.transcripts.jsonl import BOM, read_line
from watcher.disk import Disk, Look
from watcher.lineage import Lineage
from watcher.reading import Reading
from watcher.tail import Piece, read_piece

_PIECE = 1024 * 1024  # bytes
_LARGEST_DOCUMENT = 256 * 1024 * 1024  # a file that is one JSON value is read as a whole


@dataclass(frozen=True, slots=True)
class Heard:
    """What one piece of a file says, and the folder by which exclusions go."""

    messages: list[Message]
    folder: str | None


class Replay:
    """Reads any number of files, one after the other."""

    def __init__(self, config: Config, disk: Disk) -> None:
        self._config = config
        self._disk = disk
        self._lineage = Lineage(disk)

    def read(self, path: str, *, cold: bool) -> Iterator[Heard]:
        """The messages of a file piece by piece; nothing where it is no transcript. `cold` says
        that it has stopped growing. Raises OSError where it cannot be read."""
        self._disk.look(path)  # before it is opened: a FIFO stays closed
        descriptor = self._disk.open(path)
        try:
            yield from self._read_open(path, descriptor, self._disk.look_at(descriptor), cold=cold)
        finally:
            self._disk.close(descriptor)

    def _read_open(self, path: str, descriptor: int, look: Look, *, cold: bool) -> Iterator[Heard]:
        piece = read_piece(self._disk, descriptor, 0, 0, limit=_PIECE)
        form = _form_of(piece)
        if form is None:
            yield from self._read_document(path, descriptor, look)
            return
        reading = self._begin(path, form)
        while True:
            reading.add(piece, self._config)
            if piece.at_end and cold:
                reading.finish(piece, self._config)
            yield Heard([*reading.messages, *reading.cold_messages], reading.fold.folder)
            reading.messages, reading.cold_messages = [], []
            reading.bad.clear()
            if piece.at_end:
                return
            piece = read_piece(self._disk, descriptor, piece.end, piece.crc, limit=_PIECE)

    def _read_document(self, path: str, descriptor: int, look: Look) -> Iterator[Heard]:
        if PurePath(path).suffix != ".json" or look.size > _LARGEST_DOCUMENT:
            return
        try:
            value = orjson.loads(self._disk.read(descriptor, look.size, 0).removeprefix(BOM))
        except orjson.JSONDecodeError:
            return
        records = registry.records_of_document(value) or []
        form = registry.recognise(records)
        if form is not None:
            reading = self._begin(path, form)
            reading.add_document(records, self._config)
            yield Heard([*reading.messages, *reading.cold_messages], reading.fold.folder)

    def _begin(self, path: str, form: Format) -> Reading:
        nowhere = Checkpoint(
            0, path, form.source, 0, 0, 0, 0, 0, 0, Fingerprint(0, 0), "{}", form.version, ""
        )
        return Reading.at(nowhere, form, None, self._lineage.near(path))


def _form_of(piece: Piece) -> Format | None:
    lines = piece.lines[: registry.RECORDS_LOOKED_AT]
    if piece.tail and len(lines) < registry.RECORDS_LOOKED_AT:
        lines = [*lines, (piece.end, piece.tail)]
    return registry.recognise(
        record for at, line in lines for _, record in read_line(line, at).objects
    )
