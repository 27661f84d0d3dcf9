"""From a line appended to its being found, with the watcher as a real process."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.corpus import Corpus
from tests.bench.measure import MEMPALACE, Row, environment, quantile

_APPENDS = 200
_DEADLINE = 30.0


def run(scratch: Path) -> Iterator[Row]:
    folder = scratch / "latency"
    env = environment(folder)
    root = folder / "claude" / "projects"
    session = root / "-bench" / "0b9f6d1e-5a52-4a53-9a47-6f0e1d6b2c11.jsonl"
    session.parent.mkdir(parents=True)
    history = folder / "history"
    Corpus().write(history, 600)
    watcher = subprocess.Popen(
        [*MEMPALACE, "watch"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        agent = _Agent(session, folder / "palace" / "palace.db")
        agent.append_and_find()  # the first one waits for the watcher to start
        yield from _rows("at rest", [agent.append_and_find() for _ in range(_APPENDS)])
        seconds = []
        for _ in range(_APPENDS):
            started = time.perf_counter()
            seconds.append(agent.append_and_find())
            time.sleep(max(0.0, 0.2 - (time.perf_counter() - started)))
        yield from _rows("at five appends a second", seconds)
        seconds = []
        backfill = subprocess.Popen(
            [*MEMPALACE, "backfill", str(history)], env=env,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while len(seconds) < _APPENDS and backfill.poll() is None:
            seconds.append(agent.append_and_find())
        backfill.wait()
        yield from _rows(f"while a backfill runs ({len(seconds)} appends)", seconds)
    finally:
        watcher.terminate()
        watcher.wait(timeout=30)


def _rows(when: str, seconds: list[float]) -> Iterator[Row]:
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        value = quantile(seconds, share) * 1000
        yield Row(f"append to findable {when}, {name}", value, "ms", "allowed, ms", 2000)


class _Agent:
    """Appends a prompt and looks for it until it is there."""

    def __init__(self, session: Path, palace: Path) -> None:
        self._session = session
        self._palace = palace
        self._number = 0

    def append_and_find(self) -> float:
        self._number += 1
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record = {
            "type": "user", "uuid": f"u{self._number}", "timestamp": now, "cwd": "/bench",
            "sessionId": self._session.stem, "isSidechain": False,
            "message": {"role": "user", "content": f"append number n{self._number}n"},
        }  # fmt: skip
        started = time.perf_counter()
        with self._session.open("ab") as stream:
            stream.write(json.dumps(record).encode() + b"\n")
        while time.perf_counter() - started < _DEADLINE:
            if self._is_found():
                return time.perf_counter() - started
            time.sleep(0.002)
        raise RuntimeError("the line was not captured")

    def _is_found(self) -> bool:
        if not self._palace.exists():
            return False
        try:
            db = sqlite3.connect(f"file:{self._palace}?mode=ro", uri=True)
            try:
                question = f'"n{self._number}n"'
                return bool(
                    db.execute("SELECT 1 FROM talk WHERE talk MATCH ?", (question,)).fetchone()
                )
            finally:
                db.close()
        except sqlite3.OperationalError:
            return False  # the palace is being made
