"""`mempalace show` and `mempalace sessions`: looking at what is there."""

import pytest

from tests.command import mempalace, mempalace_json, on_a_terminal
from tests.palace_builder import PalaceBuilder, session_id


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


def first_id(builder: PalaceBuilder) -> str:
    builder.file()
    with builder.palace.reading() as db:
        return str(db.execute("SELECT id FROM exchanges ORDER BY n").fetchone()[0])


class TestShow:
    @pytest.fixture
    def exchange(self, builder):
        session = builder.session(at="2026-01-10T09:00:00Z")
        session.prompt("Why?\n  Tell me.").answer("Let me look.")
        session.call("Read", 'Read {"path":"a.py"}').result("r" * 2_100).says("not that file")
        session.answer("Because " + "x" * 3_000)
        return first_id(builder)

    def test_talk_and_tools_come_in_the_order_in_which_they_were_said(self, exchange):
        shown = mempalace_json("show", exchange)
        assert [record["role"] for record in shown["records"]] == [
            "human", "assistant", "call", "result", "said", "assistant",
        ]  # fmt: skip
        assert shown["records"][0] == {
            "role": "human",
            "kind": "typed",
            "said_at": "2026-01-10T09:00:00Z",
            "text": "Why?\n  Tell me.",
            "omitted_chars": 0,
        }
        assert shown["records"][3]["omitted_chars"] == 100
        assert shown["records"][5]["text"] == "Because " + "x" * 3_000

    def test_people_get_every_word_and_the_way_back(self, exchange):
        shown = mempalace("show", exchange).stdout
        places = [
            shown.index(part)
            for part in ("Why?\n  Tell me.", "Let me look.", "Read {", "x" * 3_000)
        ]
        assert places == sorted(places)
        assert f"claude --resume {session_id(1)}" in shown
        assert "--- call Read, 2026-01-10 09:00 UTC" in shown
        assert "100 characters left out" in shown

    @pytest.mark.parametrize("cut", [6, 8, 31, 32])
    def test_any_unique_prefix_of_six_is_enough(self, exchange, cut):
        assert mempalace_json("show", exchange[:cut].upper())["exchange_id"] == exchange

    @pytest.mark.parametrize("tail", ["-talk-0", "-talk-3", "-tools-0", "-talk", "-t"])
    def test_the_id_of_a_drawer_means_its_exchange(self, exchange, tail):
        assert mempalace_json("show", exchange + tail)["exchange_id"] == exchange
        assert mempalace_json("show", exchange[:8] + tail)["exchange_id"] == exchange

    @pytest.mark.parametrize(
        "name", ["abcde", "a", "", "..", "'; --", "zzz_zz", "%%%%%%", "\udcff\udcff\udcff"]
    )
    def test_what_is_no_id_is_wrong_usage(self, exchange, name):
        done = mempalace("show", name)
        assert done.returncode == 2
        assert "hint: " in done.stderr

    def test_an_unknown_id_exits_3(self, exchange):
        done = mempalace("show", "0123456789")
        assert done.returncode == 3
        assert "`0123456789`" in done.stderr

    def test_an_ambiguous_prefix_names_what_it_may_be(self, builder):
        session = builder.session()
        session.prompt("one").prompt("two")
        builder.file()
        builder.execute("UPDATE exchanges SET id = 'abcdef00' || n")
        done = mempalace("show", "abcdef")
        assert done.returncode == 2
        assert "abcdef001, abcdef002" in done.stderr

    def test_an_id_that_is_the_beginning_of_another_is_found(self, builder):
        builder.session().prompt("one").prompt("two")
        builder.file()
        builder.execute("UPDATE exchanges SET id = 'abcdef' WHERE n = 1")
        builder.execute("UPDATE exchanges SET id = 'abcdef1' WHERE n = 2")
        assert mempalace_json("show", "abcdef")["records"][0]["text"] == "one"

    def test_a_retired_exchange_says_why(self, builder):
        """R5: kept with the reason."""
        builder.session().prompt("taken back").retract()
        shown = mempalace("show", first_id(builder)).stdout
        assert "retired  taken back by its author" in shown
        assert "taken back\n" in shown

    def test_a_transcript_cannot_command_the_terminal(self, builder):
        builder.session().prompt("red \x1b[31malert\x07")
        name = first_id(builder)
        assert "␛[31malert␇" in on_a_terminal("show", name, env={"NO_COLOR": "1"})
        assert "red \x1b[31malert\x07" in mempalace("show", name).stdout


