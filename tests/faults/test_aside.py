"""A damaged palace is set aside: no captured word is lost, no forgotten one comes back (R4)."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mempalace.errors import EXIT_ERROR, EXIT_OK
from mempalace.store import aside
from mempalace.store.palace import Palace, PalaceDamaged, explanation
from tests.faults.lines import Lines
from tests.faults.programs import prompts, run, until, watching

PAGE = 4096
LAST = "the last word"  # in the log alone, and then on no disk anywhere
SECRET = "what was forgotten"


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / ".claude" / "projects" / "-home-ada-shop"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def path(palace_home: Path) -> Path:
    return palace_home / "palace.db"


def say(project: Path, number: int, text: str) -> Path:
    said = Lines(number)
    path = project / f"{said.session}.jsonl"
    path.write_bytes(said.prompt(text) + said.answer("because"))
    return path


def spoil(path: Path, page: int) -> None:
    with path.open("r+b") as stream:
        stream.seek((page - 1) * PAGE)
        stream.write(bytes(PAGE))


def mend(path: Path) -> str:
    """What doctor tells to do."""
    told = [line.strip() for line in run("doctor").stdout.splitlines()]
    (line,) = {one.removeprefix("mend: ") for one in told if one.startswith("mend: mv")}
    assert line == aside.command(str(path))
    return line


def obey(line: str) -> subprocess.CompletedProcess[str]:
    here = f"{shlex.quote(sys.executable)} -P -m mempalace backfill"
    return subprocess.run(
        ["/bin/sh", "-c", line.replace("mempalace backfill", here)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def files(home: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in home.iterdir() if "-shm" not in p.name}


class TestLog:
    """The words that were stored last stand in palace.db-wal, and nowhere else."""

    @pytest.fixture
    def captured(self, tmp_path: Path, project: Path, palace_home: Path) -> None:
        """A daemon that was killed, and a transcript that is gone."""
        for number in range(1, 20):
            say(project, number, f"prompt {number}")
        assert run("backfill").returncode == EXIT_OK
        with watching(tmp_path / "watch.log") as daemon:
            transcript = say(project, 99, LAST)
            until(lambda: LAST in prompts(palace_home))
            daemon.kill()
        transcript.unlink()

    def test_the_mend_of_doctor_moves_the_log_with_its_palace(self, captured, path):  # R4
        spoil(path, 3)
        log = Path(f"{path}-wal").read_bytes()
        assert LAST.encode() in log
        assert obey(mend(path)).returncode == EXIT_OK
        kept = path.with_name("palace.db.damaged-wal")
        assert kept.read_bytes() == log
        # SQLite pairs the two by their names.
        with closing(sqlite3.connect(path.with_name("palace.db.damaged"))) as db:
            found = db.execute("SELECT 1 FROM drawers WHERE text LIKE ?", (f"%{LAST}%",))
            assert found.fetchone()
        assert len(prompts(path.parent)) == 19

    def test_the_same_line_run_again_overwrites_nothing(self, captured, path):  # R4
        spoil(path, 3)
        line = mend(path)
        obey(line)
        with Palace.writer(path.parent) as palace:  # the new one has a log
            palace.set_note("new", "yes")
            before = files(path.parent)
            obey(line)
            after = files(path.parent)
            assert palace.note("new") == "yes"
        names = {name for name in before if "damaged" in name}
        assert names == {"palace.db.damaged", "palace.db.damaged-wal"}
        assert {n: after[n] for n in names} == {n: before[n] for n in names}
        with Palace.reader(path.parent) as palace:
            assert palace.note("new") == "yes"

    def test_a_second_damage_takes_another_name(self, captured, path):  # R4
        for name in ("palace.db.damaged", "palace.db.damaged.2"):
            spoil(path, 3)
            assert shlex.quote(str(path.with_name(name))) in mend(path)
            assert obey(mend(path)).returncode == EXIT_OK
            assert path.with_name(name).exists()

    @pytest.mark.parametrize("how", ["moved", "removed", "emptied"])
    def test_a_log_that_was_left_behind_is_kept_and_told_of(self, captured, path, how):  # R4
        """SQLite would throw it away for a palace that is new."""
        log = Path(f"{path}-wal").read_bytes()
        if how == "moved":
            path.rename(path.with_name("elsewhere.db"))
        elif how == "removed":
            path.unlink()
        else:
            os.truncate(path, 0)
        done = run("backfill")
        assert done.returncode == EXIT_OK
        kept = path.with_name("palace.db.damaged-wal")
        assert f"it is kept as {kept}" in done.stdout
        assert kept.read_bytes() == log
        assert len(prompts(path.parent)) == 19

    def test_a_name_with_blanks_and_quotes_is_one_name(self, tmp_path):
        folder = tmp_path / "a b'c $HOME"
        folder.mkdir()
        for end in ("", "-wal", "-shm"):
            (folder / f"palace.db{end}").write_text(end)
        line = aside.command(str(folder / "palace.db")).removesuffix(" && mempalace backfill")
        assert subprocess.run(["/bin/sh", "-c", line], check=False).returncode == 0
        moved = {p.name: p.read_text() for p in folder.iterdir()}
        assert moved == {f"palace.db.damaged{end}": end for end in ("", "-wal", "-shm")}


class TestForgotten:
    @pytest.fixture
    def forgotten(self, project: Path, palace_home: Path) -> None:
        """One of three prompts was forgotten; its transcript is there."""
        for number, text in enumerate(("one", SECRET, "three"), 1):
            say(project, number, text)
        assert run("backfill").returncode == EXIT_OK
        with Palace.reader(palace_home) as palace:
            (exchange,) = palace.db.execute(
                "SELECT e.id FROM exchanges e JOIN drawers d ON d.exchange = e.n"
                " WHERE d.text LIKE ?", (f"{SECRET}%",),
            ).fetchone()  # fmt: skip
        assert run("forget", exchange, "--yes").returncode == EXIT_OK

    def test_it_stays_forgotten_in_the_palace_that_follows(self, forgotten, path):  # R4
        spoil(path, 4)
        done = obey(mend(path))
        assert f"taken over from {path}.damaged" in done.stdout
        assert prompts(path.parent) == ["one", "three"]
        assert "what only it holds is in no search" in run("doctor").stdout

    def test_also_where_the_daemon_is_the_first_to_file(self, tmp_path, forgotten, path):  # R4
        path.rename(f"{path}.damaged")
        with watching(tmp_path / "watch.log") as daemon:
            until(lambda: "three" in prompts(path.parent))
            assert daemon.end() == EXIT_OK
        assert prompts(path.parent) == ["one", "three"]

    def test_also_in_a_dry_run(self, forgotten, path):
        path.rename(f"{path}.damaged")
        assert "2 exchanges new" in run("backfill", "--dry-run").stdout
        assert not path.exists()

    def test_whoever_died_before_it_was_taken_over_leaves_it_to_the_next(
        self, forgotten, path, monkeypatch
    ):
        path.rename(f"{path}.damaged")
        with monkeypatch.context() as patch:
            patch.setattr(aside, "keep_forgotten", lambda db, path: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                Palace.writer(path.parent, create=True)
        assert run("backfill").returncode == EXIT_OK
        assert prompts(path.parent) == ["one", "three"]

    def test_what_cannot_be_read_is_told_before_it_comes_back(self, forgotten, path):
        """R4, as far as it goes: nothing names what was forgotten but that file."""
        spoil(path, 1)
        done = obey(mend(path))
        assert "not all that was forgotten can be read" in done.stdout
        assert "`mempalace forget` forgets them" in done.stdout
        assert "not all that was forgotten can be read" in run("doctor").stdout
        assert "not all" not in run("backfill").stdout  # once: doctor goes on telling

    def test_a_damaged_page_costs_its_own_tombstones_alone(self, path):  # R4
        keys = [bytes([n % 256, n // 256]) + bytes(14) for n in range(5_000)]
        with Palace.writer(path.parent, create=True) as palace, palace.transaction() as db:
            db.executemany("INSERT INTO tombstones (key) VALUES (?)", [(key,) for key in keys])
        data = path.read_bytes()
        leaves = [
            at // PAGE + 1
            for at in range(PAGE, len(data), PAGE)  # a leaf of an index begins with 10, its cells
            if data[at] == 10 and int.from_bytes(data[at + 3 : at + 5], "big") > 100
        ]
        spoil(path, leaves[len(leaves) // 2])
        path.rename(f"{path}.damaged")
        with Palace.writer(path.parent, create=True) as palace:
            (count,) = palace.db.execute("SELECT COUNT(*) FROM tombstones").fetchone()
            assert len(keys) - 2 * len(keys) // len(leaves) < count < len(keys)
            assert any("not all that was forgotten" in one for one in palace.told)

    def test_a_palace_that_is_set_aside_is_not_written_to(self, forgotten, path):
        path.rename(f"{path}.damaged")
        before = Path(f"{path}.damaged").read_bytes()
        assert run("backfill").returncode == EXIT_OK
        assert run("doctor").stdout
        assert [n for n in files(path.parent) if "damaged" in n] == ["palace.db.damaged"]
        assert Path(f"{path}.damaged").read_bytes() == before

    def test_doctor_tells_what_is_not_kept_out_yet(self, forgotten, path):  # R4, R7
        with closing(sqlite3.connect(path)) as db:
            db.execute("VACUUM INTO ?", (f"{path}.damaged",))
            db.execute("DELETE FROM tombstones")
            db.commit()
        told = run("doctor").stdout
        assert f"what was forgotten in {path}.damaged is not kept out here yet" in told
        assert run("backfill").returncode == EXIT_OK
        assert "is not kept out here yet" not in run("doctor").stdout


def test_a_palace_that_is_merely_not_readable_is_not_to_be_set_aside(
    project, palace_home, monkeypatch
):
    """R4: that mend would take a whole palace out of search."""
    from mempalace import config as configuration
    from mempalace.errors import MemPalaceError
    from service.doctor import examine

    assert run("backfill").returncode == EXIT_OK

    def refuse(home: object) -> Palace:
        raise MemPalaceError("it is not ours to read", "wait a moment")

    monkeypatch.setattr(Palace, "reader", refuse)
    found = list(examine(configuration.load()))
    mends = [one.mend for one in found if one.check in ("palace", "database")]
    assert mends == ["wait a moment", "wait a moment"]


def test_an_error_that_quotes_a_text_tells_none_of_it():  # R10
    with closing(sqlite3.connect(":memory:")) as db:
        try:
            db.execute("SELECT CAST(x'736563726574ff' AS TEXT)").fetchone()
        except sqlite3.DatabaseError as error:
            told = explanation(error, "/p/palace.db")
    assert isinstance(told, PalaceDamaged)
    assert "secret" not in told.report()
    assert told.exit_code == EXIT_ERROR
