"""The palace itself in trouble: full, locked, damaged, foreign, newer, not writable, not a folder.

Everywhere the same is asked: the error names the file and what to do, nothing is overwritten, the
checkpoint does not move, and capture goes on when the trouble is over.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mempalace.errors import EXIT_CONFIG, EXIT_ERROR, EXIT_LOCKED, Locked, MemPalaceError
from mempalace.store import palace as palace_module
from mempalace.store.palace import Palace, PalaceDamaged, PalaceFull
from tests.capturing import Capturing
from tests.faults.lines import Story
from tests.faults.programs import Program, accounted, run, stored, until, watching

SEED = 7


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / ".claude" / "projects" / "-home-ada-shop"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def story(project: Path) -> Story:
    """A session of some hundred kilobytes on disk."""
    told = Story(1, SEED)
    path = project / f"{told.lines.session}.jsonl"
    path.write_bytes(b"".join(line for _ in range(80) for line in told.turn()))
    return told


def append(path: Path, *parts: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(b"".join(parts))


def digest(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def lines_of(stderr: str) -> tuple[str, str]:
    """The error and its hint; nothing else may stand there."""
    error, hint = stderr.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    return error, hint


# --- a full disk --------------------------------------------------------------------------------


class TestFullDisk:
    """R5: what could not be stored is not accounted for."""

    def test_a_palace_that_may_not_grow_keeps_its_checkpoint_and_goes_on_when_it_may(
        self, project, story, palace_home
    ):
        path = next(project.iterdir())
        append(path, *(line for _ in range(240) for line in story.turn()))
        with Capturing(palace_home.with_name("roomy")) as captured:
            captured.read_ok(path)
            whole = captured.palace.db.execute("PRAGMA page_count").fetchone()[0]
        with Capturing(palace_home) as captured:
            captured.palace.db.execute(f"PRAGMA max_page_count = {whole * 3 // 4}")
            with pytest.raises(PalaceFull) as caught:
                captured.read(path)
            assert str(palace_home) in caught.value.what
            assert "free some space" in caught.value.hint
            offset = accounted(palace_home)
            assert 0 < offset < path.stat().st_size
            for _ in range(3):
                with pytest.raises(PalaceFull):
                    captured.read(path)
            assert accounted(palace_home) == offset
            captured.check()
            captured.palace.db.execute("PRAGMA max_page_count = 1000000")
            captured.read_ok(path)
            captured.check()
        assert stored(palace_home) == {story.lines.session: story.truth()}

    # The limit of a process stands for the disk's: a write behind it fails with EFBIG.
    def test_a_backfill_that_fills_the_disk_says_so_and_the_next_one_ends_the_work(
        self, project, story, palace_home
    ):
        done = subprocess.run(
            ["/bin/sh", "-c", 'trap "" XFSZ; ulimit -f 700; exec "$@"', "sh", *backfill()],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == EXIT_ERROR, done.stdout
        error, hint = lines_of(done.stderr)
        assert str(palace_home) in error
        assert "space" in hint
        assert accounted(palace_home) < next(project.iterdir()).stat().st_size
        assert run("backfill").returncode == 0
        assert stored(palace_home) == {story.lines.session: story.truth()}
        with Capturing(palace_home) as captured:
            captured.check()

    def test_the_daemon_waits_for_room_and_goes_on_by_itself(
        self, tmp_path, project, palace_home, small_disk
    ):
        ballast = small_disk / "ballast"
        env = {
            "MEMPALACE_HOME": str(small_disk / "palace"),
            "MEMPALACE_WATCH_RECONCILE_SECONDS": "3600",  # it must not need the next scan
        }
        home = small_disk / "palace"
        told = Story(1, SEED)
        path = project / f"{told.lines.session}.jsonl"
        path.touch()
        with watching(tmp_path / "watch.log", env) as daemon:
            fill(ballast)
            path.write_bytes(b"".join(line for _ in range(40) for line in told.turn()))
            until(lambda: "watch.trouble" in daemon.output())
            assert not daemon.has_ended
            assert str(home) in daemon.output()
            assert accounted(home) < path.stat().st_size
            shown = run("status", env={**os.environ, **env}).stdout  # R7: on a disk without a byte
            assert "degraded: nothing can be stored: the disk with" in shown
            ballast.unlink()
            until(lambda: accounted(home) == path.stat().st_size)
            assert daemon.end() == 0
        assert stored(home) == {told.lines.session: told.truth()}


def backfill() -> list[str]:
    from tests.faults.programs import COMMAND

    return [*COMMAND, "backfill"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB, where this machine lets us make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)],
        capture_output=True, check=False,
    )  # fmt: skip
    if not made or made.returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as stream:
        for size in (1 << 20, 1 << 12):
            try:
                while stream.write(b"\0" * size) == size:
                    pass
            except OSError:
                pass


# --- a lock that somebody keeps -------------------------------------------------------------------


class TestLocked:
    def test_a_writer_waits_for_another_and_goes_on(self, tmp_path, project, story, palace_home):
        Palace.writer(palace_home, create=True).close()
        other = sqlite3.connect(palace_home / "palace.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with Program("backfill", log=tmp_path / "backfill.log") as waiting:
            until(lambda: waiting.has_open(palace_home / "palace.db"))
            # A reader is answered meanwhile (R9).
            assert stored(palace_home) == {}
            assert not waiting.has_ended
            other.execute("COMMIT")
            assert waiting.wait() == 0
        other.close()
        assert stored(palace_home) == {story.lines.session: story.truth()}

    def test_after_the_timeout_the_error_says_that_somebody_else_writes(
        self, project, story, palace_home, monkeypatch
    ):
        monkeypatch.setattr(palace_module, "_BUSY_SECONDS", 0.2)
        path = next(project.iterdir())
        with Capturing(palace_home) as captured:
            other = sqlite3.connect(palace_home / "palace.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Locked) as caught:
                captured.read(path)
            assert str(palace_home / "palace.db") in caught.value.what
            assert caught.value.hint
            assert caught.value.exit_code == EXIT_LOCKED
            assert accounted(palace_home) == 0
            other.execute("ROLLBACK")
            other.close()
            captured.read_ok(path)
        assert stored(palace_home) == {story.lines.session: story.truth()}

    # R9: whoever searches does not wait, and sees one consistent moment.
    def test_a_reader_is_answered_while_a_writer_is_in_the_middle(
        self, project, story, palace_home
    ):
        assert run("backfill").returncode == 0
        with Palace.writer(palace_home) as palace, palace.transaction() as db:
            db.execute("DELETE FROM drawers")
            assert stored(palace_home) == {story.lines.session: story.truth()}
            db.execute("ROLLBACK")
            db.execute("BEGIN IMMEDIATE")
        assert stored(palace_home) == {story.lines.session: story.truth()}


# --- a file that is no palace ---------------------------------------------------------------------


def no_database(path: Path) -> None:
    path.write_bytes(random.Random(SEED).randbytes(40_000))


def garbage_header(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.write(b"\xde\xad\xbe\xef" * 25)


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 3)


COMMANDS = [["backfill"], ["backfill", "--dry-run"], ["watch", "--once"], ["watch"]]
DAMAGES = [no_database, garbage_header, cut_short]


class TestDamaged:
    """R4: only `forget` deletes captured words; a palace that cannot be read is not overwritten."""

    @pytest.fixture
    def path(self, project: Path, story: Story, palace_home: Path) -> Path:
        assert run("backfill").returncode == 0
        with next(project.iterdir()).open("ab") as stream:
            stream.write(story.lines.prompt("one more"))
        return palace_home / "palace.db"

    @pytest.mark.parametrize("damage", DAMAGES)
    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_writer_names_the_file_and_the_remedy_and_changes_no_byte(
        self, path, damage, command
    ):
        damage(path)
        before = digest(path)
        done = run(*command)
        assert done.returncode == EXIT_ERROR, done.stdout
        error, hint = lines_of(done.stderr)
        assert str(path) in error
        assert "mv " in hint
        assert digest(path) == before

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_a_reader_names_the_file_and_changes_no_byte(self, path, damage):
        damage(path)
        before = digest(path)
        with (
            pytest.raises(PalaceDamaged) as caught,
            Palace.reader(path.parent) as palace,
            palace.reading() as db,
        ):
            db.execute("SELECT SUM(LENGTH(text)) FROM drawers").fetchall()
        assert str(path) in caught.value.what
        assert digest(path) == before

    # The header is whole, so that only whoever meets the page can tell.
    def test_garbage_in_the_middle_ends_in_an_error_and_never_in_other_words(
        self, path, palace_home, story, project
    ):
        size, page = path.stat().st_size, 4096
        chance = random.Random(SEED)
        whole = path.read_bytes()
        truth = story.truth()
        seen: set[str] = set()
        for _ in range(12):
            path.write_bytes(whole)
            with path.open("r+b") as stream:
                for _ in range(6):
                    stream.seek(chance.randrange(2, size // page) * page)
                    stream.write(chance.randbytes(page))
            before = digest(path)
            try:
                with Palace.reader(palace_home) as palace, palace.reading() as db:
                    assert db.execute("PRAGMA integrity_check").fetchone() != ("ok",)
            except MemPalaceError as error:
                seen.add(error.what)
            assert digest(path) == before
            done = run("watch", "--once")
            assert done.returncode in (0, EXIT_ERROR)
            assert "Traceback" not in done.stderr
            if done.returncode:
                seen.add("error")
                error_line, _ = lines_of(done.stderr)
                assert str(path) in error_line
        assert "error" in seen
        assert all(str(path) in what for what in seen - {"error"})
        path.write_bytes(whole)
        assert run("watch", "--once").returncode == 0
        assert len(stored(palace_home)[story.lines.session]) == len(truth) + 1

    # Following the advice must work: move it away, backfill what is still on disk.
    def test_the_remedy_that_the_error_names_brings_the_words_back(self, path, palace_home, story):
        garbage_header(path)
        assert run("backfill").returncode == EXIT_ERROR
        path.rename(path.with_name("palace.db.damaged"))
        assert run("backfill").returncode == 0
        assert len(stored(palace_home)[story.lines.session]) == len(story.truth()) + 1

    def test_the_daemon_ends_when_the_palace_is_damaged_under_it(
        self, tmp_path, path, project, story
    ):
        with watching(tmp_path / "watch.log") as daemon:
            until(lambda: accounted(path.parent) == next(project.iterdir()).stat().st_size)
            for name in ("palace.db-wal", "palace.db"):
                with (path.parent / name).open("r+b") as stream:
                    stream.write(b"\xde\xad\xbe\xef" * (path.parent / name).stat().st_size)
                    stream.truncate()
            with next(project.iterdir()).open("ab") as stream:
                stream.write(story.lines.prompt("x" * 200_000))
            assert daemon.wait() == EXIT_ERROR
            assert str(path) in daemon.output()
            assert "Traceback" not in daemon.output()


class TestForeign:
    @pytest.mark.parametrize("command", [["backfill"], ["watch", "--once"]])
    def test_a_database_of_another_program_is_left_alone(
        self, project, story, palace_home, command
    ):
        path = palace_home / "palace.db"
        palace_home.mkdir()
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE bookmarks (url TEXT)")
        other.execute("INSERT INTO bookmarks VALUES ('https://example.org')")
        other.commit()
        other.close()
        done = run(*command)
        assert done.returncode == EXIT_ERROR
        error, hint = lines_of(done.stderr)
        assert str(path) in error
        assert "MEMPALACE_HOME" in hint
        other = sqlite3.connect(path)
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]
        assert other.execute("SELECT url FROM bookmarks").fetchall() == [("https://example.org",)]
        assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        other.close()

    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_palace_of_a_newer_version_is_left_alone(self, project, story, palace_home, command):
        path = palace_home / "palace.db"
        Palace.writer(palace_home, create=True).close()
        newer = sqlite3.connect(path)
        newer.execute("PRAGMA user_version = 99")
        newer.close()
        before = digest(path)
        done = run(*command)
        assert done.returncode == EXIT_ERROR
        error, hint = lines_of(done.stderr)
        assert f"{path} was written by a newer MemPalace" in error
        assert "update" in hint
        assert digest(path) == before
        with pytest.raises(MemPalaceError, match="newer MemPalace"):
            Palace.reader(palace_home)

    # Whoever died between making the file and its tables left a file of no bytes.
    def test_a_palace_of_no_bytes_is_filled(self, project, story, palace_home):
        palace_home.mkdir()
        (palace_home / "palace.db").touch()
        assert run("watch", "--once").returncode == 0
        assert stored(palace_home) == {story.lines.session: story.truth()}


class TestHome:
    def test_a_home_that_is_a_file_is_a_configuration_error(self, project, story, palace_home):
        palace_home.write_text("not a folder\n")
        for command in (["backfill"], ["watch", "--once"], ["watch"]):
            done = run(*command)
            assert done.returncode == EXIT_CONFIG
            error, hint = lines_of(done.stderr)
            assert str(palace_home) in error
            assert hint
        assert palace_home.read_text() == "not a folder\n"

    def test_a_palace_that_is_a_folder_is_an_error_that_names_it(self, project, story, palace_home):
        (palace_home / "palace.db").mkdir(parents=True)
        for command in (["backfill"], ["watch", "--once"]):
            done = run(*command)
            assert done.returncode in (EXIT_ERROR, EXIT_CONFIG)
            error, _ = lines_of(done.stderr)
            assert str(palace_home / "palace.db") in error

    # R9: readers need no write permission.
    def test_a_read_only_home_still_answers_readers_and_refuses_writers_in_words(
        self, project, story, palace_home, read_only_home
    ):
        assert stored(palace_home) == {story.lines.session: story.truth()}
        done = run("backfill")
        assert done.returncode == EXIT_ERROR
        error, hint = lines_of(done.stderr)
        assert str(palace_home) in error
        assert hint

    @pytest.fixture
    def read_only_home(self, palace_home: Path, project: Path, story: Story) -> Iterator[None]:
        """A file system that is mounted read-only holds root back as well; else modes do."""
        assert run("backfill").returncode == 0
        if os.geteuid():
            palace_home.chmod(0o500)
            (palace_home / "palace.db").chmod(0o400)
            yield
            palace_home.chmod(0o700)
            return
        where = str(palace_home)
        steps = (["mount", "--bind", where, where], ["mount", "-o", "remount,bind,ro", where])
        for step in steps:
            if subprocess.run(step, capture_output=True, check=False).returncode:
                pytest.skip("this machine lets nobody mount a folder read-only")
        yield
        subprocess.run(["umount", "-l", where], check=True)
