"""`python -m tests.bench [NAME…]`: run the benchmarks, print a table, write the same as JSON."""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.bench import (
    amplification,
    codex,
    embedding,
    filing,
    idle,
    labels,
    latency,
    librarian,
    processes,
)
from tests.bench.measure import Row, table

BENCHMARKS = {
    "processes": processes.run,
    "filing": filing.run,
    "latency": latency.run,
    "idle": idle.run,
    "amplification": amplification.run,
    "codex": codex.run,
    "embedding": embedding.run,
    "librarian": librarian.run,
    "labels": labels.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure MemPalace against baselines.")
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], help="default: all")
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="where JSON goes")
    arguments = parser.parse_args()
    rows: list[Row] = []
    for name in arguments.names or BENCHMARKS:
        with tempfile.TemporaryDirectory(prefix="mempalace-bench-") as scratch:
            for row in BENCHMARKS[name](Path(scratch)):
                rows.append(row)
                print(table([row]).splitlines()[-1], flush=True)
    print("\n" + table(rows))
    machine = {"machine": platform.platform(), "python": platform.python_version()}
    measured = [asdict(row) | {"ratio": row.ratio} for row in rows]
    arguments.json.write_text(json.dumps(machine | {"rows": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
