"""One thing that the doctor found.

Owns: its shape: which check, how bad, in words, and the command that mends it.
Never: looks at anything.
Called by: service.doctor, service.installs, mempalace.cli.doctor.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How bad it is."""

    WELL = "well"
    NOTE = "note"  # worth telling; nothing is lost by it
    WRONG = "wrong"  # words may be lost, or others may read them


@dataclass(frozen=True, slots=True)
class Finding:
    """`mend` is a command, '' where nothing is to be done."""

    check: str
    grade: Grade
    what: str
    mend: str = ""


def well(check: str, what: str) -> Finding:
    return Finding(check, Grade.WELL, what)


def note(check: str, what: str, mend: str = "") -> Finding:
    return Finding(check, Grade.NOTE, what, mend)


def wrong(check: str, what: str, mend: str) -> Finding:
    return Finding(check, Grade.WRONG, what, mend)
