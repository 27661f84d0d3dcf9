"""One line of bytes becomes JSON objects, whatever was done to the line.

Owns: the byte rules that every JSONL transcript shares (docs/formats/jsonl.md): a BOM, a carriage
return, NUL padding, bytes that are no UTF-8, lone surrogates, raw control characters, two records
glued on one line, a torn record with a whole one behind it.
Never: splits a file into lines (watcher.tail does), knows what a record means, keeps bad text.
Called by: filing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n\v\f"
_PADDING = " \t\r\n\v\f\0"
_LONGEST_NUMBER = 4_000  # digits; Python itself refuses more than 4,300
NOT_JSON, TOO_DEEP = "not JSON", "nested too deeply"


def _integer(digits: str) -> int | str:
    """A number of thousands of digits is no number that anybody meant: it is kept as its text."""
    return int(digits) if len(digits) <= _LONGEST_NUMBER else digits


# Real lines hold raw control characters in strings.
_DECODER = json.JSONDecoder(strict=False, parse_int=_integer)
# Where a whole record may start behind a torn one.
_NEXT = re.compile(r"[ \t\r\n\v\f\0]*(?:\{|\Z)")
_ATTEMPTS = 10_000  # at such a place in one line; junk may hold millions
_OF_A_SESSION = frozenset({"sessionId", "parentUuid", "payload", "leafUuid"})
_RESYNC = re.compile(r'\{"(?:type|parentUuid|timestamp|uuid|sessionId|isSidechain|message)"\s*:')


@dataclass(frozen=True, slots=True)
class Bad:
    """A stretch of a line that is no record: counted, its text never kept (R6, R10)."""

    offset: int
    length: int
    reason: str


@dataclass(slots=True)
class Line:
    """What one line held: objects with the byte offset at which each begins, and what is bad."""

    objects: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    strays: int = 0  # values that are valid JSON but no objects


def read_line(line: bytes, offset: int) -> Line:
    """Parse one line that begins at byte `offset` of its file. Never raises on bad input."""
    try:
        value = orjson.loads(line)
    except (orjson.JSONDecodeError, RecursionError):
        return _read_leniently(line, offset)
    result = Line()
    if isinstance(value, dict):
        result.objects.append((offset, value))
    else:
        result.strays += 1
    return result


def _read_leniently(line: bytes, offset: int) -> Line:
    body = line[len(BOM) :] if offset == 0 and line.startswith(BOM) else line
    kept = body.strip(_BLANK + b"\0")
    result = Line()
    if not kept:
        if b"\0" in body:
            result.bad.append(Bad(offset, len(line), "NUL padding"))
        return result
    try:
        value = orjson.loads(kept)
    except (orjson.JSONDecodeError, RecursionError):
        _salvage(kept, offset + line.find(kept), result)
        return result
    if isinstance(value, dict):
        result.objects.append((offset, value))
    else:
        result.strays += 1
    return result


def _salvage(kept: bytes, start: int, result: Line) -> None:
    """Take every whole record out of a line that is not one JSON value."""
    text = kept.decode("utf-8", "replace")
    place = _Places(text, kept, start)
    broken: tuple[int, str] | None = None  # where it begins, and why

    def end_broken(end: int) -> None:
        if broken is not None:
            from_ = place.of(broken[0])
            result.bad.append(Bad(from_, end - from_, broken[1]))

    for begin, value, whole in _values(text):
        reason = str(value)
        try:
            clean = _cleaned(value) if whole else None
        except RecursionError:  # deeper than anything that a program writes
            whole, reason = False, TOO_DEEP
        if not whole:
            broken = broken or (begin, reason if reason == TOO_DEEP else NOT_JSON)
            continue
        end_broken(place.of(begin))
        broken = None
        if isinstance(clean, dict):
            result.objects.append((place.of(begin), clean))
        else:
            result.strays += 1
    end_broken(start + len(kept))


class _Places:
    """Characters of a line as bytes of the file; asked for from left to right."""

    def __init__(self, text: str, kept: bytes, start: int) -> None:
        self._text = text
        self._start = start
        self._end = start + len(kept)
        self._known = (0, start)
        self._is_ascii = len(text) == len(kept)

    def of(self, position: int) -> int:
        if self._is_ascii:
            return self._start + position
        before, byte = self._known
        byte += len(self._text[before:position].encode("utf-8", "surrogatepass"))
        self._known = (position, byte)
        return min(byte, self._end)  # a replaced byte became three


def _values(text: str) -> Iterator[tuple[int, Any, bool]]:
    """Each value of `text` with its start; not whole where it is broken or part of a broken one.

    Behind a torn record only a value that reaches the end of the line, or the next `{`, is a
    record: what is followed by a comma or a bracket was nested in the torn one.
    """
    position, length, torn, attempts = 0, len(text), False, 0
    while position < length:
        if text[position] in _PADDING:
            position += 1
            continue
        try:
            value, end = _DECODER.raw_decode(text, position)
        except RecursionError:
            value, end, whole = TOO_DEEP, 0, False
        except ValueError:
            value, end, whole = NOT_JSON, 0, False
        else:
            whole = not torn or _is_record(text, position, end, value)
        yield position, value, whole
        if whole:
            position, torn = end, False
        else:
            torn, attempts = True, attempts + 1
            again = _RESYNC.search(text, position + 1) if attempts < _ATTEMPTS else None
            position = again.start() if again else length


def _is_record(text: str, begin: int, end: int, value: Any) -> bool:
    """Is a value behind a torn record a record of its own, or was it nested in the torn one?

    It may be torn right behind a nested value, or right before one could stand: there only what
    says that it is of a session, as every line does, is taken.
    """
    if _NEXT.match(text, end) is None:
        return False
    before = text[begin - 1] if begin else ""
    could_be_nested = before in (":", ",", "[", " ")
    return not could_be_nested or (isinstance(value, dict) and bool(_OF_A_SESSION & value.keys()))


def _cleaned(value: Any) -> Any:
    """The value with lone surrogates replaced, so that its texts can be stored as UTF-8."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        return value
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return value
