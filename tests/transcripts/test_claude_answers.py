"""One answer over many lines, and its copies.

docs/formats/claude-code.md, "Answers" and "Names"; R1, R3.
"""

import pytest

from mempalace.model import Role
from tests.capturing import Capturing
from tests.transcripts.builder import Session

SECOND = "6f0c7a60-0000-4000-8000-0000000000a2"


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def stored(tmp_path, *sessions: Session) -> tuple[list[str], list[str]]:
    """Prompts and answers as the palace has them, after every file was read in turn."""
    with Capturing(tmp_path / "palace") as capturing:
        for session in sessions:
            capturing.read_ok(session.write(tmp_path / "files"))
        capturing.check()
        words = capturing.words()
    return (
        [words for role, words in words if role == Role.HUMAN.name],
        [words for role, words in words if role == Role.ASSISTANT.name],
    )


class TestSplitMessages:
    """ "One message of the API is written as many lines"."""

    def test_each_block_of_a_message_is_a_record(self):
        session = Session().user("go").text("One.", message="m").call("t1", message="m")
        session.result("t1", "ok").text("Two.", message="m")
        read = session.read()
        assert read.texts == ["One.", "Two."]
        assert len(read.of(Role.CALL)) == 1

    def test_several_blocks_may_stand_on_one_line(self):
        session = Session().user("go").answer([text("One."), "Two.", text("One.")])
        assert session.read().texts == ["One.", "Two.", "One."]

    def test_content_may_be_a_plain_string(self):
        assert Session().user("go").answer("Done.").read().texts == ["Done."]

    def test_a_message_without_an_id_is_known_by_its_uuid(self):
        session = Session().user("go").line("assistant", {"content": [text("Done.")]})
        session.line("assistant", {"content": [text("Done.")]})
        session.records.append(session.records[-1])
        assert session.read().texts == ["Done.", "Done."]

    def test_a_message_without_any_name_is_known_by_its_time_or_place(self):
        session = Session().user("go")
        bare = {"message": {"content": "Done."}}
        session.add("assistant", **bare, timestamp="2026-01-01T00:00:00Z")
        session.add("assistant", **bare, timestamp="2026-01-01T00:00:01Z")
        session.add("assistant", **bare).add("assistant", **bare)
        assert session.read().texts == ["Done."] * 4

    def test_two_calls_with_the_same_input_are_two(self):
        session = Session().user("go").call("t1", message="m", a=1).call("t2", message="m", a=1)
        assert len(session.read().of(Role.CALL)) == 2

    def test_calls_of_server_tools_and_their_results_count(self):
        session = (
            Session()
            .user("go")
            .answer(
                [
                    {
                        "type": "server_tool_use",
                        "id": "s1",
                        "name": "web_search",
                        "input": {"q": "x"},
                    },
                    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
                ]
            )
        )
        read = session.read()
        assert [m.kind for m in read.of(Role.CALL)] == ["web_search"]
        (result,) = read.of(Role.RESULT)
        assert result.call == read.of(Role.CALL)[0].keys[0]


class TestSnapshots:
    """ "Some writers repeat a message as it grows"."""

    @pytest.mark.parametrize("parent", ["p1", None, ...])
    def test_a_longer_text_replaces_the_shorter(self, parent, tmp_path):
        session = Session().user("go")
        for words in ("I look", "I look at", "I look at it."):
            session.text(words, message="m", parentUuid=parent)
        assert stored(tmp_path, session)[1] == ["I look at it."]

    def test_blocks_that_come_behind_leave_the_first_as_it_is(self, tmp_path):
        session = Session().user("go")
        session.answer([text("I look")], message="m", parentUuid="p")
        session.answer([text("I look."), text("More.")], message="m", parentUuid="p")
        assert stored(tmp_path, session)[1] == ["I look.", "More."]

    def test_the_same_line_again_adds_nothing(self, tmp_path):
        session = Session().user("go").text("Done.", message="m")
        session.records += [session.records[-1]] * 2
        assert stored(tmp_path, session)[1] == ["Done."]

    def test_equal_blocks_on_lines_that_hang_on_each_other_are_two(self, tmp_path):
        session = Session().user("go").text("Next.", message="m").text("Next.", message="m")
        assert stored(tmp_path, session)[1] == ["Next.", "Next."]
        again = Session().user("go").text("Next.", message="m").text("Next.", message="m")
        assert stored(tmp_path, session, again)[1] == ["Next.", "Next."]

    def test_a_text_that_begins_like_the_one_before_is_no_snapshot_of_it(self, tmp_path):
        session = Session().user("go").text("Next.", message="m").text("Next. Then.", message="m")
        assert stored(tmp_path, session)[1] == ["Next.", "Next. Then."]

    def test_equal_texts_of_different_messages_are_two(self, tmp_path):
        session = Session().user("go").text("Done.").user("again").text("Done.")
        assert stored(tmp_path, session)[1] == ["Done.", "Done."]

    def test_what_supersedes_a_text_makes_it_an_alternate(self, tmp_path):
        session = Session().user("go").text("Old.")
        session.text("New.", supersedesUuids=[session.records[-1]["uuid"], 17, None])
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(session.write(tmp_path))
            assert capturing.words() == [
                ("ALTERNATE", "Old."), ("ASSISTANT", "New."), ("HUMAN", "go"),
            ]  # fmt: skip


