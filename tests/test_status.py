"""`mempalace status`: nothing is silently blind (R7)."""

import errno
import json
import os
import time
from pathlib import Path

import pytest

from mempalace import config as configuration
from mempalace.status import Root, Stock, as_values, lag_seconds, take_stock
from mempalace.store import vectors
from mempalace.store.checkpoints import hidden
from mempalace.store.palace import Palace
from mempalace.transcripts import registry
from tests.command import mempalace, mempalace_json, on_a_terminal
from tests.palace_builder import PalaceBuilder

NOW = 1_800_000_000.0  # seconds since 1970
LATE = NOW - 3_600  # longer ago than two reconcile intervals


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


@pytest.fixture
def root(home) -> Path:
    folder: Path = home / ".claude" / "projects"
    (folder / "p").mkdir(parents=True)
    return folder


def stock(now: float = NOW) -> Stock:
    return take_stock(configuration.load(), now=lambda: now)


def the_root(taken: Stock) -> Root:
    root, *others = taken.roots
    assert [(one.source, one.state) for one in others] == [("codex", "missing")] * 2
    return root


class Transcripts:
    """Files below the root, and what the palace knows of each."""

    def __init__(self, builder: PalaceBuilder, root: Path) -> None:
        self.builder, self.root = builder, root

    def write(self, name: str, content: bytes, *, at: float = NOW) -> Path:
        path = self.root / "p" / name
        path.write_bytes(content)
        os.utime(path, (at, at))
        return path

    def read(self, path: Path, size: int, *, at: float = NOW, name: str = "") -> None:
        """As if capture had read the first `size` bytes when the file was written at `at`."""
        self.builder.execute(
            "INSERT INTO files (path, source, size, offset, mtime_ns, parser, settings)"
            " VALUES (?, 'claude-code', ?, ?, ?, ?, ?)",
            name or str(path), size, size, int(at * 1e9), registry.FORMATS[0].version,
            self.builder.config.reading_settings(),
        )  # fmt: skip


@pytest.fixture
def transcripts(builder, root) -> Transcripts:
    return Transcripts(builder, root)


def beat(builder: PalaceBuilder, *, now: float = NOW, **changes) -> None:
    note = {
        "pid": os.getpid(), "started_at": now - 99, "seen_at": now - 1, "state": "watching",
        "roots": {}, "reconcile_seconds": 60, "unread_bytes": 0, "oldest_unread_at": None,
        **changes,
    }  # fmt: skip
    builder.palace.set_note("daemon", json.dumps(note))


class TestTotals:
    def test_what_is_stored_is_told_by_wing_from_the_counters(self, builder, root):
        shop = builder.session(cwd="/home/ada/my-app")
        shop.prompt("one " * 400).call("Read", "Read {}").result("x")
        shop.prompt("two").answer("three")
        builder.session(cwd="/home/ada/other").answer("to nobody")
        builder.session(cwd="/home/ada/other").prompt("taken back").retract()
        builder.file()
        values = as_values(stock())
        assert values["wings"] == [
            {
                "name": "my_app", "exchanges": 2, "headless": 0, "talk_drawers": 4,
                "tools_drawers": 1,
            },
            {
                "name": "other", "exchanges": 1, "headless": 1, "talk_drawers": 1,
                "tools_drawers": 0,
            },
        ]  # fmt: skip
        assert values["totals"] == {
            "exchanges": 3, "headless": 1, "talk_drawers": 5, "tools_drawers": 1,
        }  # fmt: skip
        assert (values["retired"], values["sessions"]) == (1, 3)
        assert values["index"] is None  # vectors are off

    def test_how_far_embedding_is(self, builder, root, monkeypatch):
        monkeypatch.setenv("MEMPALACE_INDEX_VECTORS", "true")
        builder.session().prompt("one")
        builder.session().prompt("two")
        builder.file()
        with builder.palace.transaction() as db:
            model = vectors.model_number(db, "a model", 2, "made of nothing")
            (due,) = vectors.due(db, vectors.newest_due(db, 2**60, 1), 2**60)
            vectors.keep(db, model, [(due, b"\0\0\0\0")])
        assert as_values(stock())["index"] == {
            "vectors": 1, "waiting": 1, "model": "a model", "problem": "",
        }  # fmt: skip

    def test_what_was_left_out_and_what_nobody_knows_is_told_by_name(self, builder, root):
        builder.session().prompt("one")
        builder.file()
        for rule, count in (("subagent", 7), ("progress", 9), ("unknown:frame", 2)):
            builder.execute("INSERT INTO tallies VALUES (1, ?, ?)", rule, count)
        for offset, reason in ((0, "not JSON"), (9, "not JSON"), (99, "line too long")):
            builder.execute("INSERT INTO quarantine VALUES (1, ?, 5, ?, 1)", offset, reason)
        taken = stock()
        assert taken.left_out == {"progress": 9, "subagent": 7}
        assert taken.unknown_types == {"frame": 2}
        assert taken.quarantine == {"not JSON": 2, "line too long": 1}

    def test_what_forks_wait_for_is_told_and_is_no_degradation(self, builder, root):
        """R7: words that nobody has told yet."""
        builder.session().prompt("one")
        builder.file()
        assert (stock().owed, as_values(stock())["owed"]) == (0, 0)
        for number, called in ((1, 0), (2, 0), (3, 1)):
            builder.execute(
                "INSERT INTO owed VALUES (1, ?, 'a-parent', ?)", bytes([number]) * 16, called
            )
        taken = stock()
        assert (taken.owed, as_values(taken)["owed"]) == (2, 2)
        assert "2 records of forked sessions wait for their parent's transcript" in taken.notices
        assert taken.degraded == []


