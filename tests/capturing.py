"""Capture in the test's own process: files in, rows out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mempalace import config as configuration
from mempalace.model import STREAM_OF, Role, Stream
from mempalace.store import drawers, exchanges
from mempalace.store.palace import Palace
from watcher.capture import Capture, Outcome, Result
from watcher.disk import Disk
from watcher.roots import Folders


class Capturing:
    """A palace in a home of its own and the means to read files into it."""

    def __init__(self, home: Path, *, disk: Disk | None = None, **settings: Any) -> None:
        self.home = home
        self.config = replace(configuration.load(), home=home, **settings)
        self.palace = Palace.writer(home, create=True)
        self.capture = Capture(
            self.palace, self.config, disk or Disk(), folder_of=Folders(self.palace)
        )

    def __enter__(self) -> Capturing:
        return self

    def __exit__(self, *_: object) -> None:
        self.palace.close()

    def again(self) -> None:
        """As if the process had ended and another had begun."""
        self.palace.close()
        self.palace = Palace.writer(self.home)
        self.capture = Capture(self.palace, self.config, Disk(), folder_of=Folders(self.palace))

    def read(self, path: Path, *, cold: bool = True, reread: bool = False) -> list[Outcome]:
        """Everything that there is to read of one file."""
        outcomes = []
        while True:
            outcome = self.capture.read(str(path), cold=cold, reread=reread)
            outcomes.append(outcome)
            if not outcome.more:
                return outcomes

    def read_ok(self, *paths: Path, cold: bool = True) -> None:
        for path in paths:
            for outcome in self.read(path, cold=cold):
                assert outcome.result in (Result.READ, Result.NOTHING), outcome

    def rows(self, root: Path | None = None) -> list[dict[str, Any]]:
        """All that the palace knows of the words, in a form that can be compared."""
        db = self.palace.db
        found = db.execute(
            "SELECT e.n, e.id, s.id, e.headless, e.retired, COALESCE(e.cwd, s.cwd), w.name,"
            " e.started_at, e.ended_at, e.offset FROM exchanges e"
            " JOIN sessions s ON s.n = e.session"
            " LEFT JOIN wings w ON w.id = e.wing ORDER BY s.id, e.offset, e.id"
        ).fetchall()
        return [
            {
                "id": row[1], "session": row[2], "headless": row[3], "retired": row[4],
                "cwd": row[5], "wing": row[6], "started": row[7], "ended": row[8],
                "offset": row[9],
                "records": [
                    (r.role.name, r.kind, r.text, r.omitted, r.said_at)
                    for r in exchanges.load(db, row[0])
                ],
                "drawers": db.execute(
                    "SELECT stream, position, start, text FROM drawers WHERE exchange = ?"
                    " ORDER BY stream, position", (row[0],)
                ).fetchall(),
                "sightings": sorted(
                    (Path(path).name if root is None else str(Path(path).relative_to(root)), offset)
                    for path, offset in db.execute(
                        "SELECT f.path, s.offset FROM sightings s JOIN files f ON f.n = s.file"
                        " JOIN records r ON r.n = s.record WHERE r.exchange = ?", (row[0],)
                    )
                ),
            }
            for row in found
        ]  # fmt: skip

    def prompts(self) -> list[str]:
        return [
            text
            for row in self.rows()
            if not row["headless"] and not row["retired"]
            for role, _, text, _, _ in row["records"]
            if role == Role.HUMAN.name
        ]

    def words(self) -> list[tuple[str, str]]:
        """(role, text) of all human words and answers, sorted: what must not depend on order."""
        spoken = {Role.HUMAN.name, Role.SAID.name, Role.ASSISTANT.name, Role.ALTERNATE.name}
        return sorted(
            (role, text)
            for row in self.rows()
            if not row["retired"]
            for role, _, text, _, _ in row["records"]
            if role in spoken
        )

    def check(self) -> None:
        """What must hold of every palace: full text and streams agree with the records (R2)."""
        db = self.palace.db
        for table in ("talk", "tools"):
            db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        for (exchange,) in db.execute("SELECT n FROM exchanges").fetchall():
            records = exchanges.load(db, exchange)
            for stream in Stream:
                texts = [r.text for r in records if STREAM_OF[r.role] is stream and r.text]
                joined = exchanges.SEPARATOR.join(texts)
                assert joined == drawers.text_of(db, exchange, stream)
        orphans = db.execute(
            "SELECT COUNT(*) FROM keys WHERE record NOT IN (SELECT n FROM records)"
        ).fetchone()[0]
        assert orphans == 0


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def write(path: Path, parts: Iterable[bytes]) -> None:
    path.write_bytes(b"".join(parts))
