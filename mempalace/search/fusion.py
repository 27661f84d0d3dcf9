"""Keywords and vectors become one order.

Keywords are trusted by how much of the question they explain, vectors for the rest. To scale each
list by its own best alone makes the best of bad keyword hits look perfect; to fuse ranks does too.

Owns: the weights.
Never: looks anything up.
Called by: mempalace.search.find.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Of the share of a question that its best keyword hit explains: below the first, keywords count
# for little; from the second on, for all. Rough values, to be tuned.
_LITTLE, _ALL = 0.25, 0.75
_LEAST = 0.15


@dataclass(frozen=True, slots=True)
class Fused:
    """What a drawer is worth, from 0 to 1, and by which of the two it was found."""

    score: float
    matched_via: tuple[str, ...]  # heaviest first


def fuse(keywords: Mapping[int, float], cosines: Mapping[int, float]) -> dict[int, Fused]:
    """The worth of each drawer that either has found. `keywords` are from 0 to 1, `cosines` those
    of all candidates that have a vector."""
    if not cosines:
        return {drawer: Fused(score, ("keyword",)) for drawer, score in keywords.items()}
    trust = _trust(max(keywords.values(), default=0.0))
    best_word = max(keywords.values(), default=0.0) or 1.0
    low, high = min(cosines.values()), max(cosines.values())
    spread = (high - low) or 1.0
    top = trust * best_word + (1 - trust) * max(0.0, high)
    result = {}
    for drawer in keywords.keys() | cosines.keys():
        words = trust * keywords.get(drawer, 0.0) / best_word
        meaning = (1 - trust) * (cosines.get(drawer, low) - low) / spread
        via = sorted(
            [("keyword", words, drawer in keywords), ("drawer", meaning, drawer in cosines)],
            key=lambda one: -one[1],
        )
        matched = tuple(name for name, _, is_there in via if is_there)
        result[drawer] = Fused(round(top * (words + meaning), 4), matched)
    return result


def _trust(explained: float) -> float:
    """How far keywords are trusted where the best of them explains this much."""
    ramp = (explained - _LITTLE) / (_ALL - _LITTLE)
    return _LEAST + (1 - _LEAST) * min(1.0, max(0.0, ramp))