class TestUnread:
    """Bytes on disk against bytes accounted for, by stat alone."""

    def test_a_file_that_is_read_is_accounted_for(self, transcripts):
        path = transcripts.write("a.jsonl", b"x" * 500, at=LATE)
        transcripts.read(path, 500, at=LATE)
        root = the_root(stock())
        assert (root.files, root.bytes_on_disk, root.bytes_accounted) == (1, 500, 500)
        assert (root.unread_files, root.unread_bytes, root.state) == (0, 0, "well")
        assert stock().degraded == []

    def test_a_file_that_nobody_read_is_unread(self, transcripts):
        transcripts.write("a.jsonl", b"x" * 500, at=LATE)
        root = the_root(stock())
        assert (root.bytes_accounted, root.unread_files, root.unread_bytes) == (0, 1, 500)
        assert root.oldest_unread_at == LATE
        assert lag_seconds(stock()) == 3_600

    def test_one_that_grew_is_unread_by_what_it_grew(self, transcripts):
        path = transcripts.write("a.jsonl", b"x" * 500, at=LATE)
        transcripts.read(path, 300, at=LATE - 99)
        root = the_root(stock())
        assert (root.bytes_accounted, root.unread_bytes) == (300, 200)

    def test_one_that_shrank_is_unread_altogether(self, transcripts):
        path = transcripts.write("a.jsonl", b"x" * 200, at=LATE)
        transcripts.read(path, 500)
        root = the_root(stock())
        assert (root.bytes_accounted, root.unread_bytes) == (0, 200)

    def test_an_excluded_file_is_known_by_a_digest_and_accounted_for(self, transcripts):
        """R10: its path never reaches the disk."""
        path = transcripts.write("a.jsonl", b"x" * 500, at=LATE)
        transcripts.read(path, 500, name=hidden(str(path)))
        root = the_root(stock())
        assert (root.bytes_accounted, root.unread_files) == (500, 0)

    def test_a_file_that_is_excluded_by_its_path_is_not_unread(self, transcripts, monkeypatch):
        transcripts.write("a.jsonl", b"x" * 500, at=LATE)
        transcripts.write("b.jsonl", b"x" * 50, at=LATE)
        monkeypatch.setenv("MEMPALACE_EXCLUDE", "*/a.jsonl")
        root = the_root(stock())
        assert (root.excluded_files, root.files, root.unread_bytes) == (1, 1, 50)

    def test_an_empty_file_holds_nothing_unread(self, transcripts):
        transcripts.write("a.jsonl", b"", at=LATE)
        assert the_root(stock()).unread_files == 0

    def test_a_file_read_by_another_parser_or_with_other_settings_is_stale(
        self, builder, transcripts, monkeypatch
    ):
        """R5: counted so, and read again in idle time; no word is missing."""
        path = transcripts.write("a.jsonl", b"x" * 500, at=LATE)
        transcripts.read(path, 500, at=LATE)
        assert the_root(stock()).stale_files == 0
        monkeypatch.setenv("MEMPALACE_MINING_THINKING", "true")
        assert the_root(stock()).stale_files == 1
        monkeypatch.delenv("MEMPALACE_MINING_THINKING")
        builder.execute("UPDATE files SET parser = parser - 1")
        taken = stock()
        assert the_root(taken).stale_files == 1
        assert taken.degraded == []
        assert any("read once more" in notice for notice in taken.notices)

    def test_files_outside_the_roots_do_not_count_as_unread(self, transcripts, tmp_path):
        transcripts.read(tmp_path / "elsewhere.jsonl", 500)
        taken = stock()
        assert (taken.files, the_root(taken).unread_files) == (1, 0)


