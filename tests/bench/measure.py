"""What the benchmarks share: rows of a table, environments, whole processes timed in pairs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MEMPALACE = [sys.executable, "-P", "-m", "mempalace"]


@dataclass(frozen=True)
class Row:
    """One measured figure beside its baseline; `ratio` is value / baseline."""

    what: str
    value: float
    unit: str
    baseline: str = ""
    baseline_value: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.baseline_value if self.baseline_value else None


def environment(folder: Path) -> dict[str, str]:
    """An environment whose palace and transcripts are in `folder` alone."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMPALACE_", "CLAUDE_"))}
    return kept | {
        "HOME": str(folder),
        "MEMPALACE_HOME": str(folder / "palace"),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "NO_COLOR": "1",
        "MEMPALACE_INDEX_VECTORS": "false",  # where they are measured they are turned on
    }


def timed(command: Sequence[str], env: Mapping[str, str]) -> float:
    """Seconds of a whole process."""
    started = time.perf_counter()
    done = subprocess.run(command, env=env, capture_output=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode not in (0, 4):
        raise RuntimeError(f"{command}: {done.stderr.decode()[-500:]}")
    return seconds


def paired(
    what: str, command: Sequence[str], env: Mapping[str, str], *, runs: int = 40
) -> list[Row]:
    """p50 and p95 of a command against `python -c pass`, run in turns."""
    bare = [sys.executable, "-c", "pass"]
    timed(command, env)
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(timed(command, env))
        theirs.append(timed(bare, env))
    rows = []
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        rows.append(
            Row(
                f"{what}, {name}", quantile(ours, share) * 1000, "ms",
                f"python -c pass, {name}", quantile(theirs, share) * 1000,
            )
        )  # fmt: skip
    return rows


def quantile(values: Sequence[float], share: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| what | measured | baseline | ratio |", "|---|---|---|---|"]
    for row in rows:
        base = f"{row.baseline} {row.baseline_value:,.4g}" if row.baseline_value else row.baseline
        ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
        lines.append(f"| {row.what} | {row.value:,.4g} {row.unit} | {base} | {ratio} |")
    return "\n".join(lines)
