"""The real daemon, killed and stopped at any moment, under a writer that tears its lines.

What is compared is a model of what was written (tests/faults/lines.py) with every record that the
palace holds: nothing lost, nothing doubled, nothing altered, in order.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from pathlib import Path

import pytest
from filelock import FileLock

from mempalace.config import Config
from tests.capturing import Capturing
from tests.faults.lines import Lines, Record, Story
from tests.faults.programs import Program as Daemon
from tests.faults.programs import (
    accounted,
    prompts,
    run,
    stored,
    until,
    watching,
)
from watcher.daemon import Daemon as Watcher

FILES = 5
HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SEED = int(os.environ.get("MEMPALACE_TEST_SEED", "20260301"))


class Agents:
    """Several agents that write at once, in threads of their own, and tear every third line."""

    def __init__(self, root: Path, seed: int, *, files: int = FILES) -> None:
        self.stories = [Story(number, seed) for number in range(1, files + 1)]
        self._paths = [root / "-home-ada-shop" / f"{s.lines.session}.jsonl" for s in self.stories]
        self._random = random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write, name="agents")
        self._paths[0].parent.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Agents:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def burst(self, turns: int) -> None:
        """Many turns at once, by the caller's thread."""
        for story, path in zip(self.stories, self._paths, strict=True):
            with path.open("ab") as stream:
                for _ in range(turns):
                    stream.write(b"".join(story.turn()))

    def truth(self) -> dict[str, list[list[Record]]]:
        return {s.lines.session: s.truth() for s in self.stories if s.exchanges}

    def written(self) -> int:
        return sum(path.stat().st_size for path in self._paths if path.exists())

    def _write(self) -> None:
        while not self._stopping.is_set():
            which = self._random.randrange(len(self.stories))
            for line in self.stories[which].turn():
                self._append(self._paths[which], line)
            self._stopping.wait(self._random.uniform(0, 0.004))

    def _append(self, path: Path, line: bytes) -> None:
        cut = self._random.randrange(len(line)) if self._random.random() < 0.3 else 0
        with path.open("ab", buffering=0) as stream:
            if cut:
                stream.write(line[:cut])
                time.sleep(self._random.uniform(0, 0.005))
            stream.write(line[cut:])


def kill_again_and_again(kills: int, tmp_path: Path, home: Path, palace_home: Path) -> None:
    chance = random.Random(SEED + kills)
    log = tmp_path / "watch.log"
    torn_off = progressed = before = 0
    with Agents(home / ".claude" / "projects", SEED) as agents:
        for _ in range(kills):
            with Daemon("watch", log=log) as daemon:
                time.sleep(chance.uniform(0.1, 0.7))  # start-up takes about 0.2 s of it
                assert not daemon.has_ended, daemon.output()
                written = agents.written()
                daemon.kill()
            now = accounted(palace_home)
            torn_off += now < written
            progressed += now > before
            before = now
        agents.stop()
        truth = agents.truth()
    assert torn_off, "no kill met work that was not done: the test proves nothing"
    assert progressed, "no kill came after work that was done: the test proves nothing"
    with watching(log) as daemon:
        until(lambda: accounted(palace_home) == agents.written())
        assert daemon.end() == 0
    assert stored(palace_home) == truth
    with Capturing(palace_home) as captured:
        captured.check()
        assert captured.palace.db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert not captured.palace.db.execute("SELECT * FROM quarantine").fetchall()


class TestKill:
    # R1, R5: whatever crashes, every complete record is stored once, as it was written.
    def test_forty_random_kills_lose_double_and_alter_nothing(self, tmp_path, home, palace_home):
        kill_again_and_again(40, tmp_path, home, palace_home)

    @pytest.mark.soak
    def test_two_hundred_random_kills_lose_double_and_alter_nothing(
        self, tmp_path, home, palace_home
    ):
        kill_again_and_again(200, tmp_path, home, palace_home)

    # R1: a backfill is killed like a daemon, and the next one goes on where it stopped.
    def test_a_backfill_that_is_killed_ten_times_ends_with_every_word_once(
        self, tmp_path, home, palace_home
    ):
        chance = random.Random(SEED)
        agents = Agents(home / ".claude" / "projects", SEED)
        agents.burst(60)
        kept = 0
        for _ in range(10):
            with Daemon("backfill", log=tmp_path / "backfill.log") as backfill:
                time.sleep(chance.uniform(0.15, 0.35))
                backfill.kill()
            assert accounted(palace_home) >= kept  # what was read is not read again
            kept = accounted(palace_home)
        assert run("backfill").returncode == 0
        assert accounted(palace_home) == agents.written()
        assert stored(palace_home) == agents.truth()

    # R1: the first start may be the one that dies, while the tables are being made.
    def test_kills_while_the_palace_is_being_made_leave_none_or_a_whole_one(
        self, tmp_path, home, palace_home
    ):
        chance = random.Random(SEED)
        agents = Agents(home / ".claude" / "projects", SEED, files=1)
        agents.burst(3)
        for number in range(12):
            new = tmp_path / f"palace-{number}"
            env = {"MEMPALACE_HOME": str(new)}
            with Daemon("watch", log=tmp_path / "watch.log", env=env) as daemon:
                time.sleep(chance.uniform(0.12, 0.24))
                daemon.kill()
            assert run("watch", "--once", env={**os.environ, **env}).returncode == 0
            assert stored(new) == agents.truth()


