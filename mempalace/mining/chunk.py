"""A stream of text becomes windows of at most 800 characters, 100 of them overlapping.

Owns: where a window ends. It is decided from the front, by the window's own text alone, so that a
stream that grows changes its last window only, and windows joined without their overlaps give the
stream back character for character (R2).
Never: trims, folds or repairs anything.
Called by: filing.
"""

from __future__ import annotations

WINDOW = 800  # code points, docs/design.md
OVERLAP = 100
_LEAST = 600  # a window is cut here at the earliest, to end at a natural break
_BREAKS = ("\n\n", "\n", " ")


def windows(text: str, start: int = 0) -> list[tuple[int, str]]:
    """`(start, window)` of each window, where `text` begins at code point `start` of its stream.

    The first window begins with `text`; each further one begins 100 code points before the end of
    the one before. An empty text has no windows.
    """
    result = []
    begin, length = 0, len(text)
    while length - begin > WINDOW:
        end = _cut(text, begin)
        result.append((start + begin, text[begin:end]))
        begin = end - OVERLAP
    if length > begin:
        result.append((start + begin, text[begin:]))
    return result


def _cut(text: str, begin: int) -> int:
    for separator in _BREAKS:
        found = text.rfind(separator, begin + _LEAST, begin + WINDOW)
        if found >= 0:
            return found + len(separator)
    return begin + WINDOW


def is_full(window: str) -> bool:
    """Would more text open another window? Only a full window may be embedded at once."""
    return len(window) >= WINDOW


def join(parts: list[tuple[int, str]]) -> str:
    """The stream that these windows, in order, were cut from."""
    pieces = []
    length = 0
    for start, window in parts:
        fresh = window[length - start :]
        pieces.append(fresh)
        length += len(fresh)
    return "".join(pieces)
