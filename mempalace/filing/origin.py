"""Where messages come from, and what became of them.

Owns: these two values.
Never: decides anything.
Called by: mempalace.filing.messages, watcher.commit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Origin:
    """Where messages come from."""

    file: int
    path: str
    content: int  # the generation in which the file's present content was first read
    source: str
    parser: int
    cwd: str | None  # a folder that the file names: exclusion holds for records that name none


@dataclass(slots=True)
class Filed:
    """What one transaction did, for progress and summaries."""

    exchanges_new: int = 0
    exchanges_known: int = 0
    drawers: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
