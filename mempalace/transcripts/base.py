"""What every format module is: a fold over the records of one conversation file (R5).

Owns: the contract between a format and the rest, and how times are read.
Never: knows a format.
Called by: the format modules, the registry, filing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Protocol

from mempalace.model import Message

TurnsOf = Callable[[str], "Mapping[str, str] | None"]
"""The turns in the file of a session, each with the session whose it is: a fork's file has its
parent's too. None where no file of it is at hand."""


COPIED = "copied from its parent"
"""The rule that leaves out what a fork has copied from a parent whose file is at hand (R3)."""


def no_relatives(_session: str) -> Mapping[str, str] | None:
    """For a reader that looks at one file alone."""
    return None


class Fold(Protocol):
    """A reader in the middle of a file. Its state is small and holds no text.

    `waiting` holds the texts that must wait, by digest; it is stored beside the state, in a table
    that `forget` and `exclude` reach.
    """

    folder: str | None  # the working folder that the file names first: its project
    cwd: str | None  # the working folder that it named last
    waiting: dict[str, str]

    @property
    def left_out_as(self) -> str:
        """The rule that leaves every record of this file out, '' where none does."""

    def step(self, record: dict[str, Any], offset: int) -> list[Message]:
        """Take one record that begins at byte `offset`; give back the messages it completes."""

    def finish(self) -> list[Message]:
        """What still waits, for a file that is cold. The caller keeps the state from before."""

    def state(self) -> dict[str, Any]:
        """The state as JSON values; `Format.fold` takes it back."""


class Format(Protocol):
    """A format module as the registry knows it."""

    source: str
    version: int

    def fold(
        self,
        path: PurePath,
        state: dict[str, Any],
        waiting: dict[str, str],
        turns_of: TurnsOf = no_relatives,
    ) -> Fold:
        """A reader for `path`: new where `state` is empty, else where it had stopped."""

    def skims(self, line: bytes) -> str:
        """The rule that leaves a line out by its first bytes, '' where it must be parsed: lines of
        megabytes that hold no words of their own."""

    def recognises(self, record: dict[str, Any]) -> bool:
        """Is this a record of mine? Asked of the first records of a file."""


def instant(value: object) -> int | None:
    """A timestamp as microseconds since 1970 UTC, None where it is none.

    ISO 8601 with any offset (none: UTC); numbers are seconds, or milliseconds above 1e11.
    """
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            return None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        return _microseconds(when)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) > 1e14:
            return None  # beyond the year 5000, or no number at all
        seconds = value / 1000 if abs(value) > 1e11 else value
        return int(seconds * 1_000_000) if abs(seconds) <= 1e11 else None
    return None


_LABEL = re.compile(r"[\w.:/@ -]{1,120}")


def label(name: str) -> str:
    """A name out of a transcript as it may be counted and shown: of a tool, a type of record. What
    is no name (a sentence, a tag) is not kept (R6, R10)."""
    return name if _LABEL.fullmatch(name) else "(no name)"


_OWN_COMMAND = re.compile(
    r"""
    "(?:cmd|command)":\s*(?:\[\s*)?"             # the command line of a shell tool
    (?:[^"\\]*(?:&&|;|\|\|)\s*)?               # behind another command
    (?:uvx\ |uv\ run\ |pipx\ run\ |[^\s"\\;&|]*python3?\ (?:-P\ )?-m\ )?
    [^\s"\\;&|]*?\bmempalace(?=[\s"\\])
    """,
    re.VERBOSE,
)


def what_runs(tool: str, given: str) -> str:
    """The tool of a call, or `mempalace` where it runs a command of ours: what that prints is in
    the palace already (R11). `given` is the call's input as JSON."""
    return "mempalace" if "mempalace" in given and _OWN_COMMAND.search(given) else tool


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _microseconds(when: datetime) -> int:
    gap = when - _EPOCH
    return (gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds
