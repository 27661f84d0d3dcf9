"""A fork's parent: is its rollout on disk, and which turns are in it? (R3)

A copied fork begins with its parent's turns. Where the parent is at hand they are left to it; so it
is looked for beside the fork, in sessions/ and in archived_sessions/, compressed or not.

Owns: that search, and the turn ids of a rollout.
Never: decides what is left out (the format's fold does).
Called by: watcher.capture, through the `turns_of` that it hands to a fold.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator

from mempalace.transcripts.base import TurnsOf
from mempalace.transcripts.files import walk
from mempalace.transcripts.jsonl import read_line
from watcher.disk import Disk
from watcher.tail import read_piece

_FOLDERS = ("sessions", "archived_sessions")
_PARENTS_KEPT = 64
_ASK_AGAIN_SECONDS = 10.0  # for a parent that was nowhere, or that grows
_PIECE = 1024 * 1024  # bytes


class Lineage:
    """Answers for all forks of one process; what it found is kept for a short while."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._known: OrderedDict[str, tuple[float, frozenset[str] | None]] = OrderedDict()

    def near(self, path: str) -> TurnsOf:
        """The question "which turns has this session?", asked from the file at `path`."""
        return lambda session: self._turns_of(session, path)

    def _turns_of(self, session: str, path: str) -> frozenset[str] | None:
        asked, turns = self._known.get(session, (float("-inf"), None))
        now = self._disk.monotonic()
        if now - asked > _ASK_AGAIN_SECONDS:
            parent = self._find(session, path)
            turns = None if parent is None else self._read(parent)
            self._known[session] = (now, turns)
            while len(self._known) > _PARENTS_KEPT:
                self._known.popitem(last=False)
        return turns

    def _find(self, session: str, path: str) -> str | None:
        for folder in _places(path):
            for found, _ in walk(folder, lambda _: None):
                if session in os.path.basename(found) and found != path:
                    return found
        return None

    def _read(self, path: str) -> frozenset[str] | None:
        try:
            descriptor = self._disk.open(path)
        except OSError:
            return None
        try:
            return frozenset(self._turn_ids(descriptor))
        except OSError:
            return None  # not to be read: then it is as good as nowhere
        finally:
            self._disk.close(descriptor)

    def _turn_ids(self, descriptor: int) -> Iterator[str]:
        offset = 0
        while True:
            piece = read_piece(self._disk, descriptor, offset, 0, limit=_PIECE)
            for at, line in piece.lines:
                if b'"turn_id"' not in line[:4096]:
                    continue
                for _, record in read_line(line, at).objects:
                    payload = record.get("payload")
                    turn = payload.get("turn_id") if isinstance(payload, dict) else None
                    if isinstance(turn, str):
                        yield turn
            offset = piece.end
            if piece.at_end:
                return


def _places(path: str) -> Iterator[str]:
    """The fork's own folder, then the two folders of the Codex home that it lies in."""
    folder = os.path.dirname(path)
    yield folder
    while os.path.dirname(folder) != folder:
        if os.path.basename(folder) in _FOLDERS:
            home = os.path.dirname(folder)
            yield from (os.path.join(home, name) for name in _FOLDERS)
            return
        folder = os.path.dirname(folder)
