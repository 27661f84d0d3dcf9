"""Every sentence of docs/formats/claude-code.md that is about one record; R1, R6."""

import json
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempalace.model import Role
from mempalace.transcripts.claude_code import ClaudeCode
from mempalace.transcripts.registry import records_of_document
from tests.capturing import Capturing
from tests.transcripts.builder import MAIN, REJECTED, Read, Session, fold

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
PAPER = {"type": "document", "source": {"type": "base64", "data": "JVBERi0="}}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


class TestWhatBecomesOfARecord:
    """docs/formats/claude-code.md, "What becomes of a record"."""

    @pytest.mark.parametrize(
        ("kind", "fields"),
        [
            ("summary", {"summary": "go", "leafUuid": "u"}),
            ("custom-title", {"customTitle": "go"}),
            ("ai-title", {"aiTitle": "go"}),
            ("agent-name", {"agentName": "go"}),
            ("last-prompt", {"lastPrompt": "go"}),
            ("file-history-snapshot", {"messageId": "m", "snapshot": {}}),
            ("system", {"subtype": "compact_boundary", "content": "Conversation compacted"}),
            ("system", {"subtype": "local_command", "content": "<command-name>/x</command-name>"}),
            ("progress", {"data": {"message": {"type": "user", "message": {"content": "sub"}}}}),
            ("mode", {"mode": "default"}),
            ("pr-link", {"prNumber": 1}),
            ("tool_use", {"name": "Bash"}),
            ("tool_result", {"content": "go"}),
            ("attachment", {"attachment": {"type": "hook_success", "content": "go"}}),
        ],
    )
    def test_records_that_hold_no_words_are_left_out_by_their_type(self, kind, fields):
        read = Session().user("go").add(kind, **fields).text("Done.").read()
        assert (read.prompts, read.texts) == (["go"], ["Done."])
        assert read.rules == [kind]

    @pytest.mark.parametrize("kind", ["hologram", "", 7, None, ["user"]])
    def test_unknown_types_are_counted_as_unknown(self, kind):
        read = Session().add(kind, message={"content": "go"}).read()
        assert read.prompts == []
        assert read.rules[0].startswith("unknown:")

    def test_human_is_another_name_for_user(self):
        assert Session().add("human", message={"content": "go"}).read().prompts == ["go"]

    @pytest.mark.parametrize(
        "message", [None, "go", ["go"], 7, {}, {"content": 7}, {"content": {}}]
    )
    @pytest.mark.parametrize("kind", ["user", "assistant"])
    def test_a_message_of_the_wrong_type_hurts_its_own_line_only(self, kind, message):
        read = Session().add(kind, message=message, uuid=7, sessionId=7).user("on").read()
        assert read.prompts == ["on"]
        assert read.rules == ["malformed"]

    def test_the_webs_export_holds_the_same_records(self):
        session = Session().user("go").text("Done.")
        records = records_of_document(json.loads(json.dumps({"loglines": session.records})))
        assert records is not None
        assert Read(fold(records, "session.json")).prompts == ["go"]


