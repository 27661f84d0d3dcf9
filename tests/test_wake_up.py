"""`mempalace wake-up`: what a session starts with."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from mempalace.layers import HEADING, OVERFLOW, MemoryStack
from mempalace.store.palace import Palace
from tests.command import mempalace
from tests.palace_builder import PalaceBuilder, session_id
from tests.waking import moments, story, woken

DAY = "2026-01-10"


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


def beat(palace_home, **changes) -> None:
    now = time.time()
    note = {
        "pid": os.getpid(), "started_at": now - 99, "seen_at": now, "state": "watching",
        "reconcile_seconds": 60, "unread_bytes": 0, "oldest_unread_at": None, **changes,
    }  # fmt: skip
    with Palace.writer(palace_home) as palace:
        palace.set_note("daemon", json.dumps(note))


class TestText:
    """L0 and L1, wrapped so that capture takes them out again (R11)."""

    def test_it_is_wrapped_and_says_when_it_was_made(self, builder):
        builder.session().prompt("A question that tells something")
        lines = woken(builder)
        made = re.fullmatch(r'<mempalace-context generated="(.*)">', lines[0])
        assert made is not None
        assert abs(time.time() - _seconds(made[1])) < 60
        assert lines[-1] == "</mempalace-context>"

    def test_it_is_taken_out_on_capture(self, builder):
        """R11: what we inject is no memory."""
        from mempalace.mining.private import strip_echo

        builder.session().prompt("About </mempalace-context> and <mempalace-context> themselves")
        builder.file()
        text = MemoryStack(builder.config.home).wake_up()
        assert strip_echo(text + "What I ask now") == "What I ask now"

    def test_the_last_words_tell_how_to_search(self, builder):
        assert "`mempalace search " in woken(builder)[-2]

    def test_the_identity_is_verbatim(self, builder, palace_home):
        (palace_home / "identity.txt").write_text("I am Ada.\n\n  Indented, 数据库.\n")
        text = "\n".join(woken(builder))
        assert "\nI am Ada.\n\n  Indented, 数据库.\n" in text

    @pytest.mark.parametrize("content", [None, b"", b"\n"])
    def test_without_one_a_line_says_where_to_create_it(self, builder, palace_home, content):
        if content is not None:
            (palace_home / "identity.txt").write_bytes(content)
        assert f"No identity yet: write who you are to {palace_home}/identity.txt" in woken(builder)

    def test_an_identity_that_is_not_utf8_is_no_error(self, builder, palace_home):
        (palace_home / "identity.txt").write_bytes(b"I am \xff Ada")
        assert "I am \ufffd Ada" in woken(builder)

    def test_an_empty_palace_says_so(self, builder):
        assert story(woken(builder)) == ["  (nothing yet: what is said from now on is kept)"]

    def test_output_is_utf8_whatever_the_locale(self, builder):
        builder.session().prompt("数据库连接失败了，请看一下")
        builder.file()
        env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        assert "数据库连接失败了" in mempalace("wake-up", env=env).stdout


def _seconds(iso: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(iso).timestamp()


class TestMoments:
    """REFERENCE: top 15 by importance, at most 2 a session, 200 characters each, 3,200 in all."""

    def test_a_line_is_room_moment_session_and_date(self, builder):
        builder.session(at=f"{DAY}T09:00:00Z").prompt("Why is the basket\n  empty today?")
        assert story(woken(builder)) == [
            "[technical]",
            f"  - Why is the basket empty today?  ({session_id(1)[:8]}, {DAY})",
        ]

    def test_importance_comes_before_recency_and_recency_before_nothing(self, builder):
        for number, day in enumerate(("2026-01-03", "2026-01-02", "2026-01-01"), 1):
            builder.session(at=day).prompt(f"This was prompt number {number}")
        builder.session(at=None).prompt("This prompt has no time")
        builder.file()
        builder.execute(
            "UPDATE exchanges SET importance = 5 WHERE started_at = ?", 1767312000000000
        )
        assert moments(woken(builder)) == [
            "This was prompt number 2",
            "This was prompt number 1",
            "This was prompt number 3",
            "This prompt has no time",
        ]

    def test_fifteen_at_most(self, builder):
        for number in range(20):
            builder.session(at=f"2026-01-{number + 1:02}").prompt(f"This was prompt {number:02}")
        found = moments(woken(builder))
        assert found == [f"This was prompt {number:02}" for number in range(19, 4, -1)]

    def test_two_of_a_session_at_most(self, builder):
        session = builder.session(at="2026-02-01")
        for number in range(5):
            session.prompt(f"This was long prompt {number}")
        builder.session(at="2026-01-01").prompt("Another session's prompt")
        assert moments(woken(builder)) == [
            "This was long prompt 4",
            "This was long prompt 3",
            "Another session's prompt",
        ]

    def test_two_hundred_characters_cut_at_a_word(self, builder):
        builder.session().prompt("wordy " * 100)
        builder.session().prompt("x" * 500)
        first, second = sorted(moments(woken(builder)))
        assert first == ("wordy " * 33).rstrip()
        assert second == "x" * 199 + "…"

    def test_three_thousand_two_hundred_in_all_and_a_line_that_tells(self, builder):
        for number in range(20):
            builder.session(at=f"2026-01-{number + 1:02}").prompt(f"{number:02} " + "wordy " * 100)
        lines = woken(builder)
        block = "\n".join([HEADING, *story(lines)])
        assert 3_000 < len(block) <= 3_200
        assert story(lines)[-1] == OVERFLOW
        assert len(moments(lines)) < 15

    def test_no_such_line_where_all_fits(self, builder):
        builder.session().prompt("A question that tells something")
        assert OVERFLOW not in woken(builder)

    def test_moments_are_grouped_by_room(self, builder):
        for day, room in enumerate(("problems", "general", "problems"), 1):
            builder.session(f"s{day}", at=f"2026-01-0{day}").prompt(f"In the room {room} {day}")
            builder.file()
            builder.execute("UPDATE exchanges SET room = ? WHERE n = ?", room, day)
        assert story(woken(builder)) == [
            "[problems]",
            "  - In the room problems 3  (s3, 2026-01-03)",
            "  - In the room problems 1  (s1, 2026-01-01)",
            "[general]",
            "  - In the room general 2  (s2, 2026-01-02)",
        ]

    def test_a_key_sentence_is_quoted_where_there_is_one(self, builder):
        builder.session().prompt("Something long that leads to a decision")
        builder.file()
        builder.execute("UPDATE exchanges SET key_sentence = 'We chose SQLite for the palace.'")
        assert moments(woken(builder)) == ["We chose SQLite for the palace."]

    def test_retired_and_headless_exchanges_are_no_moments(self, builder):
        builder.session().prompt("This was taken back later").retract()
        builder.session().answer("An answer without a prompt of its own")
        builder.session().prompt("This is a prompt that counts")
        assert moments(woken(builder)) == ["This is a prompt that counts"]

    def test_a_moment_does_not_begin_with_what_it_quotes(self, builder):
        builder.session("a").prompt("> you said this\n> and that\nI do not agree with it")
        builder.session("b").prompt("> only a quotation of yours")
        found = moments(woken(builder))
        assert sorted(found) == ["I do not agree with it", "only a quotation of yours"]

    def test_bare_commands_and_short_words_give_way_to_something_better(self, builder):
        for number in range(20):
            session = builder.session(at=f"2026-01-{number + 1:02}")
            session.prompt(f"This was prompt {number:02}").prompt("/compact", kind="command")
            session.prompt("yes")
        found = moments(woken(builder))
        assert len(found) == 15
        assert all(text.startswith("This was prompt") for text in found)

    def test_they_are_there_where_there_is_nothing_better(self, builder):
        builder.session().prompt("/review", kind="command")
        builder.session().prompt("/review the basket for leaks", kind="command")
        assert sorted(moments(woken(builder))) == ["/review", "/review the basket for leaks"]

    def test_one_session_of_thousands_of_exchanges_is_looked_through_only_so_far(self, builder):
        session = builder.session(at="2026-01-01")
        for number in range(4_100):
            session.prompt(f"This was long prompt {number}")
        builder.session(at="2025-01-01").prompt("Too far behind the long one")
        assert len(moments(woken(builder))) == 2


class TestCapture:
    """R7: the first line says when capture is down or behind, and what mends it."""

    def first(self, builder) -> str:
        return woken(builder)[1]

    def test_a_watcher_that_never_ran(self, builder):
        line = self.first(builder)
        assert line.startswith("! Capture is down")
        assert "`mempalace watch`" in line

    def test_one_that_runs_and_is_not_behind_is_not_mentioned(self, builder, palace_home):
        beat(palace_home)
        assert "Capture" not in "\n".join(woken(builder))

    def test_one_that_is_behind(self, builder, palace_home):
        beat(palace_home, unread_bytes=12_345, oldest_unread_at=time.time() - 3_600)
        line = self.first(builder)
        assert "behind: 12,345 bytes are unread" in line
        assert "`mempalace watch`" in line

    def test_one_that_is_behind_by_seconds_is_not(self, builder, palace_home):
        beat(palace_home, unread_bytes=12_345, oldest_unread_at=time.time() - 30)
        assert "Capture" not in "\n".join(woken(builder))

    def test_one_that_was_killed(self, builder, palace_home):
        with subprocess.Popen([sys.executable, "-c", ""]) as child:
            pass
        beat(palace_home, pid=child.pid)
        assert "! Capture is down since 20" in self.first(builder)

    def test_one_that_hangs(self, builder, palace_home):
        beat(palace_home, seen_at=time.time() - 300)
        assert "! Capture is down since 20" in self.first(builder)

    def test_one_that_left_in_order(self, builder, palace_home):
        beat(palace_home, pid=0, seen_at=0)
        assert "! Capture is down:" in self.first(builder)

    @pytest.mark.parametrize("note", ["", "{", "[]", '"x"', "{}", '{"pid": "a", "seen_at": []}'])
    def test_a_note_that_nobody_can_read_is_no_error(self, builder, palace_home, note):
        with Palace.writer(palace_home) as palace:
            palace.set_note("daemon", note)
        assert "! Capture is down" in self.first(builder)

    def test_what_known_files_hold_unread_is_told(self, builder, palace_home, tmp_path):
        transcript = tmp_path / "t.jsonl"
        transcript.write_bytes(b"x" * 1_500)
        builder.session(path=str(transcript)).prompt("A question that tells something")
        builder.file()
        builder.execute("UPDATE files SET size = 500")
        assert "At least 1,000 bytes of 1 transcripts are unread." in self.first(builder)
