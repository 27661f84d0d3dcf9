"""The watcher on a machine that fails: every state is told, captured through, and ends (R7)."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from mempalace.errors import EXIT_DEGRADED, EXIT_LOCKED
from mempalace.store.heartbeat import PAUSE_BYTES
from tests.faults.injected import Faults
from tests.faults.lines import Lines
from tests.faults.programs import Program, count, prompts, run, until, watching

OFTEN = {"MEMPALACE_WATCH_RECONCILE_SECONDS": "1"}
RARELY = {"MEMPALACE_WATCH_RECONCILE_SECONDS": "3600"}  # only what is owed, or an event, comes soon


@pytest.fixture
def root(home: Path) -> Path:
    folder = home / ".claude" / "projects"
    (folder / "-home-ada-shop").mkdir(parents=True)
    return folder


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    return Faults(tmp_path / "faults")


def say(root: Path, number: int, text: str, folder: str = "-home-ada-shop") -> Path:
    said = Lines(number)
    path = root / folder / f"{said.session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(said.prompt(text))
    return path


def status() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(run("status", "--json").stdout)
    return told


def tells(kind: str, *words: str) -> bool:
    """Does `status --json` name all these words in one line of `kind`?"""
    return any(all(word in line for word in words) for line in status()[kind])


def state_of(root: Path) -> str:
    return str(next(one["state"] for one in status()["roots"] if one["path"] == str(root)))


class TestLimits:
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
    def test_without_watches_a_root_is_polled_and_told_until_there_are_some(
        self, tmp_path, root, palace_home, faults, number
    ):
        """R7: the limit of watches is a state with a fall-back, not an end."""
        faults.on("limit", str(number))
        with faults.watching(tmp_path / "watch.log", OFTEN) as daemon:
            until(lambda: state_of(root) == "polling")
            assert tells("notices", str(root), "no file events", os.strerror(number))
            say(root, 1, "by the scan")
            until(lambda: prompts(palace_home) == ["by the scan"])
            faults.off("limit")
            until(lambda: state_of(root) == "watching")
            assert not tells("notices", "no file events")
            assert daemon.end() == 0

    def test_a_polled_root_is_scanned_more_often_than_a_watched_one(
        self, tmp_path, root, palace_home, faults
    ):
        """R7: the fall-back captures within seconds, however rare the scan is set."""
        faults.on("limit", str(errno.ENOSPC))
        with faults.watching(tmp_path / "watch.log", RARELY) as daemon:
            until(lambda: state_of(root) == "polling")
            say(root, 1, "soon enough")
            until(lambda: prompts(palace_home) == ["soon enough"])
            assert daemon.end() == 0

    def test_folders_that_got_no_watch_because_the_limit_came_midway_are_told(
        self, tmp_path, root, palace_home, faults
    ):
        """R7: the observer says nothing of nested folders that it could not watch."""
        faults.on("no-watches")
        with faults.watching(tmp_path / "watch.log", OFTEN) as daemon:
            until(lambda: tells("notices", str(root), "the limit of watches is reached"))
            faults.off("no-watches")
            until(lambda: state_of(root) == "watching")
            assert daemon.end() == 0


class TestEvents:
    def test_a_file_system_that_tells_of_nothing_is_polled(
        self, tmp_path, root, palace_home, faults
    ):
        """R7: what another machine writes raises no event here."""
        faults.on("filesystem", "nfs4")
        faults.on("deaf")
        with faults.watching(tmp_path / "watch.log", RARELY) as daemon:
            until(lambda: tells("notices", "polling: nfs4 does not tell of changes"))
            say(root, 1, "from afar")
            until(lambda: prompts(palace_home) == ["from afar"])
            assert daemon.end() == 0

    def test_changes_that_no_event_told_of_are_evidence_until_events_come_again(
        self, tmp_path, root, palace_home, faults
    ):
        """R7: no file of ours is put into a root to try it (R4); what is written there tries it."""
        with faults.watching(tmp_path / "watch.log", OFTEN) as daemon:
            until(lambda: state_of(root) == "watching")
            faults.on("deaf")
            say(root, 1, "unheard")
            until(lambda: tells("notices", "no file event told of"))
            assert state_of(root) == "polling"
            assert prompts(palace_home) == ["unheard"]
            faults.off("deaf")
            say(root, 2, "heard")
            until(lambda: state_of(root) == "watching")
            assert prompts(palace_home) == ["heard", "unheard"]
            assert daemon.end() == 0

    def test_emitters_that_died_are_made_anew_and_what_was_missed_is_read(
        self, tmp_path, root, palace_home, faults
    ):
        """R7: the observer outlives its emitters, and would never say so."""
        with faults.watching(tmp_path / "watch.log", RARELY) as daemon:
            until(lambda: state_of(root) == "watching")
            faults.on("kill-emitters")
            until(lambda: "events.died" in daemon.output())
            say(root, 1, "after the death")
            until(lambda: prompts(palace_home) == ["after the death"])
            assert "is followed anew" in daemon.output()
            assert daemon.end() == 0

    def test_a_root_that_is_lost_is_told_and_followed_when_it_is_back(
        self, tmp_path, root, palace_home
    ):
        """R7: within one interval, and by events from then on."""
        with watching(tmp_path / "watch.log", OFTEN) as daemon:
            until(lambda: state_of(root) == "watching")
            shutil.rmtree(root)
            until(lambda: state_of(root) == "missing")
            say(root, 1, "back")
            until(lambda: prompts(palace_home) == ["back"])
            until(lambda: state_of(root) == "watching")
            assert daemon.end() == 0


def burst(root: Path, files: int, log: Path, palace_home: Path) -> None:
    """More events than the system's queue holds, while the daemon sleeps; it must find out."""
    for number in range(50):
        (root / f"-home-ada-{number}").mkdir()  # watched from the start
    with watching(log, {"MEMPALACE_WATCH_RECONCILE_SECONDS": "60"}) as daemon:
        until(lambda: state_of(root) == "watching")
        daemon.send(signal.SIGSTOP)
        for number in range(files):
            say(root, number + 1, f"p{number:05}", f"-home-ada-{number % 50}")
        daemon.send(signal.SIGCONT)
        until(lambda: tells("notices", "rescan owed"))
        wake_up = run("wake-up").stdout.splitlines()
        assert wake_up[1].startswith("! Capture is degraded: everything is looked at anew")
        until(lambda: count(palace_home, "exchanges") == files, 110)
        until(lambda: not tells("notices", "rescan owed"))
        assert status()["degraded"] == []
        assert daemon.end() == 0
    assert prompts(palace_home) == [f"p{number:05}" for number in range(files)]


