"""The daemon and its roots: they come, go, move and are silent, and nothing is missed (R7)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.lines import Lines
from tests.faults.programs import (
    HANG_SECONDS,
    Program,
    count,
    prompts,
    until,
    watching,
)

RARELY = {"MEMPALACE_WATCH_RECONCILE_SECONDS": "3600"}  # what is found is found by an event
OFTEN = {"MEMPALACE_WATCH_RECONCILE_SECONDS": "1"}


@pytest.fixture
def root(home: Path) -> Path:
    return home / ".claude" / "projects"


def say(folder: Path, session: int, *texts: str) -> Path:
    """A session of some prompts, in a folder that is made for it."""
    said = Lines(session)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{said.session}.jsonl"
    path.write_bytes(b"".join(said.prompt(text) for text in texts))
    return path


class TestRoots:
    def test_a_root_that_does_not_exist_yet_is_followed_when_it_appears(
        self, tmp_path, root, palace_home
    ):
        with watching(tmp_path / "watch.log", OFTEN) as daemon:
            say(root / "-home-ada-shop", 1, "hello")
            until(lambda: prompts(palace_home) == ["hello"])
            assert daemon.end() == 0

    def test_a_file_in_a_new_folder_is_read_by_events_alone(self, tmp_path, root, palace_home):
        root.mkdir(parents=True)
        with watching(tmp_path / "watch.log", RARELY) as daemon:
            until(lambda: count(palace_home, "notes"))  # the first look is over
            for number in range(1, 21):
                say(root / f"-home-ada-shop-{number}" / "deep" / "er", number, f"p{number:02}")
            until(lambda: prompts(palace_home) == [f"p{number:02}" for number in range(1, 21)])
            assert daemon.end() == 0
        assert "Warning" not in daemon.output()  # watchdog's name every folder, hundreds of times

    def test_a_folder_that_is_moved_in_is_read_by_events_alone_and_followed(
        self, tmp_path, root, palace_home
    ):
        root.mkdir(parents=True)
        path = say(tmp_path / "restored" / "-home-ada-shop", 1, "hello")
        with watching(tmp_path / "watch.log", RARELY) as daemon:
            until(lambda: count(palace_home, "notes"))
            (tmp_path / "restored").rename(root / "restored")
            until(lambda: prompts(palace_home) == ["hello"])
            moved = root / "restored" / "-home-ada-shop" / path.name
            said = Lines(1)
            said.prompt("hello")
            with moved.open("ab") as stream:
                stream.write(said.prompt("more"))
            until(lambda: prompts(palace_home) == ["hello", "more"])
            assert daemon.end() == 0

    # The observer outlives its dead emitter: only a look at the root itself tells.
    def test_a_root_that_is_removed_and_made_anew_is_followed_again(
        self, tmp_path, root, palace_home
    ):
        say(root / "-home-ada-shop", 1, "first")
        with watching(tmp_path / "watch.log", OFTEN) as daemon:
            until(lambda: prompts(palace_home) == ["first"])
            for number in (2, 3):
                shutil.rmtree(root)
                say(root / "-home-ada-shop", number, f"number {number}")
                until(lambda: f"number {number}" in prompts(palace_home))  # noqa: B023 - at once
            assert daemon.end() == 0
        assert prompts(palace_home) == ["first", "number 2", "number 3"]

    # Removed and made anew between two looks: only its identity has changed.
    def test_a_root_replaced_by_another_folder_is_followed_again(self, tmp_path, root, palace_home):
        say(root / "-home-ada-shop", 1, "first")
        with watching(tmp_path / "watch.log", OFTEN) as daemon:
            until(lambda: prompts(palace_home) == ["first"])
            say(tmp_path / "other" / "-home-ada-shop", 2, "second")
            root.rename(tmp_path / "old")
            (tmp_path / "other").rename(root)
            until(lambda: prompts(palace_home) == ["first", "second"])
            said = Lines(3)
            (root / "-home-ada-shop" / f"{said.session}.jsonl").write_bytes(said.prompt("third"))
            until(lambda: prompts(palace_home) == ["first", "second", "third"])
            assert daemon.end() == 0

    def test_the_folder_that_claude_config_dir_names_is_followed_and_the_usual_one_is_not(
        self, tmp_path, home, palace_home
    ):
        say(home / ".claude" / "projects" / "-home-ada-shop", 1, "usual")
        say(tmp_path / "elsewhere" / "projects" / "-home-ada-shop", 2, "elsewhere")
        env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")}
        with watching(tmp_path / "watch.log", env) as daemon:
            until(lambda: prompts(palace_home))
            say(tmp_path / "elsewhere" / "projects" / "-home-ada-shop", 3, "more")
            until(lambda: prompts(palace_home) == ["elsewhere", "more"])
            assert daemon.end() == 0


# A daemon whose events never come, as on a network folder or a full queue of the system.
_DEAF = """
import sys
from watcher import events
from mempalace.__main__ import main
events._Handler.dispatch = lambda self, event: None
sys.exit(main(["watch"]))
"""


class TestEvents:
    def test_without_any_event_the_scan_alone_stores_what_is_written(
        self, tmp_path, root, palace_home
    ):
        root.mkdir(parents=True)
        log = tmp_path / "watch.log"
        with log.open("wb") as stream:
            deaf = subprocess.Popen(
                [sys.executable, "-P", "-c", _DEAF],
                stdout=stream, stderr=stream, env={**os.environ, **OFTEN},
            )  # fmt: skip
        try:
            until(lambda: b"watch.start" in log.read_bytes())
            for number in (1, 2, 3):
                say(root / f"-home-ada-{number}", number, f"prompt {number}")
                until(lambda: f"prompt {number}" in prompts(palace_home))  # noqa: B023 - at once
            said = Lines(1)
            said.prompt("prompt 1")
            with (root / "-home-ada-1" / f"{said.session}.jsonl").open("ab") as stream:
                stream.write(said.prompt("more"))
            until(lambda: "more" in prompts(palace_home))
            deaf.send_signal(signal.SIGTERM)
            assert deaf.wait(HANG_SECONDS) == 0
        finally:
            if deaf.poll() is None:
                deaf.kill()
                deaf.wait()

    # More than the list of dirty paths, or the system's queue, is sure to hold.
    def test_three_thousand_files_made_while_it_is_stopped_are_all_stored(
        self, tmp_path, root, palace_home
    ):
        root.mkdir(parents=True)
        with watching(tmp_path / "watch.log", RARELY) as daemon:
            until(lambda: count(palace_home, "notes"))
            daemon.send(signal.SIGSTOP)
            for number in range(3000):
                say(root / f"-home-ada-{number % 60}", number + 1, f"p{number:04}")
            daemon.send(signal.SIGCONT)
            until(lambda: count(palace_home, "exchanges") == 3000)
            assert daemon.end() == 0
        assert prompts(palace_home) == [f"p{number:04}" for number in range(3000)]

    def test_the_dirty_list_that_overflows_is_made_good_by_a_scan(
        self, tmp_path, root, palace_home
    ):
        root.mkdir(parents=True)
        narrow = _DEAF.replace("_Handler.dispatch = lambda self, event: None", "_MOST_PATHS = 2")
        log = tmp_path / "watch.log"
        with log.open("wb") as stream:
            daemon = subprocess.Popen(
                [sys.executable, "-P", "-c", narrow],
                stdout=stream, stderr=stream, env={**os.environ, **RARELY},
            )  # fmt: skip
        try:
            until(lambda: count(palace_home, "notes"))
            daemon.send_signal(signal.SIGSTOP)
            for number in range(100):
                say(root / f"-home-ada-{number % 5}", number + 1, f"p{number:04}")
            daemon.send_signal(signal.SIGCONT)
            until(lambda: count(palace_home, "exchanges") == 100)
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(HANG_SECONDS) == 0
        finally:
            if daemon.poll() is None:
                daemon.kill()
                daemon.wait()


# docs/design.md: an `enqueue` that nothing ends is stored when the file is cold.
def test_what_waits_for_a_cold_file_is_not_forgotten_when_the_daemon_ends(
    tmp_path, root, palace_home
):
    path = say(root / "-home-ada-shop", 1, "hello")
    said = Lines(1)
    said.prompt("hello")
    with path.open("ab") as stream:
        stream.write(said.queue("enqueue", "and then this"))
    with watching(tmp_path / "watch.log") as daemon:
        until(lambda: prompts(palace_home) == ["hello"])
        assert daemon.end() == 0
    with Program("watch", "--once", log=tmp_path / "once.log") as once:
        assert once.wait() == 0
    assert prompts(palace_home) == ["and then this", "hello"]


def test_a_file_of_another_day_that_still_waits_is_finished_by_the_next_daemon(
    tmp_path, root, palace_home
):
    path = say(root / "-home-ada-shop", 1, "hello")
    said = Lines(1)
    said.prompt("hello")
    with path.open("ab") as stream:
        stream.write(said.queue("enqueue", "and then this"))
    with watching(tmp_path / "watch.log") as daemon:
        until(lambda: prompts(palace_home) == ["hello"])
        assert daemon.end() == 0
    yesterday = path.stat().st_mtime - 86_400
    os.utime(path, (yesterday, yesterday))
    with watching(tmp_path / "watch.log") as daemon:
        until(lambda: prompts(palace_home) == ["and then this", "hello"])
        assert daemon.end() == 0
