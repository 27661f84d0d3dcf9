"""Memories in arbitrary notes: each paragraph that decides, prefers, achieves, fails or feels.

Owns: paragraphs without their code lines, the score of a paragraph, resolution and sentiment.
Never: derives exchanges (derive), opens a file.
Called by: `mine --mode general`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mempalace.mining.markers import INSIGHTS, MARKERS, NEGATIVE, POSITIVE, RESOLVED
from mempalace.mining.reading import prose_lines

LEAST_CONFIDENCE = 0.3  # as MemPalace 3 has it, and the numbers below
_FULL_SCORE = 5
_LONG, _VERY_LONG = 200, 500
_HALLS = {"decision": "facts", "preference": "preferences"}

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_PARTS = {
    "#": r"v?\d+(?:\.\d+)*",
    "…": r"(?:\S+\s+){0,3}?\S+",
    "#x": r"\d+(?:\.\d+)?\s?[x×]",
    "#%": r"\d+\s?%",
}


@dataclass(frozen=True, slots=True)
class Memory:
    """One paragraph worth keeping: `text` as it stands, without its code lines."""

    memory_type: str
    hall: str
    text: str
    confidence: float


def _pattern(phrases: str) -> re.Pattern[str]:
    rows = [
        r"\s+".join(_PARTS.get(word, re.escape(word)) for word in phrase.split())
        for phrase in phrases.split("|")
    ]
    return re.compile(rf"(?<![\w'-])(?:{'|'.join(sorted(rows, key=len, reverse=True))})(?![\w'-])")


_PATTERNS = {kind: _pattern(phrases) for kind, phrases in MARKERS.items()}
_RESOLUTION = _pattern(RESOLVED)
_WORD = re.compile(r"[a-z']+")


def markers(kind: str, text: str) -> set[str]:
    """The markers of a memory type that a text holds."""
    return set(_PATTERNS[kind].findall(_folded(text)))


def extract_memories(text: str) -> list[Memory]:
    """The memories of a text, in its order; a paragraph is one memory at most."""
    found = []
    for paragraph in _paragraphs(text):
        memory = _memory(paragraph)
        if memory:
            found.append(memory)
    return found


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs, without their code lines."""
    lines: list[str] = []
    end = 0
    for begin, stop in prose_lines(text):
        if lines and _BLANK_LINE.search(text, end, begin):
            yield "\n".join(lines)
            lines = []
        lines.append(text[begin:stop])
        end = stop
    if lines:
        yield "\n".join(lines)


def _folded(text: str) -> str:
    return text.lower().replace("’", "'")


def _memory(paragraph: str) -> Memory | None:
    folded = _folded(paragraph)
    held = {kind: set(pattern.findall(folded)) for kind, pattern in _PATTERNS.items()}
    kind = max(held, key=lambda name: len(held[name]))
    score = len(held[kind])
    if not score:
        return None
    if kind == "problem" and _RESOLUTION.search(folded) and _feels(folded) > 0:
        kind = "milestone"
    score += (len(paragraph) > _LONG) + (len(paragraph) > _VERY_LONG)
    confidence = min(1.0, score / _FULL_SCORE)
    if confidence < LEAST_CONFIDENCE:
        return None
    insight = kind == "milestone" and not INSIGHTS.isdisjoint(held["milestone"])
    hall = "discoveries" if insight else _HALLS.get(kind, "events")
    return Memory(kind, hall, paragraph, confidence)


def _feels(folded: str) -> int:
    """Above zero where a paragraph sounds glad, below where it does not."""
    words = _WORD.findall(folded)
    return sum(word in POSITIVE for word in words) - sum(word in NEGATIVE for word in words)