class TestNotAnAnswer:
    """ "Texts of white space, and what stands in the model's name"."""

    def test_white_space_is_left_out(self):
        read = Session().user("go").text("\n\n").text("Done.\n").read()
        assert read.texts == ["Done.\n"]
        assert "blank" in read.rules

    @pytest.mark.parametrize(
        "words", ["No response requested.", "API Error: 500", "Prompt is too long"]
    )
    def test_what_the_harness_says_in_the_models_name_is_left_out(self, words):
        session = Session().user("go").text(words, isApiErrorMessage=True)
        session.answer([text(words)], model="<synthetic>")
        assert session.read().texts == []
        assert Session().user("go").text(words).read().texts == [words]

    @pytest.mark.parametrize("flag", ["isCompactSummary", "isVisibleInTranscriptOnly"])
    def test_a_summary_in_the_models_name_is_left_out(self, flag):
        session = Session().text("We did this and that.")
        session.records[0][flag] = True
        assert session.read().texts == []

    def test_thinking_is_read_and_left_out_by_its_rule(self):
        session = (
            Session()
            .user("go")
            .answer(
                [{"type": "thinking", "thinking": "hm"}, {"type": "redacted_thinking", "data": "x"}]
            )
        )
        read = session.read()
        assert read.texts == []
        assert read.rules == ["thinking", "thinking"]

    @pytest.mark.parametrize("block", [{"type": "hologram"}, {"type": 7}, {}, 7, None, []])
    def test_blocks_of_unknown_types_hurt_nothing_else(self, block):
        assert Session().user("go").answer([block, text("Done.")]).read().texts == ["Done."]


class TestCopies:
    """docs/formats/claude-code.md, "Names": history is copied all the time."""

    def history(self) -> Session:
        session = Session().user("go").text("One.", message="m1").call("t1", message="m1")
        session.result("t1", "no", "and this").text("Two.", message="m2").user("go")
        return session.text("Three.", message="m3")

    @pytest.mark.parametrize("anew", [False, True])
    @pytest.mark.parametrize("first", [0, 1])
    def test_a_copy_adds_its_own_words_only_whichever_is_read_first(self, anew, first, tmp_path):
        old = self.history()
        new = old.copied(session=SECOND, anew=anew).user("on").text("Four.", message="m4")
        files = [old, new] if not first else [new, old]
        assert stored(tmp_path, *files) == (
            ["and this", "go", "go", "on"],
            ["Four.", "One.", "Three.", "Two."],
        )

    def test_history_appended_again_to_the_same_file_adds_nothing(self, tmp_path):
        session = self.history()
        session.records += session.records[2:]
        session.user("go").text("Four.")
        assert stored(tmp_path, session)[0] == ["and this", "go", "go", "go"]

    def test_a_resume_that_stamps_the_lines_of_tools_anew_adds_no_words_beside_them(self, tmp_path):
        old = self.history()
        new = old.copied(session=SECOND, anew=True)
        new.records[3]["timestamp"] = "2026-02-02T08:00:00.000Z"
        assert stored(tmp_path, old, new)[0] == ["and this", "go", "go"]

    def test_a_call_that_is_copied_within_its_file_is_one(self, tmp_path):
        session = self.history()
        again = {**session.records[2], "uuid": "other", "parentUuid": "elsewhere"}
        session.records.insert(3, again)
        assert len(session.read().of(Role.CALL)) == 1

    def test_one_uuid_with_two_contents_is_two_prompts(self, tmp_path):
        session = Session().user("one", uuid="u").user("two", uuid="u").user("one", uuid="u")
        assert stored(tmp_path, session)[0] == ["one", "two"]

    def test_a_string_and_one_block_of_the_same_text_are_the_same_content(self, tmp_path):
        session = Session().user("one", uuid="u").user([text("one")], uuid="u")
        assert stored(tmp_path, session)[0] == ["one"]

    def test_pictures_are_told_apart_by_what_was_dropped(self, tmp_path):
        session = Session()
        for data in ("aGk=", "aG8=", "aGk="):
            picture = {"type": "image", "source": {"type": "base64", "data": data}}
            session.user([picture], uuid="u", timestamp="2026-01-01T00:00:00Z")
        assert stored(tmp_path, session)[0] == ["[image]", "[image]"]

    def test_without_uuid_and_time_the_place_names_a_prompt(self, tmp_path):
        session = Session()
        for _ in range(2):
            session.add("user", message={"content": "yes"})
        assert stored(tmp_path, session)[0] == ["yes", "yes"]
        assert stored(tmp_path, session)[0] == ["yes", "yes"]
