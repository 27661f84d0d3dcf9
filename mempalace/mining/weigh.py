"""The signals of an exchange, weighed: which class wins, how clearly, and what decided.

Owns: adding up, and saying in words what the sum was made of.
Never: holds a weight (weights), matches a word (signals).
Called by: derive.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass

from mempalace.mining.weights import IMPORTANCE

_ALWAYS = "always"
_REASONS = 4  # named in `why`


@dataclass(frozen=True, slots=True)
class Choice:
    """The winner, its share (0 to 1) of all that was weighed, and the signals that decided."""

    name: str
    share: float
    why: str


def choose(
    table: Mapping[str, Mapping[str, float]],
    found: Mapping[str, str],
    among: Container[str] | None = None,
) -> Choice:
    """The class with the greatest sum; of `among` where that is given. Ties: the table's order."""
    sums = dict.fromkeys((kind for row in table.values() for kind in row), 0.0)
    for signal in (_ALWAYS, *found):
        for kind, weight in table.get(signal, {}).items():
            sums[kind] += weight
    allowed = [kind for kind in sums if among is None or kind in among]
    best = max(allowed, key=lambda kind: sums[kind])
    share = 1 / sum(math.exp(sums[kind] - sums[best]) for kind in allowed)
    spoke = sorted(
        ((table[signal][best], signal) for signal in found if best in table.get(signal, {})),
        key=lambda pair: -pair[0],
    )
    return Choice(best, share, _named([signal for weight, signal in spoke if weight > 0], found))


def importance(found: Mapping[str, str], room: str, memory_type: str) -> tuple[int, str]:
    """1 (a chore) to 5 (turns the project), and what lifted or lowered it."""
    signals = {**found, f"type: {memory_type}": "", f"room: {room}": ""}
    weights = {signal: IMPORTANCE[signal] for signal in signals if signal in IMPORTANCE}
    total = IMPORTANCE[_ALWAYS] + sum(weights.values())
    decided = sorted(weights, key=lambda signal: -abs(weights[signal]))
    return max(1, min(5, round(total))), _named(decided, signals)


def _named(signals: list[str], found: Mapping[str, str]) -> str:
    return ", ".join(
        f"{signal} ({found[signal]})" if found[signal] else signal for signal in signals[:_REASONS]
    )
