"""Words that a human types while the agent works: one prompt, however many lines carry it.

Claude Code notes such words with `enqueue`, and later with any of `dequeue` and a user line,
`remove` (with or without the words), an attachment, a text beside a tool result, or nothing at
all. Each carrier may be missing, and two honest "go on" must stay two.

Owns: which of these lines are the same words.
Never: holds a text in its state: texts that must wait stand in `waiting`, by digest (R5, R10).
Called by: mempalace.transcripts.claude_code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mempalace.ids import digest
from mempalace.transcripts.claude_text import Words

_ENTRIES_KEPT = 40  # in the state (R5); nobody has that many prompts waiting
_MIRRORS_KEPT = 20
_ENVELOPE = 4  # a line that wraps queued words is at most this many times as long
_PASTED = re.compile(r"\[Pasted text #\d+(?: \+\d+ lines)?\]")

Found = tuple[Words, list[bytes], int | None, int]
"""Words, their keys (first the key of the line that was first), the time, the offset."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What the words of a line are: a prompt's keys, time and place, and the keys of what was
    queued in other words, in case that was stored before these came."""

    keys: list[bytes]
    at: int | None
    offset: int
    kind: str  # how it was queued; '' for what was not
    instead_of: list[bytes]
    before: list[Found]  # prompts that were run and that no line will carry any more


@dataclass(slots=True)
class _Entry:
    """One `enqueue`: by digest, never by text. Noise is queued too and keeps its turn."""

    digest: str  # of the text that waits; '' for what no human wrote
    mark: str  # by which carriers are told: some trim the words
    kind: str
    key: str
    at: int | None
    offset: int
    said: str = ""  # the carrier that gave it out as a prompt
    run: bool = False  # dequeued, or removed and not whole: a line with the words should follow


@dataclass(slots=True)
class _Mirror:
    """A prompt given out since the last answer, and the kinds of line that carried it so far."""

    mark: str
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
        return {
            "queue": [
                [e.digest, e.mark, e.kind, e.key, e.at, e.offset, e.said, e.run]
                for e in self._entries
            ],
            "mirrors": [[m.mark, m.key, m.carriers] for m in self._mirrors],
        }

    # --- what the queue's own lines say -----------------------------------------------------------

    def enqueue(self, words: Words, key: bytes, at: int | None, offset: int) -> list[Found]:
        """One more waits; back come those for which there is no room: they are prompts now."""
        name = digest(words.text) if words.text else ""
        said = "" if name else "nobody"
        self._entries.append(
            _Entry(name, _mark(words.text), words.kind, key.hex(), at, offset, said)
        )
        if name:
            self._waiting[name] = words.text
        crowded_out = []
        while len(self._entries) > _ENTRIES_KEPT:
            entry = next((one for one in self._entries if one.said), self._entries[0])
            if not entry.said:
                crowded_out.append(self._found(entry))
            self._drop(entry)
        return [found for found in crowded_out if found[0].text]

    def dequeue(self, words: Words | None) -> None:
        """The first in the queue is run: its words should follow in a user line."""
        entry = self._head(words)
        if entry and entry.said:
            self._drop(entry)
        elif entry:
            entry.run = True

    def remove(
        self, words: Words | None, keys: list[bytes], at: int | None, offset: int
    ) -> tuple[Found | None, list[bytes]]:
        """The words were handed to the running turn; None where they are no human's, or where a
        line that has them in full should follow. Then the keys of what they stand for."""
        entry = self._head(words, not_said_by="user")
        if entry is None:
            if words is None or not words.text:
                return None, []
            own = self.carried(words.text, keys, at, offset, carrier="queue")
            return (words, own.keys, own.at, own.offset), own.instead_of
        if not entry.digest:
            self._drop(entry)
            return None, []
        if not entry.said and _PASTED.search(self._text_of(entry)):
            entry.run = True
            return None, []
        if not entry.said:
            self._remember(entry.mark, entry.key, "queue")
        found, own_keys, when, place = self._found(entry)
        self._drop(entry)
        return ((found, own_keys + keys, when, place) if found.text else None), []

    def clear(self) -> list[bytes]:
        """The human took everything back; the keys of what may already have been stored."""
        waiting = [entry for entry in self._entries if not entry.run]
        keys = [bytes.fromhex(e.key) for e in waiting if e.digest and not e.said]
        for entry in waiting:
            self._drop(entry)
        return keys

    # --- what other lines carry -------------------------------------------------------------------

    def carried(
        self, text: str, keys: list[bytes], at: int | None, offset: int, *, carrier: str
    ) -> Carried:
        """Keys, time and place for words that a line carries: its own, or those of the prompt
        that it mirrors.

        `carrier` is the kind of line: `user`, `inline`, `attachment` or `queue`. For a user line
        words that were run come first; then a prompt just given out that no line of this kind has
        carried yet, then what still waits.
        """
        mark = _mark(text)
        entry = self._find(mark, run=True) if carrier == "user" else None
        if entry is None:
            for mirror in self._mirrors:
                if mirror.mark == mark and carrier not in mirror.carriers:
                    mirror.carriers.append(carrier)
                    return Carried([bytes.fromhex(mirror.key), *keys], at, offset, "", [], [])
            entry = self._find(mark, run=False) or self._find(mark, run=True)
        if entry is None:
            stood_for = self._stood_for(text, carrier)
            for one in stood_for:
                self._spend(one)
            before = self.unclaimed() if carrier == "user" else []
            if carrier != "user":
                self._remember(mark, keys[0].hex(), carrier)
            instead_of = [bytes.fromhex(one.key) for one in stood_for]
            return Carried(keys, at, offset, "", instead_of, before)
        entry.said = carrier
        if carrier != "user":
            self._remember(mark, entry.key, carrier)
        if entry.run:
            self._drop(entry)
        keys = [bytes.fromhex(entry.key), *keys]
        return Carried(keys, entry.at, entry.offset, entry.kind, [], [])

    def disown(self, text: str, *, wrapped: bool) -> list[bytes]:
        """A line that no human wrote carries `text`: what was queued so is no human's either.

        `wrapped`: the line may say more than what was queued. The keys of what may be stored.
        """
        mark = _mark(text)
        gone = [
            entry
            for entry in self._entries
            if not entry.said
            and (
                entry.mark == mark
                or (wrapped and entry.run and _wraps(text, self._text_of(entry).strip()))
            )
        ]
        for entry in gone:
            self._spend(entry)
        mirrors = [m for m in self._mirrors if m.mark == mark and m.carriers == ["queue"]][:1]
        self._mirrors = [mirror for mirror in self._mirrors if mirror not in mirrors]
        keys = [entry.key for entry in gone] + [mirror.key for mirror in mirrors]
        return [bytes.fromhex(key) for key in keys]

    # --- the ends ---------------------------------------------------------------------------------

    def answered(self) -> None:
        """A turn is over: what follows is no mirror of what came before."""
        self._mirrors.clear()

    def unclaimed(self) -> list[Found]:
        """Words that were run, but that no line carried before another prompt, or the answer.

        A user line that carries them after all, before an answer, is their mirror.
        """
        run = [entry for entry in self._entries if entry.run]
        found = [self._found(entry) for entry in run if not entry.said]
        for entry in run:
            if not entry.said:
                self._remember(entry.mark, entry.key, "queue")
            self._drop(entry)
        return [one for one in found if one[0].text]

    def rest(self) -> list[Found]:
        """Every prompt that nothing has ended yet, for a file that is cold."""
        found = [self._found(e) for e in self._entries if e.digest and not e.said]
        return [one for one in found if one[0].text]

    # --- one entry --------------------------------------------------------------------------------

    def _stood_for(self, text: str, carrier: str) -> list[_Entry]:
        """The entries that these other words are: a paste in full, several prompts in one line."""
        open_ = [entry for entry in self._entries if not entry.said]
        pasted = [entry for entry in open_ if _is_expanded(self._text_of(entry), text)]
        if pasted or carrier != "user":
            return pasted[:1]
        run = [entry for entry in open_ if entry.run]
        held = [entry for entry in run if _holds(text, self._text_of(entry).strip())]
        # A bare command stands for what it says; words that were forgotten meanwhile for these.
        bare = [e for e in run if not self._text_of(e) or _is_bare_command(self._text_of(e))]
        return held or bare[:1]

    def _remember(self, mark: str, key: str, carrier: str) -> None:
        self._mirrors.append(_Mirror(mark, key, [carrier]))
        del self._mirrors[:-_MIRRORS_KEPT]

    def _text_of(self, entry: _Entry) -> str:
        return self._waiting.get(entry.digest, "")

    def _found(self, entry: _Entry) -> Found:
        words = Words(self._text_of(entry), entry.kind)
        return words, [bytes.fromhex(entry.key)], entry.at, entry.offset

    def _head(self, words: Words | None, *, not_said_by: str = "-") -> _Entry | None:
        """The entry that holds these words; the first one where the line does not say which."""
        waiting = [entry for entry in self._entries if not entry.run]
        if words is None:
            return next((entry for entry in waiting if entry.said != not_said_by), None)
        mark = _mark(words.text)
        return next((entry for entry in waiting if entry.mark == mark), None)

    def _find(self, mark: str, *, run: bool) -> _Entry | None:
        for entry in self._entries:
            if entry.mark == mark and not entry.said and entry.run == run:
                return entry
        return None

    def _drop(self, entry: _Entry) -> None:
        self._entries = [other for other in self._entries if other is not entry]
        self._forget_text(entry)

    def _spend(self, entry: _Entry) -> None:
        """Its words are no prompt; but it keeps its turn where a `remove` should follow."""
        if entry.run:
            self._drop(entry)
        else:
            self._forget_text(entry)
            entry.digest, entry.said = "", "nobody"

    def _forget_text(self, entry: _Entry) -> None:
        if all(other.digest != entry.digest for other in self._entries if other is not entry):
            self._waiting.pop(entry.digest, None)


def _mark(text: str) -> str:
    """How words are told from others: without the white space around them."""
    trimmed = text.strip()
    return digest(trimmed) if trimmed else ""


def _holds(text: str, part: str) -> bool:
    """Do whole lines of `text`, or what a tag encloses, say `part`?"""
    at = text.find(part) if part else -1
    while at >= 0:
        end = at + len(part)
        if (at == 0 or text[at - 1] in "\n>") and (end == len(text) or text[end] in "\r\n<"):
            return True
        at = text.find(part, at + 1)
    return False


def _is_bare_command(text: str) -> bool:
    """`/name` alone: the desktop's user line has what the command says in its place."""
    return text.startswith("/") and not any(c.isspace() for c in text.strip())


def _wraps(text: str, part: str) -> bool:
    """Is `text` little more than `part` in an envelope? A word that some tag holds is not."""
    return len(part) * _ENVELOPE >= len(text) and _holds(text, part)


def _is_expanded(short: str, long: str) -> bool:
    """Is `long` the same words as `short`, with every pasted text in full, or run in a shell?"""
    if short and long == f"!{short}":
        return True
    first, *others = _PASTED.split(short)
    if not others or not long.startswith(first):
        return False
    *middle, last = others
    at = len(first)
    for part in middle:
        found = long.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(long) - len(last) >= at and long.endswith(last)
