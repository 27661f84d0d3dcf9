"""One utterance, written two or three times: as an event, as an item, as a completed item.

Owns: which record is the mirror of one that was read just now.
Never: keeps a text: digests stand for them (R5).
Called by: mempalace.transcripts.codex.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mempalace.ids import digest

_KEPT = 24  # utterances
_ENDS = 6  # ends of a text by which a shorter form of it is known
_PARAGRAPH = re.compile(r"\r?\n")


class Mirrors:
    """`state` is what `state` gave before: [role, whole, parts, key, carriers] for each."""

    def __init__(self, state: list[list[Any]]) -> None:
        self._open = state

    def state(self) -> list[list[Any]]:
        return self._open

    def find(self, role: str, texts: Sequence[str], carrier: str, written: str = "") -> str:
        """The key of the same words that another kind of record has carried just now, or ''.

        `written` is what stands there, where an envelope was taken off it.
        """
        marks = _marks(role, texts, written)
        free = [one for one in self._open if one[0] == role and carrier not in one[4]]
        same = next((one for one in free if one[1] == marks[0]), None)
        same = same or next((one for one in free if one[1] in marks or marks[0] in one[2]), None)
        if same is None:
            return ""
        same[4].append(carrier)
        return str(same[3])

    def remember(
        self, role: str, texts: Sequence[str], carrier: str, key: str, written: str = ""
    ) -> None:
        whole, *parts = _marks(role, texts, written)
        self._open.append([role, whole, parts, key, [carrier]])
        del self._open[:-_KEPT]

    def forget(self, role: str = "") -> None:
        """Something came between: the same words again are said again."""
        self._open = [mirror for mirror in self._open if role and mirror[0] != role]


def _marks(role: str, texts: Sequence[str], written: str) -> list[str]:
    """The digest of the whole, then of what another carrier may have of a prompt: parts, or more.

    An item may hold blocks or paragraphs in front of what the event tells, and its blocks may be
    joined with a newline or with nothing. Answers are the same in both.
    """
    if role != "human":
        return [_mark("\n".join(texts))]
    marks = [_mark("".join("".join(texts).split()))]
    if len(texts) > 1:
        marks += [_mark("".join(text.split())) for text in texts[-_ENDS:]]
    lines = _PARAGRAPH.split(texts[-1]) if texts else []
    for first in range(len(lines) - 1, max(0, len(lines) - 1 - _ENDS), -1):
        marks.append(_mark("".join("".join(lines[first:]).split())))
    marks.append(_mark("".join(written.split())))
    empty = _mark("")
    return [marks[0], *dict.fromkeys(mark for mark in marks[1:] if mark not in (empty, marks[0]))]


def _mark(text: str) -> str:
    return digest(text)[:16]
