"""Several of our programs on the same files and the same palace at once."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock

from mempalace.errors import EXIT_LOCKED
from tests.capturing import Capturing
from tests.faults.lines import Lines, Story
from tests.faults.programs import (
    Program,
    accounted,
    prompts,
    run,
    stored,
    until,
    watching,
)
from watcher.capture import Result
from watcher.disk import Disk, Look

SEED = int(os.environ.get("MEMPALACE_TEST_SEED", "20260301"))


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / ".claude" / "projects" / "-home-ada-shop"
    folder.mkdir(parents=True)
    return folder


class Growing:
    """One file that grows, line by line and half line by half line, until it is told to stop."""

    def __init__(self, project: Path, turns: int) -> None:
        self.story = Story(1, SEED)
        self.path = project / f"{self.story.lines.session}.jsonl"
        self._turns = turns
        self._random = random.Random(SEED)
        self._thread = threading.Thread(target=self._write, name="agent")

    def __enter__(self) -> Growing:
        self.path.touch()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def _write(self) -> None:
        with self.path.open("ab", buffering=0) as stream:
            for _ in range(self._turns):
                for line in self.story.turn():
                    cut = self._random.randrange(len(line)) if self._random.random() < 0.3 else 0
                    stream.write(line[:cut])
                    time.sleep(self._random.uniform(0, 0.01))
                    stream.write(line[cut:])


class Searching:
    """A reader that looks again and again, and notes whatever it should never meet."""

    def __init__(self, home: Path) -> None:
        self.looks = 0
        self.wrong: list[str] = []
        self._home = home
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look, name="search")

    def __enter__(self) -> Searching:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _look(self) -> None:
        most = 0
        while not self._stopping.is_set():
            try:
                seen = sum(map(len, stored(self._home).values()))
            except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
                self.wrong.append(repr(error))
                return
            if seen < most:
                self.wrong.append(f"{most} exchanges became {seen}")
            most, self.looks = seen, self.looks + (seen > 0)


def rows(home: Path) -> list[dict[str, object]]:
    with Capturing(home) as captured:
        captured.check()
        return captured.rows()


class TestTogether:
    # R1: which words are stored depends neither on who reads nor on when. R9: a reader never waits.
    def test_two_backfills_the_daemon_and_a_search_on_a_growing_file_store_what_one_would(
        self, tmp_path, home, palace_home, project
    ):
        with (
            Growing(project, turns=120) as agent,
            watching(tmp_path / "watch.log") as daemon,
            Searching(palace_home) as search,
        ):
            rounds = 0
            while not agent.is_done or not rounds:
                with ExitStack() as stack:
                    backfills = [
                        stack.enter_context(Program("backfill", log=tmp_path / f"backfill-{n}.log"))
                        for n in range(2)
                    ]
                    for backfill in backfills:
                        assert backfill.wait() == 0, backfill.output()
                rounds += 1
            until(lambda: accounted(palace_home) == agent.path.stat().st_size)
            until(lambda: search.looks)
            assert daemon.end() == 0, daemon.output()
        assert search.wrong == []
        assert run("backfill").returncode == 0
        assert stored(palace_home) == {agent.story.lines.session: agent.story.truth()}
        with Capturing(tmp_path / "quiet") as quiet:
            quiet.read_ok(agent.path)
        assert rows(palace_home) == rows(tmp_path / "quiet")

    # R1: four at once, on many files that are all there from the start.
    def test_backfills_that_race_over_the_same_history_file_it_once(
        self, tmp_path, home, palace_home, project
    ):
        stories = [Story(number, SEED) for number in range(1, 13)]
        for story in stories:
            path = project / f"{story.lines.session}.jsonl"
            path.write_bytes(b"".join(line for _ in range(12) for line in story.turn()))
        with ExitStack() as stack:
            racing = [
                stack.enter_context(Program("backfill", log=tmp_path / f"backfill-{n}.log"))
                for n in range(4)
            ]
            assert [one.wait() for one in racing] == [0, 0, 0, 0], [r.output() for r in racing]
        assert stored(palace_home) == {s.lines.session: s.truth() for s in stories}

    # R5: whoever was overtaken throws its work away, what it would have counted included.
    def test_a_reader_that_another_one_overtakes_throws_its_work_away(
        self, home, palace_home, project
    ):
        story = Story(1, SEED)
        path = project / f"{story.lines.session}.jsonl"
        path.write_bytes(story.lines.line("system") + b"".join(story.turn()))
        other = Capturing(palace_home)

        class Overtaken(Disk):
            """Between the look and the commit of this reader the other one reads."""

            looks = 0

            def look_at(self, descriptor: int) -> Look:
                self.looks += 1
                if self.looks % 2 == 0:
                    other.read_ok(path)
                return super().look_at(descriptor)

        with other, Capturing(palace_home, disk=Overtaken()) as captured:
            for _ in range(3):
                once = captured.capture.read(str(path), cold=True)
                assert (once.result, once.more) == (Result.OVERTAKEN, True)
                assert once.filed.drawers == 0
                with path.open("ab") as stream:
                    stream.write(story.lines.line("system") + b"".join(story.turn()))
            other.read_ok(path)
            captured.check()
            tallies = "SELECT count FROM tallies WHERE rule = 'system'"
            assert captured.palace.db.execute(tallies).fetchall() == [(4,)]
        assert stored(palace_home) == {story.lines.session: story.truth()}

    # R1: a second backfill finds nothing to do, and says so.
    def test_a_second_backfill_changes_no_row(self, home, palace_home, project):
        story = Story(1, SEED)
        (project / f"{story.lines.session}.jsonl").write_bytes(
            b"".join(line for _ in range(20) for line in story.turn())
        )
        assert run("backfill").returncode == 0
        first = rows(palace_home)
        again = run("backfill")
        assert "0 exchanges new, 0 known" in again.stdout
        assert rows(palace_home) == first


class TestOneDaemon:
    def test_a_second_daemon_leaves_with_75_and_says_what_to_do(self, tmp_path, home, palace_home):
        with watching(tmp_path / "watch.log") as daemon:
            second = run("watch")
            assert second.returncode == EXIT_LOCKED
            error, hint = second.stderr.splitlines()
            assert error.startswith("error: another watcher is following this palace")
            assert hint.startswith("hint: ")
            assert not daemon.has_ended
            assert daemon.end() == 0

    def test_one_pass_beside_the_daemon_leaves_with_75_as_well(self, tmp_path, home, palace_home):
        with watching(tmp_path / "watch.log") as daemon:
            assert run("watch", "--once").returncode == EXIT_LOCKED
            assert daemon.end() == 0

    def test_of_ten_daemons_started_at_once_exactly_one_stays(self, tmp_path, home, palace_home):
        with ExitStack() as stack:
            ten = [
                stack.enter_context(Program("watch", log=tmp_path / f"watch-{n}.log"))
                for n in range(10)
            ]
            until(lambda: sum(one.has_ended for one in ten) == 9)
            (winner,) = [one for one in ten if not one.has_ended]
            losers = [one for one in ten if one is not winner]
            assert [one.wait() for one in losers] == [EXIT_LOCKED] * 9
            assert all("another watcher" in one.output() for one in losers)
            until(lambda: "watch.start" in winner.output())
            assert winner.end() == 0

    # R1: the lock goes with the process, whatever it died of; no file has to be removed by hand.
    def test_a_daemon_that_was_killed_leaves_no_stale_lock(
        self, tmp_path, home, palace_home, project
    ):
        for number in range(3):
            said = Lines(number + 1)
            (project / f"{said.session}.jsonl").write_bytes(said.prompt(f"prompt {number}"))
            with watching(tmp_path / "watch.log") as daemon:
                until(lambda: len(prompts(palace_home)) == number + 1)  # noqa: B023 - at once
                daemon.kill()
            with FileLock(palace_home / "watch.lock", timeout=0):
                pass

    # R12: whoever wins, what is in the home is the owner's alone.
    def test_files_in_the_home_are_the_owners_alone(self, tmp_path, home, palace_home, project):
        said = Lines(1)
        (project / f"{said.session}.jsonl").write_bytes(said.prompt("hello"))
        with watching(tmp_path / "watch.log") as daemon:
            until(lambda: prompts(palace_home) == ["hello"])
            modes = {p.name: oct(p.stat().st_mode & 0o777) for p in palace_home.iterdir()}
            assert daemon.end() == 0
        assert modes.pop("palace.db-wal", "0o600") == "0o600"
        assert modes.pop("palace.db-shm", "0o600") == "0o600"
        assert modes == dict.fromkeys(["palace.db", "watch.lock", "watch.pause"], "0o600")
        assert oct(palace_home.stat().st_mode & 0o777) == "0o700"
