"""Everything that can be done to a file behind a reader's back, and every file that is none."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mempalace.transcripts.claude_code import ClaudeFold
from tests.capturing import Capturing
from tests.faults.lines import Lines
from tests.faults.programs import HANG_SECONDS, prompts, run
from watcher.capture import Result
from watcher.disk import Disk
from watcher.tail import LONGEST_LINE

KIB, MIB = 1024, 1024 * 1024


class Counting(Disk):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_read = 0

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        block = super().read(descriptor, length, offset)
        self.bytes_read += len(block)
        return block


@pytest.fixture
def folder(home: Path) -> Path:
    made = home / ".claude" / "projects" / "-home-ada-shop"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def said() -> Lines:
    return Lines(1)


@pytest.fixture
def file(folder: Path, said: Lines) -> Path:
    return folder / f"{said.session}.jsonl"


def append(path: Path, *parts: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(b"".join(parts))


def checkpoint(captured: Capturing, path: Path) -> tuple[int, int]:
    """(generation, offset)"""
    row = captured.palace.db.execute(
        "SELECT generation, offset FROM files WHERE path = ?", (str(path),)
    ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


class TestIdentity:
    """R1, R3, R5: what was done to the file, and what must come of it.

    Each case begins with a file of two prompts, `one` and `two`, that was read to its end.
    """

    @pytest.fixture
    def start(self, file: Path, said: Lines, palace_home: Path) -> Iterator[Capturing]:
        file.write_bytes(said.prompt("one") + said.prompt("two"))
        with Capturing(palace_home) as captured:
            captured.read_ok(file)
            assert captured.prompts() == ["one", "two"]
            yield captured
            captured.check()

    def test_appended_lines_are_read_on_from_the_offset(self, start, file, said):
        generation, offset = checkpoint(start, file)
        append(file, said.prompt("three"))
        assert [o.bytes_read for o in start.read(file)] == [file.stat().st_size - offset]
        assert start.prompts() == ["one", "two", "three"]
        assert checkpoint(start, file) == (generation, file.stat().st_size)

    # R4: what is taken out of a transcript stays in the palace.
    def test_a_file_that_was_cut_shorter_is_read_anew_and_keeps_its_words(self, start, file, said):
        first, *_ = file.read_bytes().splitlines(keepends=True)
        os.truncate(file, len(first))
        start.read_ok(file)
        append(file, said.prompt("three"))
        start.read_ok(file)
        assert sorted(start.prompts()) == ["one", "three", "two"]
        assert checkpoint(start, file) == (1, file.stat().st_size)

    def test_a_file_that_was_emptied_and_grew_past_the_offset_is_read_from_the_start(
        self, start, file, said
    ):
        _, offset = checkpoint(start, file)
        os.truncate(file, 0)
        append(file, *(said.prompt(f"new {n}") for n in range(9)))
        assert file.stat().st_size > offset
        start.read_ok(file)
        assert set(start.prompts()) == {"one", "two"} | {f"new {n}" for n in range(9)}

    # The first line is the old one: only the bytes before the offset tell.
    def test_a_tail_that_was_cut_off_and_written_anew_past_the_offset_is_read(
        self, start, file, said
    ):
        first, *_ = file.read_bytes().splitlines(keepends=True)
        os.truncate(file, len(first))
        append(file, *(said.prompt(f"new {n}") for n in range(9)))
        start.read_ok(file)
        assert set(start.prompts()) == {"one", "two"} | {f"new {n}" for n in range(9)}

    def test_words_rewritten_in_place_with_the_same_size_are_read(self, start, file):
        file.write_bytes(file.read_bytes().replace(b'"two"', b'"TWO"'))
        start.read_ok(file)
        assert sorted(start.prompts()) == ["TWO", "one", "two"]

    # A tick of the clock may hold two writes; ctime cannot be set back, but mtime is what is kept.
    def test_the_last_words_rewritten_with_the_same_size_and_time_are_read(self, start, file):
        look = file.stat()
        file.write_bytes(file.read_bytes().replace(b'"two"', b'"TWO"'))
        os.utime(file, ns=(look.st_atime_ns, look.st_mtime_ns))
        start.read_ok(file)
        assert sorted(start.prompts()) == ["TWO", "one", "two"]

    def test_a_file_replaced_by_rename_with_more_behind_the_same_lines_is_read_on(
        self, start, file, said
    ):
        other = file.with_suffix(".new")
        other.write_bytes(file.read_bytes() + said.prompt("three"))
        other.replace(file)
        start.read_ok(file)
        assert start.prompts() == ["one", "two", "three"]

    def test_a_file_replaced_by_rename_with_other_lines_is_read_from_the_start(
        self, start, file, said
    ):
        other = file.with_suffix(".new")
        other.write_bytes(b"".join(said.prompt(f"new {n}") for n in range(9)))
        other.replace(file)
        start.read_ok(file)
        assert set(start.prompts()) == {"one", "two"} | {f"new {n}" for n in range(9)}

    def test_a_file_that_was_copied_away_and_emptied_is_read_from_the_start(
        self, start, file, said
    ):
        shutil.copy(file, file.with_name("copy.jsonl"))
        os.truncate(file, 0)
        assert [o.result for o in start.read(file)] != [Result.FAILED]
        append(file, said.prompt("three"))
        start.read_ok(file, file.with_name("copy.jsonl"))
        assert sorted(start.prompts()) == ["one", "three", "two"]

    # ext4 gives the inode of a deleted file to the next one: it proves nothing.
    def test_a_file_deleted_and_made_anew_under_the_same_name_is_read_from_the_start(
        self, start, file, said
    ):
        inodes = set()
        for round_ in range(5):
            inodes.add(file.stat().st_ino)
            file.unlink()
            file.write_bytes(b"".join(said.prompt(f"new {round_}.{n}") for n in range(9)))
            start.read_ok(file)
        assert len(start.prompts()) == 2 + 5 * 9

    def test_a_new_file_with_the_inode_of_a_deleted_one_is_no_move_of_it(
        self, start, file, said, folder
    ):
        other = Lines(2)
        inode = file.stat().st_ino
        start.capture._disk = Lying(inode)  # whatever this file system does with inodes
        file.unlink()
        path = folder / f"{other.session}.jsonl"
        path.write_bytes(other.prompt("of another session"))
        start.read_ok(path)
        assert sorted(start.prompts()) == ["of another session", "one", "two"]

    def test_a_file_moved_to_another_folder_keeps_its_offset(self, start, file, said, folder):
        _, offset = checkpoint(start, file)
        moved = folder.parent / "-home-ada-archive" / file.name
        moved.parent.mkdir()
        file.rename(moved)
        append(moved, said.prompt("three"))
        assert [o.bytes_read for o in start.read(moved)] == [moved.stat().st_size - offset]
        assert start.prompts() == ["one", "two", "three"]
        assert start.palace.db.execute("SELECT path FROM files").fetchall() == [(str(moved),)]

    def test_a_file_moved_away_while_a_new_one_takes_its_name_is_two_files(
        self, start, file, said, folder
    ):
        moved = folder / "older.jsonl"
        file.rename(moved)
        file.write_bytes(said.prompt("three"))
        start.read_ok(file, moved)
        assert sorted(start.prompts()) == ["one", "three", "two"]

    def test_a_hard_link_adds_nothing_but_a_sighting(self, start, file, folder, said):
        link = folder / "link.jsonl"
        os.link(file, link)
        start.read_ok(link, file)
        assert start.prompts() == ["one", "two"]
        append(file, said.prompt("three"))
        start.read_ok(link, file)
        assert start.prompts() == ["one", "two", "three"]

    def test_a_touched_file_is_proven_once_and_changes_no_row(self, start, file):
        before = start.rows()
        os.utime(file)
        counting = Counting()
        start.capture._disk = counting
        assert [o.result for o in start.read(file)] == [Result.NOTHING]
        once, counting.bytes_read = counting.bytes_read, 0
        assert [o.result for o in start.read(file)] == [Result.NOTHING]
        assert counting.bytes_read < once
        assert start.rows() == before

    def test_a_symbolic_link_to_the_file_adds_nothing(self, start, file, folder, said):
        link = folder / "link.jsonl"
        link.symlink_to(file)
        append(file, said.prompt("three"))
        start.read_ok(link, file)
        assert start.prompts() == ["one", "two", "three"]


class Lying(Disk):
    """Gives every file the same inode."""

    def __init__(self, inode: int) -> None:
        super().__init__()
        self._inode = inode

    def look(self, path: str):
        return self._lie(super().look(path))

    def look_at(self, descriptor: int):
        return self._lie(super().look_at(descriptor))

    def _lie(self, look):
        return type(look)(look.device, self._inode, look.size, look.mtime_ns)


class TestTail:
    """R5: a checkpoint rests after a newline."""

    @pytest.mark.parametrize("cold", [False, True])
    def test_a_torn_line_is_stored_once_when_it_is_whole(self, file, said, palace_home, cold):
        whole = said.prompt("one") + said.prompt("two 😀")
        cut = whole.index("😀".encode()) + 2  # inside the character
        with Capturing(palace_home) as captured:
            for end in (cut, len(whole) - 1, len(whole)):
                file.write_bytes(whole[:end])
                captured.read_ok(file, cold=cold)
                _, offset = checkpoint(captured, file)
                assert offset in (0, *(i + 1 for i, b in enumerate(whole) if b == 10))
            assert captured.prompts() == ["one", "two 😀"]
            captured.check()
            assert not captured.palace.db.execute("SELECT * FROM quarantine").fetchall()

    def test_a_whole_tail_without_a_newline_counts_when_cold_and_once_when_it_goes_on(
        self, file, said, palace_home
    ):
        file.write_bytes(said.prompt("one") + said.prompt("two").rstrip(b"\n"))
        with Capturing(palace_home) as captured:
            captured.read_ok(file, cold=False)
            assert captured.prompts() == ["one"]
            captured.read_ok(file, cold=True)
            assert captured.prompts() == ["one", "two"]
            append(file, b"\n", said.answer("two it is"), said.prompt("three"))
            captured.read_ok(file, cold=False)
            assert captured.prompts() == ["one", "two", "three"]
            captured.check()
            (two,) = [r for r in captured.rows() if r["records"][0][2] == "two"]
            assert [text for _, _, text, _, _ in two["records"]] == ["two", "two it is"]

    def test_a_file_that_is_only_a_tail_is_stored_once(self, file, said, palace_home):
        file.write_bytes(said.prompt("one").rstrip(b"\n"))
        with Capturing(palace_home) as captured:
            captured.read_ok(file)
            captured.read_ok(file)
            append(file, b"\n")
            captured.read_ok(file)
            assert captured.prompts() == ["one"]

    @pytest.mark.parametrize("looks", [(True,), (False, True)], ids=["cold", "after a hot look"])
    def test_a_tail_that_was_rewritten_at_the_same_size_is_read(
        self, file, said, palace_home, looks
    ):
        file.write_bytes(said.prompt("one").rstrip(b"\n"))
        with Capturing(palace_home) as captured:
            captured.read_ok(file)
            stamp = file.stat().st_mtime_ns
            file.write_bytes(said.prompt("two").rstrip(b"\n"))
            os.utime(file, ns=(stamp, stamp + 10**9))
            for cold in looks:
                captured.read_ok(file, cold=cold)
            assert captured.prompts() == ["one", "two"]

    def test_carriage_returns_change_no_word(self, file, said, palace_home):
        lines = said.prompt("one\r\ntwo\r") + said.answer(" three\n")
        file.write_bytes(lines.replace(b"}\n", b"}\r\n"))
        with Capturing(palace_home) as captured:
            captured.read_ok(file)
            assert captured.words() == [("ASSISTANT", " three\n"), ("HUMAN", "one\r\ntwo\r")]

    # R6: a line that the writer never finished, and the next one glued to it.
    def test_a_record_behind_a_torn_one_is_stored_and_the_torn_one_counted(
        self, file, said, palace_home
    ):
        file.write_bytes(said.prompt("one") + said.prompt("lost")[:90] + said.prompt("two"))
        with Capturing(palace_home) as captured:
            captured.read_ok(file)
            assert captured.prompts() == ["one", "two"]
            (bad,) = captured.palace.db.execute("SELECT length, reason FROM quarantine").fetchall()
            assert bad == (90, "not JSON")


class TestSources:
    """R4: a transcript is read-only, and its end is not the end of its words."""

    def test_words_outlive_their_file_and_their_root(self, file, said, palace_home, home):
        file.write_bytes(said.prompt("one") + said.answer("two"))
        assert run("watch", "--once").returncode == 0
        shutil.rmtree(home / ".claude")
        for arguments in (["watch", "--once"], ["backfill"]):
            assert run(*arguments).returncode == 0
            assert prompts(palace_home) == ["one"]

    def test_bytes_times_and_modes_of_sources_stay_as_they_were(self, file, said, palace_home):
        file.write_bytes(said.prompt("one") + said.prompt("torn")[:40])
        (file.parent / "junk.jsonl").write_bytes(b"\0\xff" * 99)
        (file.parent / "empty.jsonl").touch()
        file.chmod(0o440)
        before = snapshot(file.parent.parent)
        assert run("watch", "--once").returncode == 0
        assert run("backfill").returncode == 0
        assert run("backfill", "--dry-run").returncode == 0
        assert prompts(palace_home) == ["one"]
        assert snapshot(file.parent.parent) == before

    def test_a_dry_run_makes_no_palace(self, file, said, palace_home):
        file.write_bytes(said.prompt("one"))
        assert "1 exchange new" in run("backfill", "--dry-run").stdout
        assert not palace_home.exists()


def snapshot(root: Path) -> dict[str, tuple[int, int, str]]:
    """Mode, mtime and bytes of everything below."""
    return {
        str(path): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            hashlib.md5(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in [root, *root.rglob("*")]
    }


class TestBounded:
    """R8: what is read, and kept in memory, does not grow with the file."""

    def test_a_kilobyte_appended_to_a_large_file_reads_kilobytes(self, file, said, palace_home):
        counting = Counting()
        with Capturing(palace_home, disk=counting) as captured:
            file.write_bytes(said.prompt("one") + said.answer("x" * 1000))
            line = said.line("system", content="y" * (4 * MIB))
            append(file, *[line] * 16)  # 64 MiB that leave nothing in the palace
            captured.read_ok(file)
            for number in range(3):
                append(file, said.prompt(f"{number} " + "z" * 700))
                counting.bytes_read = 0
                captured.read_ok(file, cold=False)
                assert counting.bytes_read <= 64 * KIB
            assert len(captured.prompts()) == 4

    @pytest.mark.soak
    def test_a_kilobyte_appended_to_500_mb_reads_kilobytes(self, file, said, palace_home):
        counting = Counting()
        with Capturing(palace_home, disk=counting) as captured:
            file.write_bytes(said.prompt("one"))
            append(file, *[said.line("system", content="y" * MIB)] * 500)
            captured.read_ok(file)
            append(file, said.prompt("z" * 900))
            counting.bytes_read = 0
            captured.read_ok(file, cold=False)
            assert counting.bytes_read <= 64 * KIB
            assert len(captured.prompts()) == 2

    # A line of 40 MB is real (base64 of a document); one beyond the cap is passed over and counted.
    @pytest.mark.parametrize(
        ("size", "stored", "skipped"),
        [(40 * MIB, ["before", "long", "after"], []), (70 * MIB, ["before", "after"], [70 * MIB])],
    )
    def test_a_very_long_line_costs_bounded_memory_and_the_rest_is_stored(
        self, file, said, palace_home, size, stored, skipped
    ):
        image = {"type": "image", "source": {"type": "base64", "data": "A" * (size - 400)}}
        text = {"type": "text", "text": "long"}
        long = said.line("user", message={"role": "user", "content": [image, text]})
        long = long[:-1] + b" " * (size - len(long) + 1) + b"\n"
        file.write_bytes(said.prompt("before") + long + said.prompt("after"))
        small = peak_of_nothing(palace_home)
        peak = peak_of_once(palace_home)
        assert prompts(palace_home) == sorted(stored)
        with Capturing(palace_home) as captured:
            bad = captured.palace.db.execute("SELECT length, reason FROM quarantine").fetchall()
            assert [length for length, _ in bad] == skipped
            assert {reason for _, reason in bad} <= {"line too long"}
            assert captured.prompts() == stored
        # The line, its copy as it is cut, and the objects that it becomes.
        assert peak - small < 5 * min(size, LONGEST_LINE)

    # A file of many lines costs what a piece costs.
    def test_a_large_file_of_short_lines_costs_bounded_memory(self, file, said, palace_home):
        file.write_bytes(said.prompt("one"))
        append(file, *[said.line("system", content="y" * (64 * KIB))] * 1500)  # 94 MiB
        small = peak_of_nothing(palace_home)
        assert peak_of_once(palace_home) - small < 48 * MIB
        assert prompts(palace_home) == ["one"]


_PEAK = """
import resource, sys
from mempalace.__main__ import main
code = main(["watch", "--once"])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak if sys.platform == "darwin" else peak * 1024)
sys.exit(code)
"""


def peak_of_nothing(palace_home: Path) -> int:
    """The same where there is nothing to read."""
    return peak_of_once(palace_home.with_name("none"), CLAUDE_CONFIG_DIR=str(palace_home / "none"))


def peak_of_once(palace_home: Path, **more: str) -> int:
    """Peak resident bytes of one `watch --once`."""
    env = {**os.environ, "MEMPALACE_HOME": str(palace_home), **more}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PEAK],
        env=env, capture_output=True, text=True, timeout=HANG_SECONDS, check=True,
    )  # fmt: skip
    return int(done.stdout)


class Failing(Disk):
    """Fails as a disk, a permission or another process would make it."""

    def __init__(self, path: Path, error: int, *, at: int = 0, on: str = "read") -> None:
        super().__init__()
        self._path, self._error, self._at, self._on = str(path), error, at, on
        self._opened = -1

    def open(self, path: str) -> int:
        if path == self._path and self._on == "open":
            raise OSError(self._error, os.strerror(self._error), path)
        descriptor = super().open(path)
        if path == self._path:
            self._opened = descriptor
        return descriptor

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        if descriptor == self._opened and self._on == "read" and offset + length > self._at:
            if offset >= self._at:
                raise OSError(self._error, os.strerror(self._error))
            length = self._at - offset
        return super().read(descriptor, length, offset)


class TestTrouble:
    """R6: bad input hurts itself only; R7: it is counted or named."""

    def test_what_is_no_transcript_is_left_alone_and_the_rest_is_stored(
        self, file, said, folder, palace_home
    ):
        file.write_bytes(said.prompt("one"))
        (folder / "junk.jsonl").write_bytes(os.urandom(300_000))
        (folder / "zeros.jsonl").write_bytes(b"\0" * 300_000)
        (folder / "prose.jsonl").write_text("Dear diary,\nit rained.\n")
        (folder / "numbers.jsonl").write_text("1\n[2]\nnull\n")
        (folder / "empty.jsonl").touch()
        (folder / "folder.jsonl").mkdir()
        os.mkfifo(folder / "fifo.jsonl")
        (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")
        (folder / "again").symlink_to(folder)
        (folder / "dangling.jsonl").symlink_to(folder / "nowhere.jsonl")
        for arguments in (["watch", "--once"], ["backfill"], ["backfill", "--dry-run"]):
            done = run(*arguments)
            assert done.returncode == 0, done.stderr
            assert "Traceback" not in done.stderr
            assert prompts(palace_home) == ["one"]
        told = run("backfill").stdout
        assert "fifo.jsonl: not a regular file" in told
        assert "loop.jsonl" in told

    def test_each_of_them_is_survived_when_it_is_named_by_hand(
        self, file, said, folder, palace_home
    ):
        file.write_bytes(said.prompt("one"))
        junk, empty, fifo = (folder / f"{name}.jsonl" for name in ("junk", "empty", "fifo"))
        junk.write_bytes(os.urandom(300_000))
        empty.touch()
        os.mkfifo(fifo)
        done = run("backfill", junk, empty, fifo, file)
        assert done.returncode == 0, done.stderr
        assert prompts(palace_home) == ["one"]
        assert f"{fifo}: not a file" in done.stdout
        assert str(junk) in done.stdout

    def test_a_junk_file_that_becomes_a_transcript_is_read_then(self, file, said, palace_home):
        file.write_bytes(b"not yet\n")
        with Capturing(palace_home) as captured:
            assert [o.result for o in captured.read(file)] == [Result.UNRECOGNISED]
            append(file, said.prompt("one"))
            captured.read_ok(file)
            assert captured.prompts() == ["one"]
            row = captured.palace.db.execute("SELECT source, failure FROM files").fetchall()
            assert row == [("claude-code", None)]

    # Root ignores modes, so the refusal comes from the seam as well.
    @pytest.mark.parametrize("error", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ESTALE])
    def test_a_file_that_cannot_be_opened_is_named_and_read_when_it_can_be(
        self, file, said, palace_home, error
    ):
        file.write_bytes(said.prompt("one"))
        with Capturing(palace_home, disk=Failing(file, error, on="open")) as captured:
            for times in (1, 2):
                (outcome,) = captured.read(file)
                assert (outcome.result, outcome.reason) == (Result.FAILED, os.strerror(error))
                row = captured.palace.db.execute("SELECT path, failures, failure FROM files")
                assert row.fetchall() == [(str(file), times, os.strerror(error))]
            captured.again()
            captured.read_ok(file)
            assert captured.prompts() == ["one"]
            row = captured.palace.db.execute("SELECT path, failures, failure FROM files")
            assert row.fetchall() == [(str(file), 0, None)]

    @pytest.mark.skipif(os.geteuid() == 0, reason="modes do not hold root back")
    def test_a_file_of_mode_000_is_named_and_the_rest_is_stored(
        self, file, said, folder, palace_home
    ):
        file.write_bytes(said.prompt("one"))
        closed = folder / "closed.jsonl"
        closed.write_bytes(Lines(2).prompt("two"))
        closed.chmod(0)
        assert "closed.jsonl" in run("backfill").stdout
        assert prompts(palace_home) == ["one"]

    def test_a_read_error_in_the_middle_keeps_what_was_read_and_goes_on_later(
        self, file, said, palace_home
    ):
        lines = [said.prompt(f"{n} " + "x" * 20_000) for n in range(120)]
        file.write_bytes(b"".join(lines))
        broken_at = len(b"".join(lines[:100])) + 77
        disk = Failing(file, errno.EIO, at=broken_at)
        with Capturing(palace_home, disk=disk) as captured:
            outcomes = captured.read(file)
            assert outcomes[-1].result is Result.FAILED
            kept = len(captured.prompts())
            assert 0 < kept <= 100
            row = captured.palace.db.execute("SELECT offset, failure FROM files").fetchall()
            assert row == [(len(b"".join(lines[:kept])), os.strerror(errno.EIO))]
            captured.again()
            captured.read_ok(file)
            captured.check()
            assert len(captured.prompts()) == 120
            assert captured.palace.db.execute("SELECT failure FROM files").fetchall() == [(None,)]

    def test_a_file_that_vanishes_between_scan_and_open_is_marked_gone(
        self, file, said, palace_home
    ):
        file.write_bytes(said.prompt("one"))
        with Capturing(palace_home) as captured:
            captured.read_ok(file)
            file.unlink()
            assert [o.result for o in captured.read(file)] == [Result.GONE]
            assert [o.result for o in captured.read(file.with_name("b.jsonl"))] == [Result.GONE]
            assert captured.prompts() == ["one"]
            (gone,) = captured.palace.db.execute("SELECT gone_at IS NOT NULL FROM files").fetchall()
            assert gone == (1,)
            file.write_bytes(said.prompt("two"))
            captured.read_ok(file)
            assert captured.palace.db.execute("SELECT gone_at FROM files").fetchall() == [(None,)]

    def test_a_file_that_vanishes_while_it_is_open_is_read_to_its_end(
        self, file, said, palace_home
    ):
        file.write_bytes(said.prompt("one"))

        class Vanishing(Disk):
            def open(self, path: str) -> int:
                descriptor = super().open(path)
                Path(path).unlink()
                return descriptor

        with Capturing(palace_home, disk=Vanishing()) as captured:
            captured.read_ok(file)
            assert captured.prompts() == ["one"]

    def test_a_file_cut_short_between_look_and_read_is_read_anew(self, file, said, palace_home):
        first, second = said.prompt("one"), said.prompt("two")
        file.write_bytes(first + second)
        cut: list[Callable[[], None]] = [lambda: os.truncate(file, len(first) + 10)]

        class Cutting(Disk):
            def read(self, descriptor: int, length: int, offset: int) -> bytes:
                while cut:
                    cut.pop()()
                return super().read(descriptor, length, offset)

        with Capturing(palace_home, disk=Cutting()) as captured:
            captured.read(file)
            assert captured.prompts() == ["one"]
            file.write_bytes(first + second + said.prompt("three"))
            captured.read_ok(file)
            captured.check()
            assert captured.prompts() == ["one", "two", "three"]

    # A fault of ours ends with the file that it meets, and tells nothing of what stands there.
    def test_a_file_that_trips_the_reader_is_named_and_the_others_are_stored(
        self, file, said, folder, palace_home, monkeypatch
    ):
        other = Lines(2)
        good = folder / f"{other.session}.jsonl"
        good.write_bytes(other.prompt("one"))
        file.write_bytes(said.prompt("one more") + said.prompt("the fatal word"))
        step = ClaudeFold.step

        def trip(fold, record, offset):
            if "fatal" in str(record):
                raise KeyError(str(record))
            return step(fold, record, offset)

        monkeypatch.setattr(ClaudeFold, "step", trip)
        with Capturing(palace_home) as captured:
            (outcome,) = captured.read(file)
            captured.read_ok(good)
            assert outcome.result is Result.FAILED
            assert "KeyError" in outcome.reason
            assert "fatal" not in outcome.reason
            assert captured.prompts() == ["one"]
            failure = "SELECT failure FROM files WHERE failures"
            assert captured.palace.db.execute(failure).fetchall() == [(outcome.reason,)]
            monkeypatch.setattr(ClaudeFold, "step", step)
            captured.read_ok(file)
            assert sorted(captured.prompts()) == ["one", "one more", "the fatal word"]
