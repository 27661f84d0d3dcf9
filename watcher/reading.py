"""Lines folded into messages: what one look at a file is about to file.

Owns: the run of a format's fold over pieces of a file, and what a cold file holds beyond its last
newline.
Never: touches the palace or the disk.
Called by: watcher.capture.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from mempalace.config import Config
from mempalace.model import Checkpoint, Message
from mempalace.transcripts.base import Fold, Format, TurnsOf
from mempalace.transcripts.jsonl import read_line
from watcher.tail import Piece


@dataclass(slots=True)
class Reading:
    """A file being read from its checkpoint on. Begin with `Reading.at`."""

    checkpoint: Checkpoint
    expected: tuple[int, int] | None  # where the stored checkpoint must still be; None: nowhere
    form: Format
    fold: Fold
    turns_of: TurnsOf
    messages: list[Message] = field(default_factory=list)
    cold_messages: list[Message] = field(default_factory=list)
    bad: list[tuple[int, int, str]] = field(default_factory=list)  # (offset, length, reason)
    tallies: Counter[str] = field(default_factory=Counter)
    records: int = 0

    @classmethod
    def at(
        cls,
        checkpoint: Checkpoint,
        form: Format,
        expected: tuple[int, int] | None,
        turns_of: TurnsOf,
    ) -> Reading:
        state = json.loads(checkpoint.state).get("fold", {})
        fold = form.fold(PurePath(checkpoint.path), state, dict(checkpoint.waiting), turns_of)
        return cls(checkpoint, expected, form, fold, turns_of)

    def add(self, piece: Piece, config: Config) -> None:
        """Fold the lines of a piece; of a file that is left out as a whole they are counted."""
        for number, (at, line) in enumerate(piece.lines):
            rule = self.fold.left_out_as
            if rule and self.fold.folder is not None and not config.keeps(rule):
                self.tallies[rule] += len(piece.lines) - number
                break
            if skimmed := self.form.skims(line):
                self.tallies[skimmed] += 1
                continue
            parsed = read_line(line, at)
            self.bad += [(bad.offset, bad.length, bad.reason) for bad in parsed.bad]
            if parsed.strays:
                self.tallies["not an object"] += parsed.strays
            for offset, record in parsed.objects:
                self.records += 1
                self._step(record, offset, config)
        self.bad += [(at, length, "line too long") for at, length in piece.too_long]

    def add_document(self, records: list[dict[str, Any]], config: Config) -> None:
        """Fold a file that is one JSON value: its records have their number for an offset."""
        for number, record in enumerate(records):
            self._step(record, number, config)
        self.records = len(records)
        self.cold_messages = self.fold.finish()

    def _step(self, record: dict[str, Any], offset: int, config: Config) -> None:
        """Fold one record. A text that was typed in an excluded folder must not wait: it would be
        told of when the session is elsewhere (R10)."""
        fold = self.fold
        before = set(fold.waiting) if fold.folder is not None else set()
        self.messages += fold.step(record, offset)
        if config.exclude and config.excludes(cwd=fold.cwd, path=None, session=None):
            for digest in fold.waiting.keys() - before:
                del fold.waiting[digest]

    def finish(self, piece: Piece, config: Config) -> None:
        """Add what a cold file holds beyond its last newline, and what nothing has ended.

        The state stays before it: when the file grows after all, the same records are met again
        and known (docs/design.md).
        """
        state = json.loads(json.dumps(self.fold.state()))
        path = PurePath(self.checkpoint.path)
        beyond = self.form.fold(path, state, dict(self.fold.waiting), self.turns_of)
        if piece.tail:
            parsed = read_line(piece.tail, piece.end)
            if not parsed.bad:
                for offset, record in parsed.objects:
                    self.cold_messages += beyond.step(record, offset)
        if not config.excludes(cwd=beyond.cwd, path=None, session=None):
            self.cold_messages += beyond.finish()
