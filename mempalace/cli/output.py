"""How commands print: JSON as bytes, times, and words of a transcript on a terminal.

Owns: that a transcript cannot command the terminal it is shown on, and when output is styled.
Never: knows what is printed.
Called by: the commands of mempalace.cli.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from mempalace.errors import MemPalaceError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# All but newline and tab; with ESC among them a transcript could redraw the screen.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def write(data: bytes) -> None:
    """Bytes to stdout, whatever the locale."""
    with _writable():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def say(line: str = "") -> None:
    """A line of text. Not click.echo: into a pipe that takes escape sequences out of our words."""
    with _writable():
        sys.stdout.write(line + "\n")


def flush() -> None:
    """What was printed must have arrived before a command may say that all went well."""
    with _writable():
        sys.stdout.flush()


@contextmanager
def _writable() -> Iterator[None]:
    """A reader that left early is nobody's error (BrokenPipeError rises); a full disk is one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise MemPalaceError(
            f"cannot write the output: {error.strerror or error}", "make room, or send it elsewhere"
        ) from error


def write_json(value: object) -> None:
    """One line of UTF-8. Half an emoji from the command line becomes an escape."""
    write(json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")


def is_styled() -> bool:
    """May the output be styled? Only a terminal's, and not where the user asks for none."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") != "dumb"
    )


def shown(text: str) -> str:
    """Text as it may be printed: verbatim into a pipe, without control characters on a terminal."""
    return _CONTROL.sub(_picture, text) if sys.stdout.isatty() else text


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def counted(number: int, noun: str) -> str:
    """`1 file`, `2,000 files`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def iso(moment: int | None) -> str | None:
    """Microseconds since 1970 as ISO 8601 UTC; None for no time, or one outside the calendar."""
    if moment is None:
        return None
    try:
        when = _EPOCH + timedelta(microseconds=moment)
    except OverflowError:
        return None
    return when.isoformat().replace("+00:00", "Z")


def minute(moment: int | None) -> str:
    """The same for people: `2026-01-31 14:30 UTC`."""
    full = iso(moment)
    return "no time" if full is None else f"{full[:10]} {full[11:16]} UTC"
