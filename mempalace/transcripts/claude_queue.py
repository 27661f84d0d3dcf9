"""Words that a human types while the agent works: one prompt, however many lines carry it.

Claude Code notes such words with `enqueue`, and later with any of `dequeue` and a user line,
`remove` (with or without the words), an attachment, a text beside a tool result, or nothing at
all. Each carrier may be missing, and two honest "go on" must stay two.

Owns: which of these lines are the same words.
Never: holds a text in its state: texts that must wait stand in `waiting`, by digest (R5, R10).
Called by: mempalace.transcripts.claude_code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mempalace.ids import digest
from mempalace.transcripts.claude_text import Words

_ENTRIES_KEPT = 100  # in the state (R5); nobody has that many prompts waiting
_MIRRORS_KEPT = 50

Found = tuple[Words, list[bytes], int | None, int]
"""Words, their keys (first the key of the line that was first), the time, the offset."""


@dataclass(slots=True)
class _Entry:
    """One `enqueue`: by digest, never by text. Noise is queued too and keeps its turn."""

    digest: str  # '' for what no human wrote
    kind: str
    key: str
    at: int | None
    offset: int
    said: bool = False  # given out as a prompt
    run: bool = False  # dequeued: a user line with the same words should follow


@dataclass(slots=True)
class _Mirror:
    """A prompt given out since the last answer, and the kinds of line that carried it so far."""

    digest: str
    key: str
    carriers: list[str]


class Queue:
    """The queue of one session file, as its lines tell of it."""

    def __init__(
        self, entries: list[list[Any]], mirrors: list[list[Any]], waiting: dict[str, str]
    ) -> None:
        self._entries = [_Entry(*entry) for entry in entries]
        self._mirrors = [_Mirror(*mirror) for mirror in mirrors]
        self._waiting = waiting

    def state(self) -> dict[str, Any]:
        entries = [[e.digest, e.kind, e.key, e.at, e.offset, e.said, e.run] for e in self._entries]
        return {
            "queue": entries,
            "mirrors": [[m.digest, m.key, m.carriers] for m in self._mirrors],
        }

    def enqueue(self, words: Words, key: bytes, at: int | None, offset: int) -> None:
        mark = digest(words.text) if words.text else ""
        self._entries.append(_Entry(mark, words.kind, key.hex(), at, offset, said=not mark))
        if mark:
            self._waiting[mark] = words.text
        del self._entries[:-_ENTRIES_KEPT]

    def dequeue(self, words: Words | None) -> None:
        """The first in the queue is run: its words should follow in a user line."""
        entry = self._head(words)
        if entry and entry.said:
            self._drop(entry)
        elif entry:
            entry.run = True

    def remove(
        self, words: Words | None, keys: list[bytes], at: int | None, offset: int
    ) -> Found | None:
        """The words were handed to the running turn; None where they are no human's."""
        entry = self._head(words)
        if entry is None:
            if words is None or not words.text:
                return None
            own, when, place = self.carried(words.text, keys, at, offset, carrier="queue")
            return words, own, when, place
        if not entry.digest:
            self._drop(entry)
            return None
        if not entry.said:
            self._remember(entry.digest, entry.key, "queue")
        found, own, when, place = self._found(entry)
        self._drop(entry)
        return (found, own + keys, when, place) if found.text else None

    def clear(self) -> list[bytes]:
        """The human took everything back; the keys of what may already have been stored."""
        keys = [bytes.fromhex(e.key) for e in self._entries if e.digest and not e.said]
        for entry in list(self._entries):
            self._drop(entry)
        return keys

    def carried(
        self, text: str, keys: list[bytes], at: int | None, offset: int, *, carrier: str
    ) -> tuple[list[bytes], int | None, int]:
        """Keys, time and place for words that a line carries: its own, or those of the prompt
        that it mirrors.

        `carrier` is the kind of line: `user`, `inline`, `attachment` or `queue`. Words that were
        run come first, then a prompt just given out that no line of this kind has carried yet,
        then what still waits in the queue.
        """
        mark = digest(text)
        entry = self._find(mark, run=True) if carrier == "user" else None
        if entry is None:
            for mirror in self._mirrors:
                if mirror.digest == mark and carrier not in mirror.carriers:
                    mirror.carriers.append(carrier)
                    return [bytes.fromhex(mirror.key), *keys], at, offset
            entry = self._find(mark, run=False)
        if entry is None:
            if carrier == "user":
                self._claim_first_run()
            else:
                self._remember(mark, keys[0].hex(), carrier)
            return keys, at, offset
        entry.said = True
        if carrier != "user":
            self._remember(mark, entry.key, carrier)
        if entry.run:
            self._drop(entry)
        return [bytes.fromhex(entry.key), *keys], entry.at, entry.offset

    def answered(self) -> None:
        """A turn is over: what follows is no mirror of what came before."""
        self._mirrors.clear()

    def unclaimed(self) -> list[Found]:
        """Words that were run, but that no line carried before the answer began."""
        run = [entry for entry in self._entries if entry.run]
        found = [self._found(entry) for entry in run if not entry.said]
        for entry in run:
            self._drop(entry)
        return [one for one in found if one[0].text]

    def rest(self) -> list[Found]:
        """Every prompt that nothing has ended yet, for a file that is cold."""
        found = [self._found(e) for e in self._entries if e.digest and not e.said]
        return [one for one in found if one[0].text]

    def _claim_first_run(self) -> None:
        """A prompt of other words right after a `dequeue` is those words, expanded (pastes)."""
        run = next((entry for entry in self._entries if entry.run), None)
        if run:
            self._drop(run)

    def _remember(self, mark: str, key: str, carrier: str) -> None:
        self._mirrors.append(_Mirror(mark, key, [carrier]))
        del self._mirrors[:-_MIRRORS_KEPT]

    def _found(self, entry: _Entry) -> Found:
        words = Words(self._waiting.get(entry.digest, ""), entry.kind)
        return words, [bytes.fromhex(entry.key)], entry.at, entry.offset

    def _head(self, words: Words | None) -> _Entry | None:
        """The entry that holds these words; the first one where the line does not say which."""
        waiting = [entry for entry in self._entries if not entry.run]
        if words is None:
            return waiting[0] if waiting else None
        mark = digest(words.text) if words.text else ""
        return next((entry for entry in waiting if entry.digest == mark), None)

    def _find(self, mark: str, *, run: bool) -> _Entry | None:
        for entry in self._entries:
            if entry.digest == mark and not entry.said and entry.run == run:
                return entry
        return None

    def _drop(self, entry: _Entry) -> None:
        self._entries.remove(entry)
        if all(other.digest != entry.digest for other in self._entries):
            self._waiting.pop(entry.digest, None)