class TestOverflow:
    """R7: events that were lost are a rescan that is owed, told until what it found is read."""

    def test_a_burst_while_the_consumer_sleeps_is_stored_and_told(
        self, tmp_path, root, palace_home
    ):
        queue = Path("/proc/sys/fs/inotify/max_queued_events")
        if not queue.exists() or int(queue.read_text()) > 17_000:
            pytest.skip("the queue of this system is another one, or too large to fill")
        burst(root, 6_000, tmp_path / "watch.log", palace_home)  # four events each

    @pytest.mark.soak
    @pytest.mark.timeout(900)
    def test_twenty_thousand_creations_while_the_consumer_sleeps(self, tmp_path, root, palace_home):
        burst(root, 20_000, tmp_path / "watch.log", palace_home)


class TestRoots:
    def test_a_root_that_the_watcher_may_not_read_is_degraded_until_it_may(
        self, tmp_path, root, palace_home, faults
    ):
        """R7: also where whoever asks could read it: a service has other rights than a terminal."""
        say(root, 1, "first")
        with faults.watching(tmp_path / "watch.log", OFTEN) as daemon:
            until(lambda: prompts(palace_home) == ["first"])
            faults.on("unreadable")
            until(lambda: tells("degraded", "the watcher may not read it", "Permission denied"))
            assert run("status").returncode == EXIT_DEGRADED
            assert "the watcher may not read" in run("wake-up").stdout.splitlines()[1]
            assert status()["gone_files"] == 0  # R4: unseen is not gone
            faults.off("unreadable")
            until(lambda: status()["degraded"] == [])
            assert daemon.end() == 0


