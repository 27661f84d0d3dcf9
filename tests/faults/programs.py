"""The real programs as processes, and what the palace holds while they run.

Owns: starting `mempalace …` with the test's own home, waiting until something is true, reading
palace.db beside its writers.
Never: asserts how long anything takes: a deadline is only there to end a hang.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import psutil

from mempalace.errors import NotThereYet
from mempalace.model import Role
from mempalace.store import exchanges
from mempalace.store.palace import Palace
from tests.faults.lines import Record

COMMAND = (sys.executable, "-P", "-m", "mempalace")
HANG_SECONDS = 60.0  # far beyond anything that is still alive


def run(*arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """One command to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True, text=True, timeout=HANG_SECONDS, check=False, **more,
    )  # fmt: skip


class Program:
    """One running command. Its output goes to `log`; leave the block and it is killed."""

    def __init__(
        self, *arguments: str | Path, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        self._stream: IO[bytes] = log.open("ab")
        self._process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=self._stream, stderr=self._stream,
            env={**os.environ, **(env or {})},
        )  # fmt: skip

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self.kill()
        self._stream.close()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def has_open(self, path: Path) -> bool:
        return str(path) in {one.path for one in psutil.Process(self._process.pid).open_files()}

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9: no handler runs, nothing is flushed."""
        self._process.kill()
        self._process.wait(HANG_SECONDS)

    def end(self) -> int:
        """SIGTERM; the exit code."""
        self._process.terminate()
        return self.wait()

    def wait(self) -> int:
        return self._process.wait(HANG_SECONDS)

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def watching(log: Path, env: Mapping[str, str] | None = None) -> Iterator[Program]:
    """The daemon, once it follows its roots."""
    before = log.read_text().count("watch.start") if log.exists() else 0
    with Program("watch", log=log, env=env) as daemon:
        until(lambda: daemon.has_ended or daemon.output().count("watch.start") > before)
        assert not daemon.has_ended, daemon.output()
        yield daemon


def until(claim: Callable[[], object], seconds: float = HANG_SECONDS) -> None:
    """Return as soon as `claim` is true."""
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "this never became true"
        time.sleep(0.02)


def stored(home: Path) -> dict[str, list[list[Record]]]:
    """What the palace holds: for each session its exchanges, in file order, as records.

    Read as a reader does, beside whoever writes; empty where there is no palace yet.
    """
    try:
        palace = Palace.reader(home)
    except (NotThereYet, sqlite3.OperationalError):
        return {}
    with palace:
        db = palace.db
        db.execute("BEGIN")  # one moment for all that follows
        found: dict[str, list[list[Record]]] = {}
        for n, session in db.execute(
            "SELECT e.n, s.id FROM exchanges e JOIN sessions s ON s.n = e.session"
            " WHERE e.retired IS NULL ORDER BY s.id, e.offset, e.n"
        ).fetchall():
            records = [(r.role.name, r.text, r.said_at or 0) for r in exchanges.load(db, n)]
            found.setdefault(session, []).append(records)
        return found


def prompts(home: Path) -> list[str]:
    """Every prompt that is stored, sorted."""
    return sorted(
        text
        for told in stored(home).values()
        for records in told
        for role, text, _ in records
        if role == Role.HUMAN.name
    )


def count(home: Path, table: str) -> int:
    """Rows of a table; 0 where there is no palace yet."""
    try:
        palace = Palace.reader(home)
    except (NotThereYet, sqlite3.OperationalError):
        return 0
    with palace:
        return int(palace.db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def accounted(home: Path) -> int:
    """Bytes before the checkpoints of all files."""
    try:
        palace = Palace.reader(home)
    except (NotThereYet, sqlite3.OperationalError):
        return 0
    with palace:
        row = palace.db.execute("SELECT COALESCE(SUM(offset), 0) FROM files").fetchone()
        return int(row[0])
