"""The shared samples, where they are at hand: the tests that read them say so when they skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "samples"
SAMPLES = Path(os.environ.get("MEMPALACE_SAMPLES", _BESIDE))

needs_samples = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="the shared samples are not beside this checkout"
)


def claude_code_samples() -> list[Path]:
    """Every session file of the samples; empty where they are not at hand."""
    return sorted((SAMPLES / "claude-code").rglob("*.jsonl"))
