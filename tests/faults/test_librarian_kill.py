"""kill -9 of the librarian while it writes: it comes back by itself, and nothing is done twice."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mempalace import __version__
from mempalace.index import client
from mempalace.index.client import NoLibrarian
from mempalace.index.projection import DRAWERS
from mempalace.index.projection import client as chroma
from mempalace.model import Stream
from mempalace.store import vectors
from mempalace.store.palace import Palace
from tests.palace_builder import PalaceBuilder

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
EVERY = 100  # additions between two writes of Chroma's graph


@contextmanager
def librarian(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (home / "quick.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.index.quick", str(home), str(EVERY)],
            cwd=ROOT,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def is_settled(home: Path) -> bool:
    """Ask for what it must answer; True when nothing is left to do."""
    try:
        with client.Connection(home, wait=PATIENCE) as connection:
            answer = connection.ask("find", version=__version__, text="text 7", limit=3)
            state = connection.ask("state")
    except NoLibrarian:
        return False
    if answer["state"] != "ready" or not state["is_in_step"]:
        return False
    with Palace.reader(home) as palace:
        return not vectors.waiting(palace.db)


def settle(home: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not is_settled(home):
        assert time.monotonic() < end, (home / "quick.log").read_text()[-2_000:]
        time.sleep(0.02)


class Killing:
    def __init__(self, home: Path, chance: random.Random) -> None:
        self.home = home
        self.chance = chance
        self.exchanges = 0
        self.persisted = 0  # kills that came while the graph was being written

    def say(self, count: int) -> None:
        with PalaceBuilder(self.home) as builder:
            session = builder.session(f"s{self.exchanges}")
            for number in range(self.exchanges, self.exchanges + count):
                session.prompt(f"text {number} of many")
            self.exchanges += count
        with Palace.writer(self.home) as palace, palace.transaction() as db:
            db.execute("UPDATE outbox SET due_at = 0")

    def committed(self) -> set[str]:
        with Palace.reader(self.home) as palace:
            rows = palace.db.execute(
                "SELECT d.text FROM vectors v JOIN drawers d ON d.n = v.drawer"
            )
            return {text for (text,) in rows}

    def round(self, *, in_persist: bool) -> None:
        """More is said, the librarian works on it and is killed; another one must not embed again
        what was committed."""
        self.say(self.chance.randrange(150, 400))
        log = self.home / "embedded.log"
        log.write_text("")
        before = self.committed()
        with librarian(self.home) as process:
            if in_persist:
                self._kill_in_persist(process)
            else:
                self._kill_at_random(process)
        again = before & set(log.read_text().splitlines())
        assert not again

    def _kill_at_random(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + self.chance.uniform(0.3, 2.5)
        while time.monotonic() < end:
            is_settled(self.home)  # a question opens the index
            time.sleep(0.01)
        process.kill()

    def _kill_in_persist(self, process: subprocess.Popen[bytes]) -> None:
        """As soon as a file of the graph changes, or a little later."""
        end = time.monotonic() + PATIENCE
        wait = self.chance.uniform(0.0, 0.01)
        seen: dict[str, tuple[int, int]] = {}
        while time.monotonic() < end and process.poll() is None:
            is_settled(self.home)  # a question opens the index
            for _ in range(50):
                now = self._graph()
                if any(now[path] != look for path, look in seen.items() if path in now):
                    time.sleep(wait)
                    process.kill()
                    self.persisted += 1
                    return
                seen = now

    def _graph(self) -> dict[str, tuple[int, int]]:
        found = {}
        for path in (self.home / "vectors").glob("*/data_level0.bin"):
            with suppress(FileNotFoundError):
                look = path.stat()
                found[str(path)] = (look.st_size, look.st_mtime_ns)
        return found

    def check(self) -> None:
        with librarian(self.home) as process:
            settle(self.home)
            process.terminate()
            assert process.wait(PATIENCE) == 0
        opened = chroma(str(self.home / "vectors"))
        held = sorted(opened.get_collection(DRAWERS, embedding_function=None).get()["ids"])
        opened.close()  # type: ignore[attr-defined]
        with Palace.reader(self.home) as palace:
            rows = palace.db.execute(
                "SELECT e.id || '-talk-' || d.position FROM drawers d"
                " JOIN exchanges e ON e.n = d.exchange WHERE d.stream = ?",
                (Stream.TALK,),
            )
            assert held == sorted(item for (item,) in rows)
            assert vectors.count(palace.db, 1) == len(held) == self.exchanges


def _kill(home: Path, kills: int, in_persist: int) -> None:
    killing = Killing(home, random.Random(7))
    for number in range(kills):
        killing.round(in_persist=number * in_persist // kills != (number + 1) * in_persist // kills)
    assert killing.persisted == in_persist
    killing.check()


def test_it_comes_back_and_embeds_nothing_twice(palace_home):
    _kill(palace_home, 8, 3)


@pytest.mark.soak
def test_fifty_kills_twenty_of_them_while_the_graph_is_written(palace_home):
    _kill(palace_home, 50, 20)