class TestWhoseWords:
    """docs/formats/claude-code.md, "Whose words", in its order."""

    @pytest.mark.parametrize(
        "path",
        [
            "/p/agent-1a2b.jsonl",
            f"/p/{MAIN}/subagents/agent-1.jsonl",
            f"/p/{MAIN}/subagents/workflows/wf_1/run.jsonl",
        ],
    )
    def test_a_sub_agents_file_holds_no_human_words(self, path):
        session = Session().user("search for it", isSidechain=...).text("Found.", isSidechain=...)
        session.call("t1").result("t1", REJECTED + "no")
        read = session.read(path)
        assert (read.prompts, read.texts, read.said) == ([], [], [])
        assert set(read.rules) == {"subagent"}

    def test_a_folder_above_the_project_may_be_called_subagents(self):
        assert Session().user("go").read(f"/subagents/.claude/projects/p/{MAIN}.jsonl").prompts

    @pytest.mark.parametrize(
        "flags", [{"isSidechain": True}, {"isSidechain": ..., "agentId": "a1"}]
    )
    def test_a_sidechain_in_the_main_file_answers_to_no_human(self, flags):
        session = Session().user("go").user("search", **flags).text("Found.", **flags).text("Done.")
        read = session.read()
        assert (read.prompts, read.texts) == (["go"], ["Done."])

    def test_an_agents_name_on_a_line_that_is_no_sidechain_changes_nothing(self):
        assert Session().user("go", agentId="a1").read().prompts == ["go"]

    @pytest.mark.parametrize("flag", ["isCompactSummary", "isVisibleInTranscriptOnly"])
    def test_a_summary_is_left_out(self, flag):
        read = Session().user("We did this and that.", **{flag: True}).read()
        assert (read.prompts, read.rules) == ([], ["compact-summary"])

    def test_a_meta_line_is_left_out_and_its_tool_results_stay(self):
        read = Session().user("Base directory for this skill: /s", isMeta=True).read()
        assert (read.prompts, read.rules) == ([], ["meta"])
        read = Session().call("t1").result("t1", "ok", "Caveat", isMeta=True).read()
        assert [m.text for m in read.of(Role.RESULT)] == ["ok"]
        assert read.prompts == []

    @pytest.mark.parametrize("kind", ["task-notification", "hook", "cron", "channel", "peer"])
    def test_another_origin_is_no_human(self, kind):
        read = Session().user("please go on", origin={"kind": kind}).read()
        assert (read.prompts, read.rules) == ([], [f"origin:{kind}"])

    @pytest.mark.parametrize("source", ["typed", "queued", "sdk", "user"])
    def test_what_a_human_or_a_program_prompted_is_kept(self, source):
        session = Session().user("go", promptSource=source, origin={"kind": "human"})
        assert session.read().kinds == [("typed", "go")]

    def test_what_the_system_prompted_is_not(self):
        assert Session().user("go", promptSource="system").read().prompts == []

    def test_a_flag_beats_a_text(self):
        words = "Stop hook feedback: what does that mean?"
        assert Session().user(words).read().prompts == []
        assert Session().user(words, origin={"kind": "human"}).read().prompts == [words]

    @pytest.mark.parametrize("origin", [None, "human", {"kind": None}, {}, 7])
    def test_an_origin_of_the_wrong_type_says_nothing(self, origin):
        assert Session().user("go", origin=origin).read().prompts == ["go"]

    def test_a_line_with_a_tools_output_is_no_prompt(self):
        assert Session().user("output", toolUseResult={"stdout": "output"}).read().prompts == []
        assert Session().user("go", toolUseResult=None).read().prompts == ["go"]

    def test_each_text_of_a_line_is_judged_on_its_own(self):
        opened = text("<ide_opened_file>a.py</ide_opened_file>")
        assert Session().user([opened, text("fix it")]).read().kinds == [("typed", "fix it")]
        command = text("<command-name>/fix</command-name>")
        assert Session().user([opened, command]).read().kinds == [("command", "/fix")]
        assert Session().user([opened]).read().rules == ["context-envelope"]

    def test_several_texts_are_joined_with_a_newline(self):
        assert Session().user([text("one"), "two", text("three")]).read().prompts == [
            "one\ntwo\nthree"
        ]

    def test_a_picture_without_words_is_a_prompt_of_its_own(self):
        for blocks in ([PICTURE], [PAPER], [text(""), PICTURE]):
            assert Session().user(blocks).read().kinds == [("image", "[image]")]

    def test_beside_words_a_picture_is_dropped(self):
        session = Session().user([text("[Image #1] what is that?"), PICTURE])
        assert session.read().prompts == ["[Image #1] what is that?"]
        assert "aGk=" not in str(session.read().messages)

    def test_a_line_that_carries_a_paper_for_the_model_is_meta(self):
        assert Session().user([PAPER], isMeta=True).read().prompts == []

    def test_a_plan_that_was_accepted_is_the_models_words(self):
        plan = "Implement the following plan:\n\n# Plan"
        assert Session().user(plan).read().kinds == [("plan", plan)]
        assert Session().user("# Plan", planContent="# Plan").read().kinds == [("plan", "# Plan")]

    def test_a_prompt_that_a_hook_stopped_and_its_repetition_are_two(self):
        session = (
            Session().user("fix tests").user("Operation stopped by hook: no").user("fix tests")
        )
        assert session.text("Fixed.").read().prompts == ["fix tests", "fix tests"]

    def test_a_command_without_an_answer_is_kept(self):
        session = Session().user("<command-name>/exit</command-name>")
        session.user("<local-command-stdout>Bye</local-command-stdout>")
        assert session.read().kinds == [("command", "/exit")]

    def test_both_branches_of_a_rewind_stay_in_file_order(self):
        session = Session().user("start").text("Started.").user("one way").text("So.")
        session.user("another way", parentUuid=session.records[1]["uuid"]).text("Or so.")
        assert session.read().prompts == ["start", "one way", "another way"]