class TestSessions:
    def test_the_latest_said_comes_first_with_date_wing_prompt_and_size(self, builder):
        builder.session(cwd="/home/ada/my-app", at="2026-01-10T09:00:00Z").prompt(
            "first\nprompt"
        ).answer("yes").prompt("second", at="2026-03-01T10:30:00Z")
        builder.session(cwd="/home/ada/shop", at="2026-02-01T00:00:00Z").prompt("other")
        builder.file()
        listed = mempalace_json("sessions")
        assert [row["wing"] for row in listed] == ["my_app", "shop"]
        assert listed[0] == {
            "session_id": session_id(1),
            "source": "claude-code",
            "wing": "my_app",
            "cwd": "/home/ada/my-app",
            "path": f"/home/ada/.claude/projects/p/{session_id(1)}.jsonl",
            "started_at": "2026-01-10T09:00:00Z",
            "ended_at": "2026-03-01T10:30:00Z",
            "exchanges": 2,
            "characters": len("first\nprompt\n\nyes") + len("second"),
            "first_prompt": "first prompt",
        }
        line = mempalace("sessions").stdout.splitlines()[0]
        for part in (
            "2026-03-01 10:30 UTC",
            session_id(1),
            "my_app",
            "2 exchanges",
            "first prompt",
        ):
            assert part in line

    def test_a_long_prompt_is_one_line(self, builder):
        builder.session().prompt("word\n" * 5_000)
        builder.file()
        (line,) = mempalace("sessions").stdout.splitlines()
        assert len(line) < 160
        assert line.endswith("…")

    def test_filters(self, builder):
        builder.session(cwd="/home/ada/my-app", at="2026-01-10").prompt("old")
        builder.session(cwd="/home/ada/my-app", at="2026-02-10").prompt("new")
        builder.session(cwd="/home/ada/other", at="2026-03-10").prompt("other")
        builder.file()

        def prompts(*arguments: str) -> list[str]:
            return [row["first_prompt"] for row in mempalace_json("sessions", *arguments)]

        assert prompts() == ["other", "new", "old"]
        assert prompts("--wing", "My App") == ["new", "old"]
        assert prompts("--since", "2026-02-01") == ["other", "new"]
        assert prompts("--limit", "1") == ["other"]
        assert mempalace("sessions", "--wing", "nope").returncode == 3
        assert mempalace("sessions", "--since", "nope").returncode == 2
        assert mempalace("sessions", "--limit", "0").returncode == 2

    def test_retired_prompts_do_not_count_and_headless_ones_have_no_prompt(self, builder):
        builder.session("a").prompt("taken back").retract().prompt("the first that counts")
        builder.session("b").answer("an answer to nobody")
        builder.session("c").prompt("only this").retract()
        builder.file()
        listed = {row["session_id"]: row for row in mempalace_json("sessions")}
        assert set(listed) == {"a", "b"}
        assert listed["a"]["first_prompt"] == "the first that counts"
        assert listed["a"]["exchanges"] == 1
        assert listed["b"]["first_prompt"] is None
        assert "(answers without a prompt)" in mempalace("sessions").stdout

    def test_a_prompt_that_took_answers_before_it_is_still_the_prompt(self, builder):
        """`opening` finds the prompt's words wherever they stand in the talk."""
        builder.session().prompt("the prompt").answer("the answer")
        builder.file()
        builder.execute("UPDATE records SET seq = seq + 10")
        builder.execute("UPDATE records SET seq = 5 WHERE role = 2")
        builder.execute(
            "UPDATE drawers SET text = 'the answer' || char(10) || char(10) || 'the prompt'"
        )
        assert mempalace_json("sessions")[0]["first_prompt"] == "the prompt"

    def test_none_at_all_says_what_to_do(self, builder):
        assert "mempalace backfill" in mempalace("sessions").stdout
        assert mempalace_json("sessions") == []
