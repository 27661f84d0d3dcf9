"""What `mempalace wake-up` prints, taken apart.

Owns: running it and finding its moments.
Never: asserts more than that it succeeded.
Called by: the tests of wake-up.
"""

from __future__ import annotations

import re
from pathlib import Path

from mempalace.layers import HEADING
from tests.command import mempalace
from tests.palace_builder import PalaceBuilder


def woken(builder: PalaceBuilder, *arguments: str, cwd: Path | None = None) -> list[str]:
    """Its lines, for what the builder has said so far."""
    builder.file()
    done = mempalace("wake-up", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def story(lines: list[str]) -> list[str]:
    """The lines of L1, without heading, blank line and the last words."""
    begin = lines.index(HEADING) + 1
    return lines[begin : lines.index("", begin)]


def moments(lines: list[str]) -> list[str]:
    """The moments of L1, without session and date."""
    found = [re.fullmatch(r"  - (.*)  \([^()]*\)", line) for line in story(lines)]
    return [match.group(1) for match in found if match]
