"""`mempalace forget`: what it shows, when it asks, and what is gone afterwards (R4)."""

from __future__ import annotations

import pytest

from tests.command import mempalace, mempalace_json, on_a_terminal
from tests.palace_builder import PalaceBuilder, session_id

SECRET = "quetzal"  # said nowhere but in what is forgotten


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


@pytest.fixture
def ids(builder) -> list[str]:
    """Two sessions in `shop` and one in `blog`; the second exchange holds the secret."""
    shop = builder.session(at="2026-01-10T09:00:00Z")
    shop.prompt("Why is the basket empty?").answer("The cookie expired.")
    shop.prompt(f"The password is {SECRET}.").call("Bash", f"login {SECRET}").result("ok")
    shop.answer(f"I have used {SECRET}.")
    more = builder.session(at="2026-01-12T09:00:00Z")
    more.prompt("Add a coupon.").answer("Added.")
    blog = builder.session(cwd="/home/ada/blog", at="2026-01-11T09:00:00Z")
    blog.prompt("Write a post.").answer("Written.")
    builder.file()
    with builder.palace.reading() as db:
        return [row[0] for row in db.execute("SELECT id FROM exchanges ORDER BY n")]


def exported() -> str:
    return mempalace("export", "--headless").stdout


class TestShowing:
    """It says what would go before anything goes."""

    def test_it_shows_how_much_of_what_and_how_each_begins(self, ids):
        done = mempalace("forget", "--session", session_id(1))
        assert "2 exchanges (6 records in 3 drawers)" in done.stdout
        assert "2026-01-10 09:00 UTC to 2026-01-10 09:00 UTC" in done.stdout
        assert "wings:    shop" in done.stdout
        assert f"sessions: {session_id(1)}" in done.stdout
        assert f"{ids[0][:12]}  Why is the basket empty?" in done.stdout
        assert f"{ids[1][:12]}  The password is {SECRET}." in done.stdout

    def test_ten_beginnings_are_enough(self, builder):
        session = builder.session()
        for number in range(13):
            session.prompt(f"Prompt {number}\nand more of it.").answer("Yes.")
        builder.file()
        shown = mempalace("forget", "--session", session.id).stdout
        assert shown.count("and more of it") == 10
        assert "  and 3 more\n" in shown

    def test_the_id_of_a_drawer_means_the_whole_exchange_and_that_is_said(self, ids):
        done = mempalace("forget", f"{ids[1][:8]}-tools-0", "--yes")
        assert "the whole exchange that it is a part of goes" in done.stdout
        assert SECRET not in exported()

    def test_its_help_tells_what_it_cannot_do(self):
        told = " ".join(mempalace("forget", "--help").stdout.split())
        assert "copy-on-write" in told
        assert "transcripts themselves are never touched" in told


