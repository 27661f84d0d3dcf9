"""A fork's parent: is its rollout on disk, which turns are in it, and whose are they? (R3)

A copied fork begins with its parent's turns. Where the parent is at hand they are left to it; so it
is looked for beside the fork, in sessions/ and in archived_sessions/, compressed or not. A parent
may be a fork itself: its file is followed as its own reader follows it.

Owns: that search, and what a rollout's turns are known by.
Never: decides what is left out (the format's fold does); keeps a text.
Called by: watcher.capture, through the `turns_of` that it hands to a fold; watcher.debts.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from mempalace.transcripts.base import TurnsOf, instant
from mempalace.transcripts.codex_names import session_in_name, wordless_line
from mempalace.transcripts.codex_turns import Turns
from mempalace.transcripts.jsonl import read_line
from watcher.disk import Disk
from watcher.packed import SUFFIX
from watcher.tail import read_piece

_FOLDERS = ("sessions", "archived_sessions")
_PARENTS_KEPT = 16
_LOOK_AGAIN_SECONDS = 10.0  # for a parent that was nowhere, or that grows
_PIECE = 1024 * 1024  # bytes
_HEAD = 4096  # bytes of a line that tell whether it is looked into
_TELLS = re.compile(
    rb'"turn_id"|"user_message"|"UserMessage"|"role"\s*:\s*"user"|"session_meta"|\A\{"id"'
)
_STAMP = re.compile(rb'\{"timestamp"\s*:\s*"([^"\\]{1,40})"')


@dataclass(slots=True)
class _Rollout:
    """What was read of one file, and how far."""

    place: Turns
    key: tuple[int, int, bool]  # device, inode, compressed
    read_to: int = 0
    seen: tuple[int, int] = (-1, 0)  # its size and time of change
    turns: dict[str, str] = field(default_factory=dict)  # and whose they are


@dataclass(slots=True)
class _Parent:
    """What is known of one session, and when that was."""

    looked_at: float = float("-inf")
    rollouts: dict[str, _Rollout] = field(default_factory=dict)  # by path
    turns: Mapping[str, str] | None = None


class Lineage:
    """Answers for all forks of one process. A parent is read once, and on where it has grown."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._known: OrderedDict[tuple[str, str], _Parent] = OrderedDict()

    def near(self, path: str) -> TurnsOf:
        """The question "which turns has this session?", asked from the file at `path`."""
        return lambda session: self._turns_of(session, path)

    def _turns_of(self, session: str, path: str) -> Mapping[str, str] | None:
        place = (session, _places(path)[0])
        parent = self._known.setdefault(place, _Parent())
        self._known.move_to_end(place)
        while len(self._known) > _PARENTS_KEPT:
            self._known.popitem(last=False)
        if self._disk.monotonic() - parent.looked_at > _LOOK_AGAIN_SECONDS:
            parent.looked_at = self._disk.monotonic()  # whoever asks meanwhile is its own parent
            self._look(parent, session, path)
            parent.looked_at = self._disk.monotonic()  # after reading, which may take its time
        return parent.turns

    def _look(self, parent: _Parent, session: str, path: str) -> None:
        before = {found: rollout.read_to for found, rollout in parent.rollouts.items()}
        read = {}
        for found in relatives(self._disk, session, path):
            rollout = self._read(found, parent.rollouts.get(found))
            if rollout is not None:
                read[found] = rollout
        parent.rollouts = read
        if before != {found: rollout.read_to for found, rollout in read.items()}:
            parent.turns = None
            for rollout in read.values():
                parent.turns = {**rollout.turns, **(parent.turns or {})}

    def _read(self, path: str, rollout: _Rollout | None) -> _Rollout | None:
        """What the file has, read on from where it was read to; None where it cannot be read: it
        is as good as nowhere."""
        try:
            seen = self._disk.look(path)
            key = (seen.device, seen.inode, path.endswith(SUFFIX))
            if rollout and rollout.key == key and rollout.seen == (seen.size, seen.mtime_ns):
                return rollout
            if not rollout or rollout.key != key or rollout.seen[0] >= seen.size or key[2]:
                session = session_in_name(PurePath(path))
                rollout = _Rollout(Turns(session, {}, self.near(path)), key)
            descriptor = self._disk.open(path)
        except OSError:
            return None
        try:
            self._read_on(descriptor, rollout)
        except OSError:
            return None
        finally:
            self._disk.close(descriptor)
        rollout.seen = (seen.size, seen.mtime_ns)
        return rollout

    def _read_on(self, descriptor: int, rollout: _Rollout) -> None:
        while True:
            piece = read_piece(self._disk, descriptor, rollout.read_to, 0, limit=_PIECE)
            for at, line in piece.lines:
                _follow(line, at, rollout)
            rollout.read_to = piece.end
            if piece.at_end:
                return


def _follow(line: bytes, at: int, rollout: _Rollout) -> None:
    """Most lines tell nothing but the time."""
    if wordless_line(line):
        return
    if _TELLS.search(line, 0, _HEAD):
        for _, record in read_line(line, at).objects:
            for name in rollout.place.follow(record):
                rollout.turns[name] = rollout.place.teller
    elif stamp := _STAMP.match(line):
        rollout.place.tick(instant(stamp.group(1).decode("ascii", "replace")))


def relatives(disk: Disk, session: str, path: str) -> list[str]:
    """Every file of that session in the Codex home of `path`."""
    found: dict[str, None] = {}
    for folder in _places(path):
        for one, _ in disk.walk(folder, lambda _: None):
            if session in os.path.basename(one) and not _is_same(one, path):
                found[one] = None
    return list(found)


def _is_same(one: str, other: str) -> bool:
    """The same rollout, compressed or not?"""
    return one.removesuffix(SUFFIX) == other.removesuffix(SUFFIX)


def _places(path: str) -> list[str]:
    """The two folders of the Codex home that the fork lies in; outside of one its own folder."""
    own = folder = os.path.dirname(path)
    while os.path.dirname(folder) != folder:
        if os.path.basename(folder) in _FOLDERS:
            home = os.path.dirname(folder)
            return [os.path.join(home, name) for name in _FOLDERS]
        folder = os.path.dirname(folder)
    return [own]
