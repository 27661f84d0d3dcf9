"""The watcher at rest: processor time and memory over 60 seconds with 10,000 known files."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.bench.measure import MEMPALACE, Row, environment

_FILES = 10_000
_SECONDS = 60.0


def run(scratch: Path) -> Iterator[Row]:
    folder = scratch / "idle"
    env = environment(folder)
    root = folder / "claude" / "projects"
    for number in range(_FILES):
        path = root / f"-project-{number % 500}" / f"{number:08x}-0000-4000-8000-000000000000.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "type": "user", "uuid": f"idle-{number}", "timestamp": "2026-01-05T08:00:00.000Z",
            "sessionId": path.stem, "cwd": f"/project/{number % 500}",
            "message": {"role": "user", "content": f"question {number}"},
        }  # fmt: skip
        path.write_text(json.dumps(record) + "\n")
    subprocess.run([*MEMPALACE, "backfill"], env=env, check=True, capture_output=True)
    watcher = subprocess.Popen(
        [*MEMPALACE, "watch"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process = psutil.Process(watcher.pid)
        time.sleep(8)  # the start, with its first scan, is not rest
        before = process.cpu_times()
        started = time.perf_counter()
        time.sleep(_SECONDS)
        after = process.cpu_times()
        seconds = time.perf_counter() - started
        used = after.user + after.system - before.user - before.system
        yield Row("watcher idle, 10,000 files: processor", used / seconds * 100, "% of a core",
                  "allowed, %", 0.5)  # fmt: skip
        yield Row("watcher idle, 10,000 files: memory", process.memory_info().rss / 1e6, "MB",
                  "allowed, MB", 80)  # fmt: skip
        yield Row("watcher idle, 10,000 files: open files", process.num_fds(), "")
    finally:
        watcher.terminate()
        watcher.wait(timeout=30)