class TestAge:
    """How old the oldest unread byte is."""

    def test_a_file_at_rest_is_as_old_as_its_time(self, transcripts):
        transcripts.read(transcripts.write("a.jsonl", b"x" * 500, at=NOW - 30), 200, at=NOW - 999)
        assert lag_seconds(stock()) == 30

    def test_one_that_still_grows_is_as_old_as_its_first_unread_record(self, transcripts):
        """An agent that writes all the time must not hide that nobody reads."""
        line = b'{"type":"user","timestamp":"2027-01-15T07:30:00.000Z"}\n'  # half an hour ago
        path = transcripts.write("a.jsonl", b"x\n" + line + line.replace(b"07:3", b"07:5"))
        transcripts.read(path, 2, at=NOW - 7_200)
        assert lag_seconds(stock()) == 1_800
        assert stock().degraded

    def test_an_old_time_in_a_new_record_does_not_make_it_older_than_what_was_read(
        self, transcripts
    ):
        """Resumes copy history, times and all."""
        line = b'{"type":"user","timestamp":"2020-01-01T00:00:00.000Z"}\n'
        path = transcripts.write("a.jsonl", b"x\n" + line)
        transcripts.read(path, 2, at=NOW - 20)
        assert lag_seconds(stock()) == 20
        fresh = transcripts.write("b.jsonl", line)
        assert fresh.exists()
        assert lag_seconds(stock()) == 20

    def test_no_time_in_the_record_leaves_that_of_the_file(self, transcripts):
        path = transcripts.write("a.jsonl", b"x" * 500, at=NOW - 5)
        transcripts.read(path, 100, at=NOW - 7_200)
        assert lag_seconds(stock()) == 5

    def test_nothing_unread_is_no_lag(self, transcripts):
        assert lag_seconds(stock()) == 0


class TestPurge:
    """Claude Code deletes a transcript some days after its last line."""

    def test_the_first_unread_file_to_go_is_told(self, transcripts):
        transcripts.write("a.jsonl", b"x", at=NOW - 10 * 86_400)
        transcripts.write("b.jsonl", b"x", at=NOW - 20 * 86_400)
        transcripts.read(transcripts.write("c.jsonl", b"x", at=NOW - 25 * 86_400), 1)
        assert the_root(stock()).purged_at == NOW + 10 * 86_400

    @pytest.mark.parametrize(
        ("settings", "days"),
        [
            ('{"cleanupPeriodDays": 7}', 7),
            ('{"cleanupPeriodDays": 99999}', 99_999),
            ('{"cleanupPeriodDays": 0}', 0),
            ('{"cleanupPeriodDays": "7"}', 30),
            ('{"cleanupPeriodDays": true}', 30),
            ('{"cleanupPeriodDays": -1}', 30),
            ("{}", 30),
            ("[]", 30),
            ("not JSON", 30),
            ("\xff", 30),
        ],
    )
    def test_the_user_may_have_set_another_period(self, transcripts, root, settings, days):
        (root.parent / "settings.json").write_text(settings, encoding="latin-1")
        transcripts.write("a.jsonl", b"x")
        assert the_root(stock()).purged_at == NOW + days * 86_400

    def test_nothing_unread_has_nothing_to_lose(self, transcripts):
        assert the_root(stock()).purged_at is None


