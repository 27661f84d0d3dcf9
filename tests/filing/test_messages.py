"""Where a record belongs, and what of it is kept: whole sessions in, rows out."""

from __future__ import annotations

from pathlib import Path

import pytest

from mempalace.model import Role
from tests.capturing import Capturing
from tests.transcripts.builder import Session


@pytest.fixture
def palace(tmp_path: Path):
    with Capturing(tmp_path / "palace") as capturing:
        yield capturing
        capturing.check()


def exchange_of(palace: Capturing, prompt: str) -> dict:
    return next(
        row for row in palace.rows() if any(text == prompt for _, _, text, _, _ in row["records"])
    )


def texts(row: dict, role: Role) -> list[str]:
    return [text for name, _, text, _, _ in row["records"] if name == role.name]


class TestEchoes:
    """R11: what MemPalace says is not said again."""

    def test_results_of_our_own_commands_are_kept_as_a_count(self, palace, tmp_path):
        session = Session().user("what did we decide?")
        session.call("t1", command="mempalace search decided").result("t1", "an old answer")
        palace.read_ok(session.write(tmp_path))
        row = exchange_of(palace, "what did we decide?")
        kept = [(text, omitted) for name, _, text, omitted, _ in row["records"] if name == "RESULT"]
        assert kept == [("", len("an old answer"))]
        assert "mempalace search decided" in texts(row, Role.CALL)[0]

    def test_results_of_our_tools_over_mcp_are_kept_as_a_count(self, palace, tmp_path):
        session = Session().user("hello").call("t1", name="mcp__mempalace__search", query="x")
        palace.read_ok(session.result("t1", "an old answer").write(tmp_path))
        assert texts(exchange_of(palace, "hello"), Role.RESULT) == [""]

    def test_our_context_is_removed_where_it_opens_a_prompt(self, palace, tmp_path):
        context = (
            '<mempalace-context generated="2026-01-01T00:00:00Z">\nold\n</mempalace-context>\n'
        )
        palace.read_ok(Session().user(context + "new words").write(tmp_path))
        assert palace.prompts() == ["new words"]

    def test_prose_about_our_context_is_kept(self, palace, tmp_path):
        prose = "why is there a <mempalace-context generated> block in my prompt?"
        palace.read_ok(Session().user(prose).write(tmp_path))
        assert palace.prompts() == [prose]


class TestCutting:
    """Of tools: a call and a result are kept up to mining.tool_chars."""

    def test_the_number_of_characters_left_out_is_said_in_place(self, tmp_path):
        session = Session().user("go").call("t1", command="ls").result("t1", "x" * 2_500)
        with Capturing(tmp_path / "palace") as palace:
            palace.read_ok(session.write(tmp_path))
            result = texts(exchange_of(palace, "go"), Role.RESULT)[0]
        assert result == "x" * 2_000 + " [… 500 characters left out]"

    def test_minus_one_keeps_all(self, tmp_path):
        session = Session().user("go").call("t1", command="ls").result("t1", "x" * 9_000)
        with Capturing(tmp_path / "palace", tool_chars=-1) as palace:
            palace.read_ok(session.write(tmp_path))
            assert texts(exchange_of(palace, "go"), Role.RESULT) == ["x" * 9_000]
            palace.check()

    def test_answers_are_never_cut(self, tmp_path):
        session = Session().user("go").text("word " * 5_000)
        with Capturing(tmp_path / "palace", tool_chars=0) as palace:
            palace.read_ok(session.write(tmp_path))
            assert texts(exchange_of(palace, "go"), Role.ASSISTANT) == ["word " * 5_000]


class TestResults:
    def test_a_result_goes_to_the_exchange_of_its_call(self, palace, tmp_path):
        session = Session().user("first").call("t1", command="sleep 9").user("second")
        palace.read_ok(session.result("t1", "done at last").text("ok").write(tmp_path))
        assert texts(exchange_of(palace, "first"), Role.RESULT) == ["done at last"]
        assert texts(exchange_of(palace, "second"), Role.ASSISTANT) == ["ok"]

    def test_a_result_without_its_call_answers_no_prompt(self, palace, tmp_path):
        # docs/adr/0003
        session = Session().user("first").result("elsewhere", "from a time before").text("ok")
        palace.read_ok(session.write(tmp_path))
        assert texts(exchange_of(palace, "first"), Role.RESULT) == []
        assert exchange_of(palace, "from a time before")["headless"]

    def test_a_repeated_result_does_not_draw_later_answers_to_itself(self, palace, tmp_path):
        """R3: a replay of an old tool line must not reopen its exchange."""
        session = Session().user("first").call("t1", command="ls").result("t1", "a.py").text("one")
        session.user("second")
        replay = session.records[2]
        session.records.append(replay)
        palace.read_ok(session.text("two").write(tmp_path))
        assert texts(exchange_of(palace, "second"), Role.ASSISTANT) == ["two"]
        assert texts(exchange_of(palace, "first"), Role.ASSISTANT) == ["one"]