class TestAsking:
    """Nothing goes that nobody has agreed to."""

    def test_without_a_terminal_and_without_yes_it_refuses(self, ids):
        before = exported()
        done = mempalace("forget", ids[1])
        assert done.returncode == 2
        assert "--yes" in done.stderr.split("hint: ")[1]
        assert mempalace("forget", ids[1], "--json").returncode == 2  # has no place for a question
        assert exported() == before

    @pytest.mark.parametrize(("typed", "is_gone"), [("y\n", True), ("n\n", False), ("\n", False)])
    def test_on_a_terminal_it_asks(self, ids, typed, is_gone):
        shown = on_a_terminal("forget", ids[1], typed=typed)
        assert "Forget this for good?" in shown
        assert ("Nothing was forgotten." in shown) is not is_gone
        assert (SECRET not in exported()) is is_gone

    def test_words_that_command_a_terminal_do_not_reach_it(self, builder):
        builder.session().prompt("red \x1b[31malert")
        builder.file()
        shown = on_a_terminal("forget", "--wing", "shop", typed="n\n")
        assert "\x1b[31m" not in shown
        assert "alert" in shown

    @pytest.mark.parametrize(
        "arguments",
        [[], ["--yes"], ["--wing", "shop", "--session", "x"], ["abcdef", "--wing", "shop"]],
    )
    def test_what_to_forget_is_said_in_one_way(self, ids, arguments):
        done = mempalace("forget", *arguments)
        assert done.returncode == 2
        assert "hint: " in done.stderr

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["0123456789"], 3),
            (["--wing", "nowhere"], 3),
            (["--session", "nowhere"], 3),
            (["a"], 2),
        ],
    )
    def test_what_is_not_there_is_not_forgotten(self, ids, arguments, code):
        assert mempalace("forget", *arguments, "--yes").returncode == code

    def test_one_unknown_id_and_nothing_goes(self, ids):
        before = exported()
        assert mempalace("forget", ids[1], "0123456789", "--yes").returncode == 3
        assert exported() == before

    def test_where_there_is_no_palace_none_is_made(self, palace_home):
        assert mempalace("forget", "abcdef", "--yes").returncode == 3
        assert not palace_home.exists()


class TestGone:
    """R4: out of everything that the palace shows."""

    def test_an_exchange_is_nowhere_and_all_else_is_where_it_was(self, ids):
        before = [line for line in exported().splitlines() if SECRET not in line]
        done = mempalace("forget", ids[1][:6], "--yes")
        assert done.returncode == 0, done.stderr
        assert exported().splitlines() == before
        assert mempalace("show", ids[1]).returncode == 3
        assert SECRET not in mempalace("search", SECRET, "--kind", "all").stdout
        assert mempalace_json("status")["forgotten"] >= 4  # its prompt, answer, call and result
        assert "forgotten: " in mempalace("status").stdout

    def test_several_ids_at_once_one_of_them_twice(self, ids):
        told = mempalace_json("forget", ids[0], ids[3], ids[0][:8], "--yes")
        assert told["exchanges"] == 2
        assert told["records"] == 4
        assert told["wings"] == ["blog", "shop"]
        assert told["sessions"] == [session_id(1), session_id(3)]
        assert told["started_at"] == "2026-01-10T09:00:00Z"

    def test_a_session_goes_with_its_row(self, ids):
        assert mempalace("forget", "--session", session_id(1)[:8], "--yes").returncode == 0
        listed = mempalace_json("sessions")
        assert {one["session_id"] for one in listed} == {session_id(2), session_id(3)}

    def test_a_wing_goes_with_its_name_and_folders(self, builder, ids):
        assert mempalace("forget", "--wing", "Shop", "--yes").returncode == 0
        with builder.palace.reading() as db:
            assert db.execute("SELECT name FROM wings").fetchall() == [("blog",)]
            assert db.execute("SELECT path FROM folders").fetchall() == [("/home/ada/blog",)]
            assert db.execute("SELECT id FROM sessions").fetchall() == [(session_id(3),)]
        assert mempalace("search", "basket", "--wing", "shop").returncode == 3

    def test_no_file_of_the_palace_holds_a_letter_of_it(self, builder, ids, palace_home):
        builder.palace.close()
        assert any(SECRET.encode() in path.read_bytes() for path in palace_home.iterdir())
        assert mempalace("forget", ids[1], "--yes").returncode == 0
        for path in palace_home.iterdir():
            assert SECRET[2:].encode() not in path.read_bytes(), path.name

    def test_what_an_interrupted_run_left_is_wiped_by_the_next(self, builder, ids):
        builder.execute("INSERT INTO notes (name, value) VALUES ('sweep owed', '1')")
        assert any("`mempalace forget`" in note for note in mempalace_json("status")["notices"])
        assert mempalace("forget").returncode == 0
        assert mempalace("forget").returncode == 2  # nothing is left to do
        assert not any("forget" in note for note in mempalace_json("status")["notices"])
