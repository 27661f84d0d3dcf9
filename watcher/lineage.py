"""A fork's parent: is its rollout on disk, and which turns are in it? (R3)

A copied fork begins with its parent's turns. Where the parent is at hand they are left to it; so it
is looked for beside the fork, in sessions/ and in archived_sessions/, compressed or not.

Owns: that search, and what a rollout's turns are known by.
Never: decides what is left out (the format's fold does); keeps a text.
Called by: watcher.capture, through the `turns_of` that it hands to a fold; watcher.debts.
"""

from __future__ import annotations

import os
import re
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mempalace.transcripts.base import TurnsOf
from mempalace.transcripts.codex_items import is_uuid, prompt_in, turn_in
from mempalace.transcripts.codex_turns import prompt_mark
from mempalace.transcripts.jsonl import read_line
from watcher.disk import Disk
from watcher.packed import SUFFIX
from watcher.tail import read_piece

_FOLDERS = ("sessions", "archived_sessions")
_PARENTS_KEPT = 16
_LOOK_AGAIN_SECONDS = 10.0  # for a parent that was nowhere, or that grows
_PIECE = 1024 * 1024  # bytes
_HEAD = 4096  # bytes of a line that tell whether it is looked into
_TELLS = re.compile(rb'"turn_id"|"user_message"|"UserMessage"|"role"\s*:\s*"user"')


@dataclass(slots=True)
class _Rollout:
    """What was read of one file, and how far."""

    key: tuple[int, int, bool] = (0, 0, False)  # device, inode, compressed
    read_to: int = 0
    seen: tuple[int, int] = (-1, 0)  # its size and time of change
    turns: set[str] = field(default_factory=set)
    prompts: Counter[str] = field(default_factory=Counter)
    has_ids: bool = False  # a turn with an id of its own was seen: prompts tell nothing from here


@dataclass(slots=True)
class _Parent:
    """What is known of one session, and when that was."""

    looked_at: float = float("-inf")
    rollouts: dict[str, _Rollout] = field(default_factory=dict)  # by path
    turns: frozenset[str] | None = None


class Lineage:
    """Answers for all forks of one process. A parent is read once, and on where it has grown."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._known: OrderedDict[tuple[str, str], _Parent] = OrderedDict()

    def near(self, path: str) -> TurnsOf:
        """The question "which turns has this session?", asked from the file at `path`."""
        return lambda session: self._turns_of(session, path)

    def _turns_of(self, session: str, path: str) -> frozenset[str] | None:
        place = (session, _places(path)[0])
        parent = self._known.setdefault(place, _Parent())
        self._known.move_to_end(place)
        while len(self._known) > _PARENTS_KEPT:
            self._known.popitem(last=False)
        if self._disk.monotonic() - parent.looked_at > _LOOK_AGAIN_SECONDS:
            self._look(parent, session, path)
            parent.looked_at = self._disk.monotonic()  # after reading, which may take its time
        return parent.turns

    def _look(self, parent: _Parent, session: str, path: str) -> None:
        before = {found: rollout.read_to for found, rollout in parent.rollouts.items()}
        read = {}
        for found in relatives(self._disk, session, path):
            rollout = self._read(found, parent.rollouts.get(found, _Rollout()))
            if rollout is not None:
                read[found] = rollout
        parent.rollouts = read
        if before != {found: rollout.read_to for found, rollout in read.items()}:
            parent.turns = frozenset().union(*(r.turns for r in read.values())) if read else None

    def _read(self, path: str, rollout: _Rollout) -> _Rollout | None:
        """What the file has, read on from where it was read to; None where it cannot be read: it
        is as good as nowhere."""
        try:
            seen = self._disk.look(path)
            key = (seen.device, seen.inode, path.endswith(SUFFIX))
            if rollout.key == key and rollout.seen == (seen.size, seen.mtime_ns):
                return rollout
            if rollout.key != key or rollout.seen[0] >= seen.size or key[2]:
                rollout = _Rollout(key)
            descriptor = self._disk.open(path)
        except OSError:
            return None
        try:
            for record in self._records(descriptor, rollout):
                _add(record, rollout)
        except OSError:
            return None
        finally:
            self._disk.close(descriptor)
        rollout.seen = (seen.size, seen.mtime_ns)
        return rollout

    def _records(self, descriptor: int, rollout: _Rollout) -> Iterator[dict[str, Any]]:
        """The records that tell of turns; `read_to` follows them."""
        while True:
            piece = read_piece(self._disk, descriptor, rollout.read_to, 0, limit=_PIECE)
            for at, line in piece.lines:
                if _TELLS.search(line, 0, _HEAD):
                    for _, record in read_line(line, at).objects:
                        yield record
            rollout.read_to = piece.end
            if piece.at_end:
                return


def relatives(disk: Disk, session: str, path: str) -> list[str]:
    """Every file of that session in the Codex home of `path`, but those compressed whose plain
    twin is there."""
    found: dict[str, None] = {}
    for folder in _places(path):
        for one, _ in disk.walk(folder, lambda _: None):
            if session in os.path.basename(one) and not _is_same(one, path):
                found[one] = None
    return [one for one in found if one.removesuffix(SUFFIX) == one or one[:-4] not in found]


def _add(record: dict[str, Any], rollout: _Rollout) -> None:
    turn = turn_in(record)
    if turn:
        rollout.turns.add(turn)
        rollout.has_ids = rollout.has_ids or is_uuid(turn)
    prompt = None if rollout.has_ids else prompt_in(record)
    if prompt:
        carrier, mark = prompt
        rollout.turns.add(prompt_mark(rollout.prompts[carrier], carrier, mark))
        rollout.prompts[carrier] += 1


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