class TestAnswersWithoutAPrompt:
    def test_a_prompt_that_turns_up_takes_them(self, palace, tmp_path):
        whole = Session().user("the question").text("part one").text("part two")
        slice_ = tmp_path / "slice.jsonl"
        slice_.write_bytes(b"".join(whole.lines()[1:]))
        palace.read_ok(slice_)
        assert [row["headless"] for row in palace.rows()] == [1]
        palace.read_ok(whole.write(tmp_path))
        (row,) = palace.rows()
        assert texts(row, Role.HUMAN) == ["the question"]
        assert texts(row, Role.ASSISTANT) == ["part one", "part two"]

    def test_they_stay_with_the_prompt_when_the_slice_comes_last(self, palace, tmp_path):
        whole = Session().user("the question").text("part one").text("part two")
        palace.read_ok(whole.write(tmp_path))
        slice_ = tmp_path / "slice.jsonl"
        slice_.write_bytes(b"".join(whole.lines()[1:]))
        palace.read_ok(slice_)
        assert len(palace.rows()) == 1


class TestGrowth:
    def test_an_open_exchange_rewrites_its_last_window_alone(self, palace, tmp_path):
        session = Session().user("go").text("word " * 700)
        path = session.write(tmp_path)
        palace.read_ok(path, cold=False)
        before = palace.palace.db.execute("SELECT n, text FROM drawers ORDER BY n").fetchall()
        session.text("more " * 40)
        session.write(tmp_path)
        changes = palace.palace.db.total_changes
        palace.read_ok(path, cold=False)
        after = palace.palace.db.execute("SELECT n, text FROM drawers ORDER BY n").fetchall()
        assert after[: len(before) - 1] == before[:-1]
        assert len(after) > len(before)
        assert palace.palace.db.total_changes > changes

    def test_a_drawer_id_depends_on_exchange_stream_and_position_alone(self, palace, tmp_path):
        palace.read_ok(Session().user("go").text("word " * 700).write(tmp_path))
        items = [row[0] for row in palace.palace.db.execute("SELECT item FROM outbox")]
        exchange_id = exchange_of(palace, "go")["id"]
        assert sorted(items) == sorted(f"{exchange_id}-talk-{n}" for n in range(len(items)))


class TestSupersededAnswers:
    def test_an_answer_that_was_superseded_stays_as_an_alternate(self, palace, tmp_path):
        session = Session().user("go").text("first try")
        superseded = session.records[-1]["uuid"]
        session.text("second try", supersedesUuids=[superseded])
        palace.read_ok(session.write(tmp_path))
        row = exchange_of(palace, "go")
        assert texts(row, Role.ALTERNATE) == ["first try"]
        assert texts(row, Role.ASSISTANT) == ["second try"]


class TestWings:
    def wing(self, palace: Capturing, tmp_path: Path, cwd: str, **settings: object) -> str:
        name = f"{len(palace.rows()):08x}-1111-4111-8111-111111111111"
        path = Session(name, cwd=cwd).user(f"in {cwd} {name}").write(tmp_path, f"{name}.jsonl")
        palace.read_ok(path)
        return str(exchange_of(palace, f"in {cwd} {name}")["wing"])

    def test_a_folder_in_a_git_project_belongs_to_the_project(self, palace, tmp_path):
        inner = tmp_path / "My-Shop" / "src" / "api"
        inner.mkdir(parents=True)
        (tmp_path / "My-Shop" / ".git").mkdir()
        assert self.wing(palace, tmp_path, str(inner)) == "my_shop"

    def test_a_worktree_counts_as_its_main_repository(self, palace, tmp_path):
        (tmp_path / "shop" / ".git" / "worktrees" / "fix").mkdir(parents=True)
        tree = tmp_path / "elsewhere" / "fix"
        tree.mkdir(parents=True)
        (tree / ".git").write_text(f"gitdir: {tmp_path}/shop/.git/worktrees/fix\n")
        assert self.wing(palace, tmp_path, str(tree)) == "shop"

    def test_a_vanished_worktree_inside_its_repository_is_still_known(self, palace, tmp_path):
        gone = "/nowhere/shop/.worktrees/alex/fix"
        assert self.wing(palace, tmp_path, gone) == "shop"

    def test_a_vanished_folder_belongs_to_the_nearest_known_project(self, palace, tmp_path):
        assert self.wing(palace, tmp_path, "/nowhere/shop") == "shop"
        assert self.wing(palace, tmp_path, "/nowhere/shop/src/deep") == "shop"

    def test_two_projects_of_one_name_are_two_wings(self, palace, tmp_path):
        assert self.wing(palace, tmp_path, "/nowhere/acme/shop") == "shop"
        assert self.wing(palace, tmp_path, "/nowhere/other/shop") == "other_shop"

    def test_the_first_answer_stays_when_the_folder_is_gone(self, palace, tmp_path):
        project = tmp_path / "shop"
        (project / ".git").mkdir(parents=True)
        inner = project / "src"
        inner.mkdir()
        assert self.wing(palace, tmp_path, str(inner)) == "shop"
        (project / ".git").rmdir()
        assert self.wing(palace, tmp_path, str(inner)) == "shop"

    def test_a_configured_prefix_wins(self, tmp_path):
        with Capturing(tmp_path / "palace", wings={"/nowhere/shop": "The Shop"}) as palace:
            assert self.wing(palace, tmp_path, "/nowhere/shop/api") == "the_shop"
            assert self.wing(palace, tmp_path, "/nowhere/shopping") == "shopping"

    def test_words_that_name_no_folder_are_chats(self, palace, tmp_path):
        session = Session()
        session.user("where am I?")
        for record in session.records:
            record.pop("cwd", None)
        palace.read_ok(session.write(tmp_path))
        assert exchange_of(palace, "where am I?")["wing"] == "chats"

    def test_a_folder_that_is_named_later_still_gives_the_wing(self, palace, tmp_path):
        session = Session(cwd="/nowhere/shop").user("early").user("late")
        session.records[0].pop("cwd")
        palace.read_ok(session.write(tmp_path))
        assert exchange_of(palace, "early")["wing"] == "shop"


