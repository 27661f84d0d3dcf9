"""How well the derivation agrees with labelled exchanges.

Owns: the figures of issue 5, computed the same way for every set.
Called by: the regression test, the benchmark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from mempalace.mining.derive import derive

ROW = dict[str, Any]
_HEAD = 200  # characters; what stands beyond them is found by no one who quotes the beginning


def figures(rows: Sequence[ROW]) -> dict[str, float]:
    """Figure → value, each between 0 and 1 (the correlation: -1 and 1)."""
    derived = [derive(row["human"], row["assistant"]) for row in rows]
    rooms = [one.room for one in derived]
    types = [one.memory_type or "none" for one in derived]
    halls = [one.hall for one in derived]
    quoted = [
        (_plain(row["key_sentence_contains"]), _plain(one.key_sentence), _beginning(row))
        for row, one in zip(rows, derived, strict=True)
        if row["key_sentence_contains"]
    ]
    return {
        "room, exact": _share(row["room"] == room for row, room in zip(rows, rooms, strict=True)),
        "room, acceptable": _share(
            room in row["room_ok"] for row, room in zip(rows, rooms, strict=True)
        ),
        "memory type, macro-F1": macro_f1([row["memory_type"] for row in rows], types),
        "hall, exact": _share(row["hall"] == hall for row, hall in zip(rows, halls, strict=True)),
        "key sentence, with the phrase": _share(phrase in key for phrase, key, _ in quoted),
        "key sentence, phrase beyond 200": _share(
            phrase in key for phrase, key, beginning in quoted if phrase not in beginning
        ),
        "importance, rank correlation": rank_correlation(
            [row["importance"] for row in rows], [one.importance for one in derived]
        ),
    }


def macro_f1(labels: Sequence[str], guesses: Sequence[str]) -> float:
    """The mean over the classes of the labels of their F1."""
    scores = []
    for kind in sorted(set(labels)):
        pairs = [
            (label == kind, guess == kind) for label, guess in zip(labels, guesses, strict=True)
        ]
        both = sum(label and guess for label, guess in pairs)
        either = sum(label + guess for label, guess in pairs)
        scores.append(2 * both / either)
    return sum(scores) / len(scores)


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's, ties with their mean rank."""
    a, b = _ranks(left), _ranks(right)
    mean = (len(a) + 1) / 2
    cross = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return cross / math.sqrt(spread) if spread else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def _share(hits: Iterable[bool]) -> float:
    found = list(hits)
    return sum(found) / len(found)


def _beginning(row: ROW) -> str:
    return _plain("\n".join([row["human"] or "", *row["assistant"]])[:_HEAD])


def _plain(text: str) -> str:
    """Without marks of emphasis, blanks folded: labels quote words, not their dress."""
    return re.sub(r"[*`_\"]", "", " ".join(text.split())).lower()
