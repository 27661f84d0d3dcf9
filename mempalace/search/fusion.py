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

from mempalace.search.keywords import ALL

# Of the share of a question that its best keyword hit explains: below the first, keywords count
# for little; from the second on, for all. Rough values, to be tuned.
_LITTLE, _MUCH = 0.25, 0.75
_LEAST, _MOST = 0.15, 0.85
_NOISE = 0.1  # of the best: worth less, where words explain the question, it is no answer to it


@dataclass(frozen=True, slots=True)
class Fused:
    """What an exchange is worth, from 0 to 1, and by which of the two it was found."""

    score: float
    matched_via: tuple[str, ...]  # heaviest first


def fuse(keywords: Mapping[int, float], cosines: Mapping[int, float]) -> dict[int, Fused]:
    """The worth of what either has found, by exchange. `keywords` are from 0 to 1, `cosines` those
    of all candidates that have a vector."""
    if not cosines:
        return {one: Fused(score, ("keyword",)) for one, score in keywords.items()}
    trust = _trust(max(keywords.values(), default=0.0))
    best_word = max(keywords.values(), default=0.0) or 1.0
    low, high = min(cosines.values()), max(cosines.values())
    spread = (high - low) or 1.0
    top = trust * best_word + (1 - trust) * max(0.0, high)
    result = {}
    for one in keywords.keys() | cosines.keys():
        words = trust * keywords.get(one, 0.0) / best_word
        meaning = (1 - trust) * (cosines.get(one, low) - low) / spread
        via = sorted(
            [("keyword", words, one in keywords), ("drawer", meaning, one in cosines)],
            key=lambda way: -way[1],
        )
        matched = tuple(name for name, _, is_there in via if is_there)
        if one in keywords or trust < _MOST or words + meaning >= _NOISE:
            result[one] = Fused(round(top * (words + meaning), 4), matched)
    return result


def _trust(explained: float) -> float:
    """How far keywords are trusted where the best of them is worth this much."""
    share = 1.0 if explained >= ALL else explained / ALL  # of the question's terms, by weight
    ramp = (share - _LITTLE) / (_MUCH - _LITTLE)
    return _LEAST + (_MOST - _LEAST) * min(1.0, max(0.0, ramp))