class TestDegraded:
    """Degraded: unread bytes older than two reconcile intervals, or a bad root."""

    def test_unread_bytes_of_two_intervals_are_no_trouble_yet(self, transcripts):
        transcripts.write("a.jsonl", b"x", at=NOW - 119)
        assert stock().degraded == []
        assert the_root(stock()).state == "well"

    def test_older_ones_are(self, transcripts):
        transcripts.write("a.jsonl", b"x", at=NOW - 121)
        taken = stock()
        assert taken.degraded == [f"{transcripts.root}: 1 bytes of 1 files are not read yet"]
        assert the_root(taken).state == "degraded"
        assert the_root(taken).reasons == taken.degraded

    def test_the_interval_is_the_configured_one(self, transcripts, monkeypatch):
        transcripts.write("a.jsonl", b"x", at=NOW - 121)
        monkeypatch.setenv("MEMPALACE_WATCH_RECONCILE_SECONDS", "600")
        assert stock().degraded == []

    def test_no_daemon_and_nothing_unread_is_a_notice(self, transcripts):
        taken = stock()
        assert taken.degraded == []
        assert any("`mempalace watch`" in notice for notice in taken.notices)

    def test_a_missing_root_is_a_notice(self, builder, home):
        taken = stock()
        assert taken.degraded == []
        assert the_root(taken).state == "missing"
        assert any("picked up when it appears" in notice for notice in taken.notices)

    def test_a_root_that_is_no_folder_is_degraded(self, builder, root):
        (root / "p").rmdir()
        root.rmdir()
        root.write_text("a file")
        taken = stock()
        assert the_root(taken).state == "unreadable"
        assert taken.degraded == [f"{root}: Not a directory"]

    def test_a_root_that_may_not_be_read_is_degraded(self, builder, root, monkeypatch):
        """Through os.scandir, because root may read anything."""

        def refuse(path):
            raise PermissionError(errno.EACCES, "Permission denied", path)

        monkeypatch.setattr(os, "scandir", refuse)
        taken = stock()
        assert the_root(taken).state == "unreadable"
        assert taken.degraded == [f"{root}: Permission denied"]

    def test_a_folder_that_may_not_be_read_is_named(self, builder, root, monkeypatch):
        scandir = os.scandir

        def refuse(path):
            if path.endswith("/p"):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)
        taken = stock()
        assert the_root(taken).state == "degraded"
        assert taken.degraded == [f"{root}/p: Permission denied"]

    def test_what_is_no_file_is_a_notice(self, transcripts, root):
        os.mkfifo(root / "pipe.jsonl")
        taken = stock()
        assert taken.degraded == []
        assert f"{root}/pipe.jsonl: not a regular file" in taken.notices

    def test_a_file_that_could_not_be_read_is_degraded(self, builder, transcripts):
        transcripts.read(transcripts.write("a.jsonl", b"x"), 1)
        builder.execute("UPDATE files SET failures = 3, failure = 'Permission denied'")
        taken = stock()
        assert taken.failed_files == {str(transcripts.root / "p" / "a.jsonl"): "Permission denied"}
        assert taken.degraded == [
            f"{transcripts.root}/p/a.jsonl could not be read: Permission denied"
        ]

    def test_one_that_failed_and_is_gone_is_not(self, builder, transcripts):
        """R4: a transcript's disappearance takes nothing away."""
        transcripts.read(transcripts.root / "a.jsonl", 1)
        builder.execute("UPDATE files SET failures = 3, gone_at = 1")
        taken = stock()
        assert (taken.degraded, taken.gone_files) == ([], 1)

    def test_many_failures_are_summed_up(self, builder, transcripts):
        for number in range(9):
            transcripts.read(transcripts.root / f"{number}.jsonl", 1)
        builder.execute("UPDATE files SET failures = 1")
        assert len(stock().degraded) == 6
        assert stock().degraded[-1] == "and 4 more files could not be read"


class TestDaemon:
    def test_one_that_beats_is_up_and_its_roots_are_watched(self, builder, root):
        beat(builder)
        taken = stock()
        assert taken.daemon.up
        assert (taken.daemon.pid, taken.daemon.state) == (os.getpid(), "watching")
        assert the_root(taken).state == "watching"
        assert not any("mempalace watch" in notice for notice in taken.notices)

    @pytest.mark.parametrize(
        ("changes", "is_up"),
        [
            ({"seen_at": NOW - 124}, True),
            ({"seen_at": NOW - 126}, False),
            ({"seen_at": NOW - 30, "reconcile_seconds": 1}, True),
            ({"seen_at": NOW - 40, "reconcile_seconds": 1}, False),
            ({"pid": 2**22 + 5}, False),
            ({"pid": 2**80}, False),
            ({"pid": -1}, False),
            ({"pid": "x", "seen_at": None}, False),
        ],
    )
    def test_up_is_seen_lately_and_a_process_that_exists(self, builder, root, changes, is_up):
        beat(builder, **changes)
        assert stock().daemon.up is is_up

    def test_one_that_left_in_order_is_not_running(self, builder, root):
        builder.palace.set_note("daemon", json.dumps({"pid": 0, "seen_at": 0}))
        daemon = stock().daemon
        assert (daemon.up, daemon.pid, daemon.seen_at) == (False, None, None)
        assert daemon.state == "not running"

    def test_a_root_that_is_polled_says_why(self, builder, root):
        beat(builder, roots={str(root): "polling: no file events (out of watches)"})
        taken = stock()
        assert taken.degraded == []
        assert the_root(taken).state == "polling"
        assert f"{root}: polling: no file events (out of watches)" in taken.notices

    def test_a_root_that_the_watcher_may_not_read_is_degraded(self, builder, root):
        """R7: also where `status` itself may read it."""
        beat(builder, roots={str(root): f"unreadable: {root}: Operation not permitted"})
        taken = stock()
        assert taken.degraded == [f"the watcher may not read it: {root}: Operation not permitted"]
        assert the_root(taken).state == "degraded"

    def test_a_rescan_that_is_owed_is_a_notice_while_the_daemon_is_up(self, builder, root):
        """R7: events were lost, and the scan makes it good."""
        beat(builder, rescan="the queue was full")
        assert "rescan owed: the queue was full" in stock().notices
        assert stock().degraded == []
        beat(builder, rescan="the queue was full", pid=2**22 + 5)
        assert not any(notice.startswith("rescan owed") for notice in stock().notices)

    @pytest.mark.parametrize(
        ("told", "is_paused"),
        [
            ("{pid} {now} {now} 60 the disk is full", True),
            ("{pid} {now} {old} 60 the disk is full", False),  # it has not said so for long
            ("4194309 {now} {now} 60 the disk is full", False),  # nobody is there
            ("", False),
            ("{pid} {now} x 60 the disk is full", False),
            ("\0\0\0", False),
        ],
    )
    def test_a_pause_is_degraded_although_the_palace_cannot_tell_it(
        self, builder, palace_home, root, told, is_paused
    ):
        """R7: the note in the palace is old then; a file beside it tells."""
        beat(builder, seen_at=NOW - 3_600)
        text = told.format(pid=os.getpid(), now=int(NOW), old=int(NOW) - 999)
        (palace_home / "watch.pause").write_bytes(text.encode().ljust(512))
        taken = stock()
        assert taken.daemon.up is is_paused
        assert (taken.degraded == ["nothing can be stored: the disk is full"]) is is_paused
        assert (taken.daemon.state == "paused") is is_paused