class TestSignals:
    # R7: a machine that slept has missed nothing.
    def test_what_is_written_while_it_is_stopped_is_stored_when_it_goes_on(
        self, tmp_path, home, palace_home
    ):
        agents = Agents(home / ".claude" / "projects", SEED)
        with watching(tmp_path / "watch.log") as daemon:
            for _ in range(3):
                daemon.send(signal.SIGSTOP)
                agents.burst(4)
                daemon.send(signal.SIGCONT)
                until(lambda: accounted(palace_home) == agents.written())
            assert daemon.end() == 0
        assert stored(palace_home) == agents.truth()

    # R1: SIGTERM is obeyed between two transactions.
    def test_sigterm_in_the_middle_of_work_leaves_with_0_the_lock_free_and_no_log_behind(
        self, tmp_path, home, palace_home
    ):
        agents = Agents(home / ".claude" / "projects", SEED)
        agents.burst(60)
        with watching(tmp_path / "watch.log") as daemon:
            until(lambda: accounted(palace_home))
            assert daemon.end() == 0
        assert accounted(palace_home) < agents.written(), "it was not in the middle of anything"
        with FileLock(palace_home / "watch.lock", timeout=0):
            pass
        assert not (palace_home / "palace.db-wal").exists()
        db = sqlite3.connect(f"file:{palace_home / 'palace.db'}?immutable=1", uri=True)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        db.close()
        assert run("watch", "--once").returncode == 0
        assert stored(palace_home) == agents.truth()

    # R1: SIGTERM and SIGINT are the same to it, also while it has nothing to do.
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_it_leaves_with_0_when_it_is_idle(self, tmp_path, home, palace_home, number):
        with watching(tmp_path / "watch.log") as daemon:
            daemon.send(number)
            assert daemon.wait() == 0
        assert "Traceback" not in daemon.output()

    # The wake-up of a signal is one byte in a pipe: whoever reads it must look at the flag.
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_that_comes_while_lines_settle_is_not_slept_over(
        self, home, palace_home, number
    ):
        before = [(one, signal.getsignal(one)) for one in HANDLED]
        daemon = Watcher()
        seen: list[float] = []
        wait = daemon._dirty.wait

        def waiting(seconds: float) -> None:
            if seconds < 0.1:  # lines settle
                os.kill(os.getpid(), number)
            else:
                seen.append(seconds)
                if len(seen) == 1:
                    daemon._dirty.add(str(home / "a.jsonl"))  # lines come: it is awake again
                else:
                    os.kill(os.getpid(), signal.SIGTERM)
            wait(min(seconds, 0.1))

        daemon._dirty.wait = waiting  # type: ignore[method-assign]
        loads: list[int] = []
        load = daemon._load

        def loading() -> Config:
            loads.append(len(seen))
            return load()

        daemon._load = loading
        try:
            daemon.run()
        finally:
            for one, handler in before:
                signal.signal(one, handler)
        if number == signal.SIGTERM:
            assert len(seen) == 1  # it left and did not wait again
        else:
            assert loads == [1]  # it read the configuration and did not wait first


class TestReload:
    def test_sighup_follows_a_root_that_config_yaml_names_now(self, tmp_path, home, palace_home):
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        said = Lines(1)
        (elsewhere / f"{said.session}.jsonl").write_bytes(said.prompt("hello from elsewhere"))
        with watching(tmp_path / "watch.log") as daemon:
            (palace_home / "config.yaml").write_text(f"roots.claude-code: ['{elsewhere}']\n")
            daemon.send(signal.SIGHUP)
            until(lambda: prompts(palace_home) == ["hello from elsewhere"])
            assert daemon.end() == 0

    # R10: an exclusion acts from the reload on, without a restart.
    def test_sighup_excludes_what_config_yaml_excludes_now(self, tmp_path, home, palace_home):
        folder = home / ".claude" / "projects" / "-home-ada-shop"
        folder.mkdir(parents=True)
        one, two = Lines(1), Lines(2, cwd="/home/ada/diary")
        with watching(tmp_path / "watch.log") as daemon:
            (palace_home / "config.yaml").write_text("exclude: [/home/ada/diary]\n")
            daemon.send(signal.SIGHUP)
            until(lambda: "config.reload" in daemon.output())
            (folder / f"{two.session}.jsonl").write_bytes(two.prompt("not this") + two.answer("no"))
            (folder / f"{one.session}.jsonl").write_bytes(one.prompt("but this"))
            until(lambda: prompts(palace_home) == ["but this"])
            assert daemon.end() == 0
        assert run("watch", "--once").returncode == 0
        assert prompts(palace_home) == ["but this"]

    # R7: a typo is named in the log and does not end capture.
    @pytest.mark.parametrize(
        "text", ["exclud: [a]\n", "exclude: [\n", "watch: {reconcile_seconds: 0}"]
    )
    def test_sighup_with_a_bad_config_names_it_and_goes_on_as_before(
        self, tmp_path, home, palace_home, text
    ):
        folder = home / ".claude" / "projects" / "-home-ada-shop"
        folder.mkdir(parents=True)
        said = Lines(1)
        with watching(tmp_path / "watch.log") as daemon:
            (palace_home / "config.yaml").write_text(text)
            daemon.send(signal.SIGHUP)
            until(lambda: "config.refused" in daemon.output())
            (folder / f"{said.session}.jsonl").write_bytes(said.prompt("still here?"))
            until(lambda: prompts(palace_home) == ["still here?"])
            assert not daemon.has_ended
            assert daemon.end() == 0
        assert "config.yaml" in daemon.output()