class TestWordsInsideToolResults:
    """docs/formats/claude-code.md, "Words inside tool results"."""

    def test_the_reason_of_a_rejection_is_said_in_the_exchange_of_its_call(self):
        session = Session().user("go").call("t1", name="Edit").result("t1", REJECTED + "use tabs")
        read = session.read()
        assert read.said == ["use tabs"]
        (said,) = read.of(Role.SAID)
        assert said.call == read.of(Role.CALL)[0].keys[0]
        assert [m.text for m in read.of(Role.RESULT)] == [REJECTED + "use tabs"]
        assert read.prompts == ["go"]

    def test_a_result_may_be_a_list_of_blocks(self):
        blocks = [text(REJECTED + "no"), PICTURE, "more"]
        read = Session().user("go").call("t1").result("t1", blocks).read()
        assert [m.text for m in read.of(Role.RESULT)] == [f"{REJECTED}no\n[image]\nmore"]
        assert "aGk=" not in str(read.messages)

    def test_the_answers_beside_a_result_count_where_its_text_says_nothing(self):
        session = Session().user("go").call("t1", name="AskUserQuestion")
        session.result("t1", "ok", toolUseResult={"answers": {"Which?": "the second"}})
        assert session.read().said == ['"Which?"="the second"']

    def test_they_are_not_said_twice(self):
        session = Session().user("go").call("t1", name="AskUserQuestion")
        answered = 'User has answered your questions: "Which?"="b". You can now continue with the'
        answered += " user's answers in mind."
        session.result("t1", answered, toolUseResult={"answers": {"Which?": "b"}})
        assert session.read().said == ['"Which?"="b"']

    def test_words_beside_a_result_are_a_prompt_and_a_reminder_beside_it_is_none(self):
        session = Session().user("go").call("t1").result("t1", "ok", "we are #169")
        assert session.read().kinds == [("typed", "go"), ("steer", "we are #169")]
        reminder = "<system-reminder>\nx\n</system-reminder>"
        assert Session().user("go").call("t1").result("t1", "ok", reminder).read().prompts == ["go"]
        stop = "[Request interrupted by user for tool use]"
        assert Session().user("go").call("t1").result("t1", "ok", stop).read().prompts == ["go"]

    def test_output_in_full_beside_its_result_is_not_read_twice(self):
        session = Session().user("go").call("t1").result("t1", "ok", toolUseResult={"stdout": "ok"})
        assert len(session.read().of(Role.RESULT)) == 1


