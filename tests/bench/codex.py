"""A rollout of 2 GB, nine tenths of it compactions: speed and memory of reading it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import MEMPALACE, Row, environment
from tests.transcripts.builder import line_of
from tests.transcripts.codex_builder import Rollout

_SIZE = 2_000_000_000
_COMPACTED = 0.9  # of all bytes
_LINE = 4_000_000  # bytes of one compaction
_TURNS = 8  # between two compactions
_ALLOWED_MB = 150
# The peak of a process counts from the size of the one that started it: so a small one does.
_MEASURE = """
import json, os, subprocess, sys, time
started = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([time.perf_counter() - started, usage.ru_maxrss * 1024]))
sys.exit(process.returncode)
"""


@dataclass(frozen=True)
class Reading:
    """One whole `backfill` of one rollout."""

    size: int
    turns: int
    seconds: float
    memory: int  # bytes, the most that was resident

    @property
    def rate(self) -> float:
        return self.size / 1e6 / self.seconds


def write(path: Path, size: int) -> int:
    """A rollout of about `size` bytes at `path`; the number of its prompts."""
    history = {"type": "message", "role": "user", "content": "repeated " * 2_000}
    compacted = {
        "timestamp": "2026-03-01T10:00:00.000Z", "type": "compacted",
        "payload": {"message": "", "replacement_history": [history] * (_LINE // 18_060)},
    }  # fmt: skip
    skipped = line_of(compacted)
    output = "0123456789abcdef " * int(_LINE * (1 - _COMPACTED) / _COMPACTED / _TURNS / 17)
    rollout = Rollout(1)
    prompts = written = 0
    with path.open("wb") as stream:
        while written < size:
            for _ in range(_TURNS):
                prompts += 1
                rollout.turn().ask(f"question {prompts}").call(f"call_{prompts}", cmd="ls")
                rollout.result(f"call_{prompts}", output).answer(f"answer {prompts}")
            piece = rollout.bytes() + skipped
            rollout.records.clear()
            stream.write(piece)
            written += len(piece)
    return prompts


def backfill(folder: Path, path: Path, prompts: int) -> Reading:
    """Read it in a process of its own."""
    env = environment(folder)
    measured = subprocess.run(
        [sys.executable, "-c", _MEASURE, *MEMPALACE, "backfill", str(path)],
        env=env, capture_output=True, check=True,
    )  # fmt: skip
    seconds, memory = json.loads(measured.stdout)
    exported = subprocess.run(
        [*MEMPALACE, "export", "--format", "jsonl"], env=env, capture_output=True, check=True
    )
    found = [json.loads(line)["human"] for line in exported.stdout.splitlines()]
    if found != [f"question {n + 1}" for n in range(prompts)]:
        raise RuntimeError(f"{len(found)} of {prompts} prompts were stored")
    return Reading(path.stat().st_size, prompts, seconds, memory)


def run(scratch: Path) -> Iterator[Row]:
    folder = scratch / "codex"
    path = folder / "sessions" / Rollout(1).name
    path.parent.mkdir(parents=True)
    reading = backfill(folder, path, write(path, _SIZE))
    path.unlink()
    what = f"rollout of {reading.size / 1e9:.1f} GB, 90 % compacted"
    yield Row(f"{what}: speed", reading.rate, "MB/s", "at least, MB/s", 50)
    yield Row(f"{what}: memory", reading.memory / 1e6, "MB", "allowed, MB", _ALLOWED_MB)
