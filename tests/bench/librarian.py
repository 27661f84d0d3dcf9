"""Search with a warm librarian at 200,000 drawers of talk; vectors are made up, for timing alone.

Also: how long Chroma's folder takes to be filled from the blobs, what the librarian weighs with all
of it open, and what is on disk.
"""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from mempalace.index import client
from mempalace.index.embedder import NAME, fingerprint
from mempalace.index.weights import DIMENSION
from mempalace.store import vectors
from mempalace.store.palace import Palace
from tests.bench.corpus import Corpus
from tests.bench.measure import MEMPALACE, Row, environment, paired
from tests.bench.processes import grow

SIZE = 200_000
_PAGE = 10_000


def run(scratch: Path) -> Iterator[Row]:
    corpus = Corpus()
    grow(scratch, corpus, SIZE)
    make_up_vectors(scratch / "palace")
    yield from measure(scratch, corpus)


def measure(scratch: Path, corpus: Corpus) -> Iterator[Row]:
    """Of a palace whose drawers all have a vector."""
    home = scratch / "palace"
    env = environment(scratch) | {"MEMPALACE_INDEX_VECTORS": "true"}
    words = corpus.a_prompt_of(home)
    began = time.perf_counter()
    subprocess.run([*MEMPALACE, "search", words], env=env, check=True, capture_output=True)
    while not (state := _state(home)).get("is_loaded"):
        time.sleep(0.05)
    yield Row("librarian: from a cold search to one by meaning", time.perf_counter() - began, "s")
    began = time.perf_counter()
    done = subprocess.run([*MEMPALACE, "reindex"], env=env, check=True, capture_output=True)
    yield Row(f"reindex: {done.stdout.decode().split(' in the')[0]} from the blobs",
              time.perf_counter() - began, "s")  # fmt: skip
    for name, command in (
        ("search, warm, 3 words", ["search", *words.split()[:3]]),
        ("search, warm, 8 words", ["search", *words.split()[:8]]),
        ("search, warm, 3 words, one wing", ["search", "--wing", "project_03", *words.split()[:3]]),
        ("search, warm, 8 words, since a time", ["search", "--since", "2026-03-01", words]),
    ):
        yield from paired(f"{name} at {SIZE:,}", [*MEMPALACE, *command], env, runs=40)
    process = psutil.Process(int(state["pid"]))
    yield Row("librarian with all of it open", process.memory_info().rss / 1e6, "MB")
    process.terminate()
    process.wait(60)
    yield from _sizes(home)


def make_up_vectors(home: Path) -> None:
    """A random one for each drawer of talk."""
    chance = np.random.default_rng(7)
    with Palace.writer(home) as palace:
        with palace.transaction() as db:
            model = vectors.model_number(db, NAME, DIMENSION, fingerprint())
        last = 0
        while True:
            rows = palace.db.execute(
                "SELECT n, exchange, text FROM drawers WHERE n > ? AND stream = 0"
                " AND n NOT IN (SELECT drawer FROM vectors) ORDER BY n LIMIT ?",
                (last, _PAGE),
            ).fetchall()
            if not rows:
                break
            last = rows[-1][0]
            made = chance.standard_normal((len(rows), DIMENSION), np.float32)
            made /= np.linalg.norm(made, axis=1, keepdims=True)
            blobs = [row.tobytes() for row in made.astype(np.float16)]
            with palace.transaction() as db:
                db.executemany(
                    "INSERT INTO vectors (model, drawer, exchange, md5, vector)"
                    " VALUES (?, ?, ?, ?, ?)",
                    [
                        (model, n, exchange, vectors.md5_of(text), blob)
                        for (n, exchange, text), blob in zip(rows, blobs, strict=True)
                    ],
                )
        with palace.transaction() as db:
            db.execute("DELETE FROM outbox")


def _state(home: Path) -> dict[str, Any]:
    try:
        with client.Connection(home, wait=30.0) as connection:
            return connection.ask("state")
    except client.NoLibrarian:
        return {}


def _sizes(home: Path) -> Iterator[Row]:
    with sqlite3.connect(f"file:{home / 'palace.db'}?mode=ro", uri=True) as db:
        text, talk = db.execute(
            "SELECT SUM(LENGTH(CAST(text AS BLOB))), SUM(stream = 0) FROM drawers"
        ).fetchone()
    size = (home / "palace.db").stat().st_size
    yield Row("palace.db", size / 1e6, "MB", "the text of its drawers, MB", text / 1e6)
    folder = sum(path.stat().st_size for path in (home / "vectors").rglob("*") if path.is_file())
    yield Row("vectors/ a drawer of talk", folder / talk, "bytes")
