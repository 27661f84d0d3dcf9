"""Rooms, types, halls, key sentences and importance against labelled exchanges, and their price.

The real exchanges stand beside the repository (../shared/labels) and are never copied into it;
the hundred of tests/mining/labelled.jsonl were written for it. The baseline is what was aimed at.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from mempalace.mining.chunk import windows
from mempalace.mining.derive import derive
from tests.bench.measure import Row
from tests.mining.labels import ROW, figures

_REPOSITORY = Path(__file__).resolve().parents[2]
_REAL = _REPOSITORY.parent / "shared" / "labels" / "tune.jsonl"
_OWN = _REPOSITORY / "tests" / "mining" / "labelled.jsonl"
_ASKED = {
    "room, exact": 0.60, "room, acceptable": 0.85, "memory type, macro-F1": 0.50,
    "hall, exact": 0.60, "key sentence, with the phrase": 0.55,
    "key sentence, phrase beyond 200": 0.30, "importance, rank correlation": 0.50,
}  # fmt: skip
_REPEATS = 5


def run(scratch: Path) -> Iterator[Row]:
    for name, path in (("real", _REAL), ("own", _OWN)):
        if not path.exists():
            print(f"labels: {path} is not there; its figures are left out", file=sys.stderr)
            continue
        rows: list[ROW] = [json.loads(line) for line in path.read_text().splitlines()]
        for figure, value in figures(rows).items():
            yield Row(f"{figure} ({len(rows)} {name})", value, "", "asked", _ASKED[figure])
        yield _speed(name, rows)


def _speed(name: str, rows: list[ROW]) -> Row:
    talks = [(row["human"] or "", row["assistant"]) for row in rows]
    drawers = sum(len(windows("".join([prompt, *answers]))) for prompt, answers in talks)
    best = min(_seconds(talks) for _ in range(_REPEATS))
    return Row(f"derive a drawer of talk ({name})", best / drawers * 1e6, "µs", "asked", 300)


def _seconds(talks: list[tuple[str, list[str]]]) -> float:
    started = time.perf_counter()
    for prompt, answers in talks:
        derive(prompt, answers)
    return time.perf_counter() - started