class TestSessionAndFolder:
    """docs/formats/claude-code.md, "Session and folder"."""

    def test_the_session_is_the_files_name_where_that_is_a_uuid(self):
        messages = Session("other").user("go").read(f"/p/{MAIN}.jsonl").messages
        assert {m.session for m in messages} == {MAIN}
        assert {m.named for m in messages} == {"other"}

    @pytest.mark.parametrize("name", ["sessionId", "session_id"])
    def test_else_it_is_the_first_that_a_turn_names(self, name):
        session = Session().add("summary", sessionId="stale")
        session.user("go", **{"sessionId": ..., name: "s1"}).text("Done.", sessionId="s2")
        assert {m.session for m in session.read("/p/full.jsonl").messages[1:]} == {"s1"}

    def test_a_number_is_no_session(self):
        assert Session(7).user("go").read("/p/full.jsonl").messages[0].session == "full"  # type: ignore[arg-type]

    def test_the_folder_is_the_first_that_any_line_names(self):
        session = Session().add("summary").user("go", cwd="/repo/shop").user("on", cwd="/repo/lib")
        reader = ClaudeCode().fold(PurePath("/p/x.jsonl"), {}, {})
        cwds = [m.cwd for n, r in enumerate(session.records) for m in reader.step(r, n)]
        assert reader.folder == "/repo/shop"
        assert cwds == [None, "/repo/shop", "/repo/lib"]

    @pytest.mark.parametrize(
        "record",
        [
            {"type": "queue-operation"},
            {"type": "last-prompt", "leafUuid": "u"},
            {"type": "mode", "mode": "x"},
            {"type": "summary", "leafUuid": "u"},
            {"type": "user", "message": {}},
            {"type": "system", "uuid": "u"},
            {"parentUuid": None},
        ],
    )
    def test_any_record_may_say_what_the_file_is(self, record):
        assert ClaudeCode().recognises(record)

    @pytest.mark.parametrize(
        "record",
        [
            {},
            {"type": "session_meta", "payload": {}},
            {"type": "user.message"},
            {"type": "message", "user": "U1", "text": "hi"},
            {"type": "result", "value": 1},
            {"role": "user", "message": {}},
            {"sessionId": "s", "projectHash": "p"},
            {"type": "user", "content": "hi"},
        ],
    )
    def test_records_of_other_programs_are_not_ours(self, record):
        assert not ClaudeCode().recognises(record)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "content", "text", "id", "kind", "answers", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


class TestAnyValues:
    """R6: unknown is normal, and wrong types happen."""

    @given(st.data())
    def test_no_value_anywhere_in_a_record_raises(self, data):
        session = Session().user("go").call("t1", message="m").result("t1", REJECTED + "no", "so")
        session.queue("enqueue", "on").queue("remove", "on").attachment("on").text("Done.")
        for record in session.records:
            for _ in range(data.draw(st.integers(0, 2))):
                at = record
                name = data.draw(st.sampled_from(sorted(at)))
                if isinstance(at[name], dict) and data.draw(st.booleans()):
                    at = at[name] = dict(at[name])
                    name = data.draw(st.sampled_from(sorted(at)))
                at[name] = data.draw(JUNK)
        for message in session.read().messages:
            assert isinstance(message.text, str)
            assert isinstance(message.kind, str)
            assert message.keys or message.role is Role.NOISE

    @pytest.mark.parametrize("value", [[[]], 10**40])
    def test_inputs_that_fast_json_refuses_are_kept(self, value, tmp_path):
        for _ in range(400 if value == [[]] else 0):
            value = [value]
        session = Session().user("go").call("t1", value=value).text("Done.")
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(session.write(tmp_path))
            assert capturing.prompts() == ["go"]
            capturing.check()


class TestTheState:
    def test_it_stays_small_whatever_the_file_holds(self):
        """R5: at most 64 KiB, and never a text."""
        session = Session()
        for number in range(300):
            session.queue("enqueue", f"a prompt that waits, number {number} " * 5)
        for message in range(12):
            for step in range(40):
                blocks = [
                    {"type": "text", "text": f"answer {message} {step}"},
                    {
                        "type": "tool_use", "id": f"toolu_{message}_{step}_{'x' * 30}",
                        "name": "mcp__a_server_with_a_long_name__a_tool_with_a_long_name",
                        "input": {"step": step},
                    },
                ]  # fmt: skip
                session.answer(blocks, message=f"msg_{message:024d}")
        reader = ClaudeCode().fold(PurePath(f"{MAIN}.jsonl"), {}, {})
        largest = 0
        for offset, record in enumerate(session.records):
            reader.step(record, offset)
            largest = max(largest, len(json.dumps(reader.state())))
        assert largest <= 64 * 1024
        assert "prompt that waits" not in json.dumps(reader.state())