class TestPause:
    def test_a_disk_that_is_full_is_told_at_once_and_ends_by_itself(
        self, tmp_path, root, palace_home, faults
    ):
        """R7: visible although the palace cannot be written; R5: nothing is accounted for."""
        with faults.watching(tmp_path / "watch.log", OFTEN) as daemon:
            until(lambda: state_of(root) == "watching")
            faults.on("full")
            say(root, 1, "waits for room")
            until(lambda: tells("degraded", "nothing can be stored", "full"))
            told = status()
            assert (told["daemon"]["up"], told["daemon"]["state"]) == (True, "paused")
            assert run("status").returncode == EXIT_DEGRADED
            assert run("wake-up").stdout.splitlines()[1].startswith("! Capture is paused")
            assert (palace_home / "watch.pause").stat().st_size == PAUSE_BYTES
            assert prompts(palace_home) == []
            faults.off("full")
            until(lambda: prompts(palace_home) == ["waits for room"])
            until(lambda: status()["degraded"] == [])
            assert status()["daemon"]["state"] == "watching"
            assert daemon.end() == 0

    def test_a_pause_outlives_nobody(self, tmp_path, root, palace_home, faults):
        """R7: the daemon that was killed while it was paused is down, not paused."""
        with faults.watching(tmp_path / "watch.log", OFTEN) as daemon:
            faults.on("full")
            until(lambda: tells("degraded", "nothing can be stored"))
            daemon.kill()
        assert status()["daemon"]["up"] is False
        assert not tells("degraded", "nothing can be stored")


class TestClock:
    @pytest.mark.parametrize("jump", ["86400", "-86400"])
    def test_a_jump_costs_one_scan_and_no_more(self, tmp_path, root, palace_home, faults, jump):
        """R8, R7: sleep and a clock that was set look alike; either may hide what was written."""
        faults.on("deaf")
        with faults.watching(tmp_path / "watch.log", RARELY) as daemon:
            until(lambda: count(palace_home, "notes"))
            say(root, 1, "while it slept")
            before = int(faults.value("walks") or 0)
            faults.on("clock", jump)
            daemon.send(signal.SIGHUP)  # any reason to look at the clock will do
            until(lambda: prompts(palace_home) == ["while it slept"])
            assert daemon.output().count("the clock jumped by") == 1
            for number in (2, 3, 4):  # it goes on turning, and stays with that one scan
                daemon.send(signal.SIGHUP)
                until(lambda: daemon.output().count("config.reload") == number)  # noqa: B023
            scans = (int(faults.value("walks") or 0) - before) / 3  # roots
            assert scans <= 5  # one for the jump, and one for each reload
            assert daemon.output().count("the clock jumped by") == 1
            assert daemon.end() == 0


def compete(folder: Path, times: int, palace_home: Path) -> None:
    for number in range(times):
        with ExitStack() as stack:
            two = [
                stack.enter_context(Program("watch", log=folder / f"{number}-{n}.log"))
                for n in range(2)
            ]
            until(lambda: any(one.has_ended for one in two))  # noqa: B023 - at once
            (loser,) = [one for one in two if one.has_ended]
            (winner,) = [one for one in two if not one.has_ended]
            assert loser.wait() == EXIT_LOCKED
            until(lambda: "watch.start" in winner.output())  # noqa: B023 - at once
            winner.kill()
    with watching(folder / "last.log") as daemon:
        until(lambda: status()["daemon"]["up"])
        assert daemon.end() == 0
    assert {p.name for p in palace_home.iterdir()} == {"palace.db", "watch.lock", "watch.pause"}


class TestOneWriter:
    """R1: of two daemons started at once exactly one stays, and kill -9 leaves nothing stale."""

    def test_ten_times(self, tmp_path, root, palace_home):
        compete(tmp_path, 10, palace_home)

    @pytest.mark.soak
    def test_fifty_times(self, tmp_path, root, palace_home):
        compete(tmp_path, 50, palace_home)


def test_open_files_do_not_grow_with_the_files_that_are_known(tmp_path, root, palace_home):
    """R8: 10,000 known files, idle and read on, cost not one descriptor."""
    for number in range(10_000):
        folder = root / f"-home-ada-{number % 100}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.jsonl").write_bytes(b"{}\n")
    with watching(tmp_path / "watch.log", OFTEN):
        (process,) = [
            one for one in psutil.Process().children() if "watch" in " ".join(one.cmdline())
        ]
        until(lambda: count(palace_home, "files") == 10_000)
        seen = {process.num_fds()}
        for number in range(3):
            said = Lines(number + 1)
            path = root / "-home-ada-1" / f"{said.session}.jsonl"
            path.write_bytes(said.prompt(f"p{number}"))
            until(lambda: f"p{number}" in prompts(palace_home))  # noqa: B023 - at once
            seen.add(process.num_fds())
            time.sleep(1)  # idle: a scan or two
            seen.add(process.num_fds())
        assert max(seen) - min(seen) <= 1, seen  # a transcript that is being read
