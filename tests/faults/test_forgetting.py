"""Forgetting beside everything that goes on at the same time, and down to the last byte (R4, R9).

The real command in a process of its own: while the daemon captures, killed in the middle, beside
readers; and a palace that grew as real ones do, whose files are then looked through byte by byte.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
from functools import partial
from pathlib import Path

import pytest

from mempalace.cli import main
from mempalace.errors import EXIT_ERROR, EXIT_OK
from mempalace.store.palace import Palace
from tests.capturing import Capturing
from tests.faults.lines import Lines, Story
from tests.faults.programs import Program, accounted, count, run, stored, until, watching

SEED = int(os.environ.get("MEMPALACE_TEST_SEED", "20260301"))
SECRET = "zqxsecret"  # in FTS5 a word may stand without what it shares with its neighbour
TRACE = SECRET[3:]


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / ".claude" / "projects" / "-home-ada-shop"
    folder.mkdir(parents=True)
    return folder


def append(project: Path, said: Lines, *lines: bytes) -> Path:
    path = project / f"{said.session}.jsonl"
    with path.open("ab") as stream:
        stream.write(b"".join(lines))
    return path


def ids(home: Path, words: str = "") -> list[str]:
    """Of exchanges that hold these words."""
    with Palace.reader(home) as palace:
        rows = palace.db.execute(
            "SELECT DISTINCT e.id FROM exchanges e JOIN drawers d ON d.exchange = e.n"
            " WHERE instr(d.text, ?) OR ? = ''", (words, words),
        )  # fmt: skip
        return [row[0] for row in rows]


def check(home: Path) -> None:
    with Capturing(home) as captured:
        captured.check()


# --- bytes ----------------------------------------------------------------------------------------


class TestBytes:
    """Not a byte of the words is left in any file of the palace."""

    def grow(self, project: Path, palace_home: Path) -> None:
        """Sessions that grow in turns, with the secret in every fourth exchange: pages are split
        and refilled, and segments of full text merged, while all of it is there."""
        chance = random.Random(SEED)
        told = [Lines(number) for number in range(1, 9)]
        words = [f"word{number}" for number in range(2_000)]
        secrets = [f"zqx{number}secret" for number in range(40)]
        spoken = dict.fromkeys(range(8), words)
        with Capturing(palace_home) as captured:
            for turn in range(500):
                n = chance.randrange(8)
                said = told[n]
                if turn % 2:
                    spoken[n] = secrets if chance.random() < 0.25 else words
                    lines = [said.prompt(" ".join(chance.choices(spoken[n], k=20)))]
                else:
                    lines = [said.call("Bash", {"command": " ".join(chance.choices(spoken[n]))})]
                for _ in range(3):
                    text = " ".join(chance.choices(spoken[n], k=chance.randint(2, 90)))
                    lines.append(said.answer(text))
                for line in lines:
                    captured.read(append(project, said, line), cold=False)

    def traces(self, home: Path) -> list[str]:
        return [p.name for p in home.rglob("*") if p.is_file() and TRACE.encode() in p.read_bytes()]

    @pytest.mark.parametrize("beside", ["nobody", "a connection"])
    def test_every_copy_of_the_words_is_gone(self, project, palace_home, beside):
        self.grow(project, palace_home)
        assert self.traces(palace_home)
        idle = Palace.writer(palace_home) if beside == "a connection" else None  # keeps the log
        try:
            done = run("forget", *ids(palace_home, TRACE), "--yes")
            assert done.returncode == 0, done.stderr
            assert self.traces(palace_home) == []
        finally:
            if idle is not None:
                idle.close()
        assert len(ids(palace_home)) > 100
        check(palace_home)

    def test_no_free_page_is_kept(self, project, palace_home):
        self.grow(project, palace_home)
        assert run("forget", *ids(palace_home, TRACE), "--yes").returncode == 0
        with Palace.reader(palace_home) as palace:
            assert palace.db.execute("PRAGMA freelist_count").fetchone()[0] == 0

    def test_a_reader_that_holds_on_delays_the_wiping_alone(
        self, project, palace_home, monkeypatch, capsys
    ):
        said = Lines(1)
        append(project, said, said.prompt(f"my {SECRET}"), said.answer("Noted."))
        run("watch", "--once")
        monkeypatch.setattr("mempalace.store.sweep._ATTEMPTS", 2)
        with Palace.writer(palace_home), Palace.reader(palace_home) as reader:
            reader.db.execute("BEGIN")
            assert reader.db.execute("SELECT COUNT(*) FROM exchanges").fetchone()[0] == 1
            assert main(["forget", "--wing", "shop", "--yes"]) == EXIT_ERROR
            told = capsys.readouterr().err
            assert "the words are forgotten" in told
            assert "a reader keeps" in told
            assert reader.db.execute("SELECT COUNT(*) FROM exchanges").fetchone()[0] == 1  # R9
            reader.db.execute("COMMIT")
            assert ids(palace_home) == []
            assert main(["forget"]) == EXIT_OK
            assert self.traces(palace_home) == []


# --- beside others --------------------------------------------------------------------------------


class TestTogether:
    """The daemon goes on capturing; readers see one moment."""

    def test_what_is_forgotten_under_the_daemon_stays_away(self, project, palace_home, tmp_path):
        keep, go = Story(1, SEED), Story(2, SEED)
        with watching(tmp_path / "log") as daemon:
            until(lambda: palace_home.joinpath("palace.db").exists())
            for _ in range(12):
                append(project, keep.lines, *keep.turn())
                append(project, go.lines, *go.turn())
            truth = {keep.lines.session: keep.truth(), go.lines.session: go.truth()}
            until(lambda: stored(palace_home) == truth)
            writing = threading.Thread(target=self._write, args=(project, keep))
            writing.start()
            done = run("forget", "--session", go.lines.session, "--yes")
            writing.join()
            assert done.returncode == 0, done.stderr
            append(project, go.lines, go.lines.answer("More of what was forgotten."))
            later = Story(3, SEED)
            append(project, later.lines, *later.turn())
            truth = {keep.lines.session: keep.truth(), later.lines.session: later.truth()}
            until(lambda: stored(palace_home) == truth)
            size = sum(path.stat().st_size for path in project.iterdir())
            until(lambda: accounted(palace_home) == size)
            assert not daemon.has_ended, daemon.output()
        assert stored(palace_home) == truth
        copy = project / "00000009-0000-4000-8000-000000000000.jsonl"
        copy.write_bytes((project / f"{go.lines.session}.jsonl").read_bytes())
        assert run("backfill").returncode == 0
        assert stored(palace_home) == truth
        check(palace_home)

    def _write(self, project: Path, story: Story) -> None:
        for _ in range(20):
            for line in story.turn():
                append(project, story.lines, line)

    def test_a_reader_never_meets_half_an_exchange(self, project, palace_home):
        stories = [Story(number, SEED) for number in range(1, 4)]
        for story in stories:
            for _ in range(40):
                append(project, story.lines, *story.turn())
        run("watch", "--once")
        truth = {tuple(map(tuple, told)) for story in stories for told in story.truth()}
        keeper = Palace.writer(palace_home)  # as the daemon does: the log stays while readers read
        wrong: list[object] = []
        stopping = threading.Event()

        def look() -> None:
            while not stopping.is_set():
                try:
                    seen = {tuple(map(tuple, e)) for s in stored(palace_home).values() for e in s}
                except (sqlite3.Error, AssertionError, IndexError) as error:
                    wrong.append(error)
                else:
                    wrong.extend(seen - truth)

        thread = threading.Thread(target=look)
        thread.start()
        try:
            done = run("forget", "--wing", "shop", "--yes")
        finally:
            stopping.set()
            thread.join()
            keeper.close()
        assert done.returncode == 0, done.stderr
        assert wrong == []
        assert ids(palace_home) == []


class TestKilled:
    """kill -9 at any moment: what is gone is gone whole, and the next run goes on."""

    def _has_begun(self, program: Program, home: Path, before: int) -> bool:
        return program.has_ended or count(home, "exchanges") < before

    def test_forget_killed_again_and_again_ends_as_one_that_was_not(
        self, project, palace_home, tmp_path
    ):
        keep, go = Story(1, SEED), Lines(2, cwd="/home/ada/blog")
        for _ in range(5):
            append(project, keep.lines, *keep.turn())
        for number in range(1_500):
            append(project, go, go.prompt(f"{SECRET} {number}"), go.answer(f"{SECRET} " * 40))
        run("watch", "--once")
        total = count(palace_home, "exchanges")
        left, killed = total, 0
        while left > total - 1_500 and killed < 4:
            with Program("forget", "--wing", "blog", "--yes", log=tmp_path / "log") as program:
                until(partial(self._has_begun, program, palace_home, left))
                program.kill()
            killed += 1
            check(palace_home)
            left = count(palace_home, "exchanges")
            notices = json.loads(run("status", "--json").stdout)["notices"]
            assert (
                any("traces of forgotten words" in one for one in notices) or left == total - 1500
            )
        wing = ["--wing", "blog", "--yes"] if left > total - 1_500 else []
        done = run("forget", *wing)
        assert done.returncode == 0 or "say what to forget" in done.stderr
        assert stored(palace_home) == {keep.lines.session: keep.truth()}
        assert run("backfill").returncode == 0
        assert stored(palace_home) == {keep.lines.session: keep.truth()}
        for path in palace_home.iterdir():
            assert TRACE.encode() not in path.read_bytes(), path.name
        check(palace_home)