class TestCommand:
    def test_well_exits_0_and_degraded_is_empty(self, builder, root):
        builder.session(at="2026-01-10T09:00:00Z").prompt("one")
        builder.file()
        values = mempalace_json("status")
        assert values["degraded"] == []
        assert values["lag_seconds"] == 0
        assert values["roots"][0]["path"] == str(root)
        assert values["daemon"]["up"] is False

    def test_degraded_exits_4_and_says_why(self, transcripts):
        transcripts.write("a.jsonl", b"x" * 500, at=time.time() - 3_600)
        done = mempalace("status")
        assert done.returncode == 4
        assert "500 bytes of 1 files unread" in done.stdout
        assert "purged by Claude Code at" in done.stdout
        assert f"\ndegraded: {transcripts.root}: 500 bytes" in done.stdout
        as_json = mempalace("status", "--json")
        assert as_json.returncode == 4
        values = json.loads(as_json.stdout)
        assert len(values["degraded"]) == 1
        assert values["lag_seconds"] > 3_500

    def test_people_see_all_of_it(self, builder, transcripts):
        builder.session(cwd="/home/ada/my-app").prompt("one")
        builder.file()
        transcripts.read(transcripts.write("a.jsonl", b"x" * 1_500), 1_500)
        builder.execute("INSERT INTO tallies VALUES (1, 'subagent', 7)")
        builder.execute("INSERT INTO tallies VALUES (1, 'unknown:frame', 2)")
        builder.execute("INSERT INTO quarantine VALUES (1, 0, 5, 'not JSON', 1)")
        shown = mempalace("status").stdout
        for part in (
            "watcher  not running",
            "my_app",
            f"{transcripts.root} (claude-code): well",
            "1 files; 1,500 of 1,500 bytes accounted for",
            "quarantined: not JSON 1",
            "left out by rule: subagent 7",
            "unknown record types: frame 2",
            "note: nothing follows the transcripts now; `mempalace watch` does",
        ):
            assert part in shown

    def test_a_terminal_is_styled_unless_asked_not_to(self, builder, root):
        assert "\x1b[1mpalace\x1b[0m" in on_a_terminal("status")
        assert "\x1b" not in on_a_terminal("status", env={"NO_COLOR": "1"})

    def test_it_writes_nothing(self, builder, palace_home, root):
        builder.session().prompt("one")
        builder.file()
        builder.palace.close()
        before = {path.name: path.stat().st_mtime_ns for path in palace_home.iterdir()}
        assert mempalace("status").returncode == 0
        assert before == {path.name: path.stat().st_mtime_ns for path in palace_home.iterdir()}

    def test_a_locked_palace_answers(self, builder, root):
        """R9"""
        builder.file()
        with Palace.writer(builder.config.home) as writer, writer.transaction() as db:
            db.execute("DELETE FROM exchanges WHERE 0")
            assert mempalace("status").returncode == 0
