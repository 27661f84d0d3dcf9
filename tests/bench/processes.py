"""wake-up, search and status as whole processes, at 1,000, 50,000 and 200,000 drawers of talk."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.bench.corpus import Corpus
from tests.bench.measure import MEMPALACE, Row, environment, paired

SIZES = (1_000, 50_000, 200_000)  # drawers of talk; about 4.4 times as many of tools come along
_BATCH = 120  # sessions written, filed and removed again


def run(scratch: Path) -> Iterator[Row]:
    env = environment(scratch)
    corpus = Corpus()
    for size in SIZES:
        grow(scratch, corpus, size)
        words = corpus.a_prompt_of(scratch / "palace")
        for command in (
            ["wake-up", "--wing", "project_03"],
            ["search", *words.split()[:3]],
            ["search", *words.split()[:8]],
            ["search", "--wing", "project_03", *words.split()[:3]],
            ["status"],
        ):
            name = command[0] if command[0] != "search" else _search_name(command)
            yield from paired(f"{name} at {size:,}", [*MEMPALACE, *command], env, runs=30)


def grow(scratch: Path, corpus: Corpus, size: int) -> None:
    """Fill the palace up to `size` drawers of talk, through the real command."""
    root = scratch / "claude" / "projects"
    while (have := talk_drawers(scratch)) < size:
        sessions = min(_BATCH, (size - have) // 36 + 1)
        corpus.write(root, sessions)
        subprocess.run(
            [*MEMPALACE, "backfill", str(root)],
            env=environment(scratch), check=True, capture_output=True,
        )  # fmt: skip
        shutil.rmtree(root)
    root.mkdir(parents=True, exist_ok=True)


def _search_name(command: list[str]) -> str:
    if "--wing" in command:
        return "search, 3 words, one wing"
    return f"search, {len(command) - 1} words"


def talk_drawers(scratch: Path) -> int:
    path = scratch / "palace" / "palace.db"
    if not path.exists():
        return 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return int(db.execute("SELECT SUM(talk_drawers) FROM exchanges").fetchone()[0] or 0)