class TestPrivateToTheEndOfTheMessage:
    """R10: a block that is not closed reaches to the end of the message, not of its part."""

    def test_over_the_blocks_of_one_line(self, palace, tmp_path):
        blocks = [{"type": "text", "text": "seen <private>x"}, {"type": "text", "text": "SECRET"}]
        palace.read_ok(Session().user("go").answer(blocks).user("next").text("ok").write(tmp_path))
        assert texts(exchange_of(palace, "go"), Role.ASSISTANT) == ["seen "]
        assert texts(exchange_of(palace, "next"), Role.ASSISTANT) == ["ok"]

    def test_over_the_lines_of_one_message(self, palace, tmp_path):
        session = Session().user("go").text("seen <private>x", message="m1")
        session.text("SECRET", message="m1").text("open again", message="m2")
        path = session.write(tmp_path)
        whole = path.read_bytes()
        path.write_bytes(b"".join(session.lines()[:2]))
        palace.read_ok(path, cold=False)  # the piece ends in the middle of the message
        path.write_bytes(whole)
        palace.read_ok(path)
        assert texts(exchange_of(palace, "go"), Role.ASSISTANT) == ["seen ", "open again"]

    def test_from_a_result_to_the_words_beside_it(self, palace, tmp_path):
        session = Session().user("go").call("t1", command="cat x")
        palace.read_ok(session.result("t1", "a <private>x", "SECRET").write(tmp_path))
        assert "SECRET" not in str(palace.rows())


class TestAnswersThatGrew:
    """R1: which words are stored does not depend on the order of reading."""

    def grown(self, *texts_: str) -> Session:
        session = Session().user("start")
        parent = session.records[-1]["uuid"]
        for text in texts_:
            session.text(text, message="m1", parentUuid=parent)
        return session

    @pytest.mark.parametrize("first", ["whole", "end", "middle"])
    def test_a_copy_of_a_part_of_the_run_leaves_nothing_behind(self, tmp_path, first):
        whole = self.grown("Hel", "Hello", "Hello w")
        other = "22222222-2222-4222-8222-222222222222"
        copy = self.grown("Hello w" if first == "end" else "Hello").copied(session=other)
        paths = [whole.write(tmp_path), copy.write(tmp_path, f"{other}.jsonl")]
        with Capturing(tmp_path / "palace") as palace:
            palace.read_ok(*(paths if first == "whole" else reversed(paths)))
            palace.check()
            assert texts(exchange_of(palace, "start"), Role.ASSISTANT) == ["Hello w"]


class TestWordsTakenBack:
    """R1: a copy that ends before the words were taken back does not bring them in."""

    @pytest.mark.parametrize("order", ["whole first", "copy first"])
    def test_whichever_is_read_first(self, tmp_path, order):
        session = Session().user("start").text("working").queue("enqueue", "never mind")
        copy = tmp_path / "copy.jsonl"
        copy.write_bytes(session.bytes())
        session.queue("popAll", "never mind").user("do it so").text("done")
        paths = [session.write(tmp_path), copy]
        with Capturing(tmp_path / "palace") as palace:
            palace.read_ok(*(paths if order == "whole first" else reversed(paths)))
            assert palace.prompts() == ["start", "do it so"]
