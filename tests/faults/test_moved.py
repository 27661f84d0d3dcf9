"""palace.db moved, removed or replaced under whoever has it open: nobody stores where no one reads
(R7), and no log is played into another palace (R4)."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mempalace.cli import main
from mempalace.errors import EXIT_ERROR, EXIT_LOCKED, EXIT_OK
from mempalace.store.palace import Palace, PalaceMoved
from tests.faults.lines import Lines
from tests.faults.programs import Program, prompts, run, until, watching
from tests.faults.test_degraded import status
from watcher.backfill import Backfill, Summary


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / ".claude" / "projects" / "-home-ada-shop"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def daemon(tmp_path: Path, project: Path, palace_home: Path) -> Iterator[Program]:
    """It has stored one prompt."""
    say(project, 1, "before")
    with watching(tmp_path / "watch.log", {"MEMPALACE_WATCH_RECONCILE_SECONDS": "1"}) as program:
        until(lambda: prompts(palace_home) == ["before"])
        yield program


def say(project: Path, number: int, text: str) -> None:
    said = Lines(number)
    (project / f"{said.session}.jsonl").write_bytes(said.prompt(text))


def is_sound(home: Path) -> bool:
    with Palace.reader(home) as palace:
        return [row[0] for row in palace.db.execute("PRAGMA integrity_check")] == ["ok"]


def copy(path: Path, to: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("VACUUM INTO ?", (str(to),))


class TestDaemon:
    """R7: it comes to the palace that is at its path by itself."""

    @pytest.mark.parametrize("how", ["moved", "moved with its log", "removed"])
    def test_it_begins_a_new_one_and_reads_everything_anew(
        self, tmp_path, project, palace_home, daemon, how
    ):
        for path in sorted(palace_home.glob("palace.db*")):
            if how == "removed":
                path.unlink()
            elif how == "moved with its log" or path.name == "palace.db":
                path.rename(tmp_path / path.name)
        say(project, 2, "after")
        until(lambda: prompts(palace_home) == ["after", "before"])
        until(lambda: status()["daemon"]["up"])
        until(lambda: status()["notices"] == [])
        assert "palace.moved" in daemon.output()
        assert "watch.rescan why='palace.db is another one now'" in daemon.output()
        assert run("watch", "--once").returncode == EXIT_LOCKED  # it is still the only one
        assert run("doctor").returncode == EXIT_OK
        assert daemon.end() == EXIT_OK
        assert is_sound(palace_home)

    def test_beside_a_backfill_that_was_first(self, project, palace_home, daemon):
        (palace_home / "palace.db").rename(palace_home / "palace.db.damaged")
        assert run("backfill").returncode == EXIT_OK
        assert prompts(palace_home) == ["before"]
        say(project, 2, "after")
        until(lambda: prompts(palace_home) == ["after", "before"])
        assert daemon.end() == EXIT_OK
        assert is_sound(palace_home)

    def test_another_palace_in_its_place_is_taken_as_it_is(
        self, tmp_path, project, palace_home, daemon
    ):
        """R4: the log of the one before is not played into it."""
        backup = tmp_path / "backup.db"
        copy(palace_home / "palace.db", backup)
        for number in range(2, 40):
            say(project, number, f"p{number:02}")
        until(lambda: len(prompts(palace_home)) == 39)
        backup.rename(palace_home / "palace.db")
        say(project, 40, "after")
        until(lambda: "watch.rescan" in daemon.output())  # until then both are mixed for a reader
        until(lambda: "after" in prompts(palace_home) and len(prompts(palace_home)) == 40)
        assert daemon.end() == EXIT_OK
        assert is_sound(palace_home)

    def test_a_home_that_is_gone_is_not_made_again(self, project, palace_home, daemon):
        """Somebody took it away: whoever supervises the daemon hears of it."""
        shutil.rmtree(palace_home)
        say(project, 2, "after")
        assert daemon.wait() == EXIT_ERROR
        assert f"error: {palace_home} is gone, and the palace with it" in daemon.output()
        assert "Traceback" not in daemon.output()
        assert not palace_home.exists()


class TestWriter:
    @pytest.fixture
    def palace(self, palace_home: Path) -> Iterator[Palace]:
        with Palace.writer(palace_home, create=True) as palace:
            palace.set_note("told", "before")
            yield palace

    @pytest.mark.parametrize("how", ["moved", "removed", "replaced", "home removed"])
    def test_nothing_is_stored_where_nobody_would_read_it(self, tmp_path, palace, how):
        path = Path(palace.path)
        if how == "home removed":
            shutil.rmtree(path.parent)
        elif how == "removed":
            path.unlink()
        elif how == "replaced":
            copy(path, tmp_path / "another.db")
            (tmp_path / "another.db").rename(path)
        else:
            path.rename(tmp_path / "elsewhere.db")
        with pytest.raises(PalaceMoved) as caught:
            palace.set_note("told", "after")
        assert str(path) in caught.value.what
        assert caught.value.hint

    def test_its_log_is_out_of_the_way_of_the_palace_that_follows(self, tmp_path, palace):  # R4
        path = Path(palace.path)
        copy(path, tmp_path / "backup.db")
        palace.set_note("told", "after")
        log = Path(f"{path}-wal").read_bytes()
        (tmp_path / "backup.db").rename(path)
        palace.close()
        assert not Path(f"{path}-wal").exists()
        assert path.with_name("palace.db.damaged-wal").read_bytes() == log
        with Palace.reader(path.parent) as new:
            assert new.note("told") == "before"

    def test_the_log_of_the_one_that_follows_stays(self, tmp_path, palace):
        """A writer that leaves late does not take another's log away."""
        path = Path(palace.path)
        for end in ("", "-wal", "-shm"):
            path.with_name(f"palace.db{end}").rename(tmp_path / f"palace.db{end}")
        with Palace.writer(path.parent, create=True) as new:
            new.set_note("told", "anew")
            palace.close()
            assert Path(f"{path}-wal").stat().st_size
            with Palace.reader(path.parent) as reading:
                assert reading.note("told") == "anew"

    def test_a_backfill_says_so_at_the_latest_when_it_is_done(
        self, project, palace_home, monkeypatch, capsys
    ):
        say(project, 1, "before")
        usual = Backfill.run

        def vanish(self: Backfill, *arguments: Any) -> Iterator[Summary]:
            yield from usual(self, *arguments)
            (palace_home / "palace.db").unlink()

        monkeypatch.setattr(Backfill, "run", vanish)
        assert main(["backfill"]) == EXIT_ERROR
        assert "was moved, replaced or removed" in capsys.readouterr().err
