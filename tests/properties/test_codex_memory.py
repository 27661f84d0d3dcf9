"""Memory does not grow with a rollout, nor with what its compactions repeat (R8)."""

from __future__ import annotations

import pytest

import tests.bench.codex
from tests.bench.codex import backfill, write

_ALLOWED = 150_000_000  # bytes


class TestMemory:
    """Read by `backfill` in a process of its own; the bench does the same with 2 GB."""

    @pytest.mark.parametrize(("size", "line"), [(100_000_000, 4_000_000), (80_000_000, 40_000_000)])
    def test_reading_takes_no_more_memory_than_allowed(self, size, line, tmp_path, monkeypatch):
        monkeypatch.setattr(tests.bench.codex, "_LINE", line)
        path = tmp_path / "sessions" / "rollout-huge.jsonl"
        path.parent.mkdir()
        reading = backfill(tmp_path, path, write(path, size))
        path.unlink()
        assert reading.memory <= _ALLOWED
