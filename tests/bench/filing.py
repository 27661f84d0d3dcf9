"""Backfill against reading and parsing the same bytes, at 10 and at 1,000 files."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from tests.bench.corpus import Corpus
from tests.bench.measure import MEMPALACE, Row, environment

_SHAPES = ((10, 160), (1_000, 2))  # files, exchanges in each: about 70 MB both


def run(scratch: Path) -> Iterator[Row]:
    for files, exchanges in _SHAPES:
        folder = scratch / f"filing-{files}"
        root = folder / "claude" / "projects"
        size = Corpus().write(root, files, exchanges=exchanges)
        started = time.perf_counter()
        for path in root.rglob("*.jsonl"):
            with path.open("rb") as stream:
                for line in stream:
                    orjson.loads(line)
        parsing = time.perf_counter() - started
        env = environment(folder)
        started = time.perf_counter()
        subprocess.run(
            [*MEMPALACE, "backfill", str(root)], env=env, check=True, capture_output=True
        )
        filing = time.perf_counter() - started
        with sqlite3.connect(folder / "palace" / "palace.db") as db:
            drawers = db.execute("SELECT COUNT(*) FROM drawers").fetchone()[0]
        yield Row(
            f"backfill, {files:,} files", size / 1e6 / filing, "MB/s",
            "read and orjson.loads, MB/s", size / 1e6 / parsing,
        )  # fmt: skip
        yield Row(f"backfill, {files:,} files", drawers / filing, "drawers/s")
