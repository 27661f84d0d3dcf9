"""Rollouts of Codex, shape by shape: what is a prompt, an answer, a call, and what is none."""

from __future__ import annotations

import json
from pathlib import PurePath

import pytest

from mempalace.model import Role
from mempalace.transcripts.codex import Codex
from tests.transcripts.codex_builder import (
    ABORTED,
    AGENTS,
    ENVIRONMENT,
    MODES,
    SKILL,
    Rollout,
    call_key,
    marked,
    read,
)


def _bare(*records) -> list[dict]:
    header: dict = {
        "id": "s1",
        "timestamp": "2025-08-01T10:00:00.000Z",
        "instructions": None,
        "git": {},
    }
    return [header, {"record_type": "state"}, *records]


def _bare_message(role: str, text: str) -> dict:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


class TestBareFiles:
    """Before 0.40: items without an envelope, the folder only in what is injected."""

    def test_prompts_answers_and_calls_are_read(self):
        found = read(
            _bare(
                _bare_message("user", ENVIRONMENT),
                _bare_message("user", "hello"),
                {"type": "reasoning", "summary": [], "encrypted_content": "secret"},
                {"type": "local_shell_call", "call_id": "c1",
                 "action": {"type": "exec", "command": ["ls"]}},
                {"type": "function_call_output", "call_id": "c1", "output": "a"},
                _bare_message("assistant", "hi"),
                {"record_type": "state"},
                _bare_message("user", "hello"),
            )
        )  # fmt: skip
        assert found.prompts == ["hello", "hello"]
        assert found.texts == ["hi"]
        assert [m.text for m in found.of(Role.CALL, Role.RESULT)] == [
            'local_shell_call {"type":"exec","command":["ls"]}', "a",
        ]  # fmt: skip
        assert {m.session for m in found.of(Role.HUMAN)} == {"s1"}
        assert {m.cwd for m in found.of(Role.HUMAN)} == {"/repo/shop"}
        assert found.of(Role.HUMAN)[0].at is not None

    def test_the_folder_stands_beside_the_words_in_one_message(self):
        found = read(_bare(_bare_message("user", f"{AGENTS}\n{ENVIRONMENT}\n\nhello")))
        assert found.prompts == ["hello"]
        assert found.of(Role.HUMAN)[0].cwd == "/repo/shop"

    def test_records_with_a_role_alone_are_messages(self):
        found = read(
            [
                {"timestamp": "2025-09-10T12:00:00Z", "role": "user", "content": "branch?"},
                {"type": "tool_call", "function": {"name": "git"}, "arguments": "status"},
                {"type": "tool_result", "name": "git", "result": "On main"},
                {"timestamp": "2025-09-10T12:00:02Z", "role": "assistant", "content": "main"},
                {"timestamp": "2025-09-10T12:00:02Z", "role": "function", "content": None},
                {"timestamp": "2025-09-10T12:00:02Z", "role": "user", "content": None},
            ]
        )
        assert (found.prompts, found.texts) == (["branch?"], ["main"])
        result = found.of(Role.RESULT)[0]
        assert (result.text, result.call) == ("On main", call_key(found, "git"))

    def test_the_first_codex_wrote_one_document(self):
        session = {"timestamp": "2025-04-20T10:00:00Z", "id": "ts-1", "instructions": ""}
        items = [_bare_message("user", "hello"), _bare_message("assistant", "hi")]
        assert Codex().recognises(session)
        found = read([session, *items], "/h/sessions/rollout-2025-04-20-ts-1.json")
        assert (found.prompts, found.texts) == (["hello"], ["hi"])
        assert found.of(Role.HUMAN)[0].session == "ts-1"

    @pytest.mark.parametrize(
        "record",
        [
            {"type": "session_meta", "payload": {}},
            {"type": "event_msg", "payload": {}},
            {"type": "world_state", "payload": {}},
            {"id": "x", "timestamp": "t", "instructions": None},
            {"record_type": "state"},
            {"type": "message", "role": "user", "content": []},
        ],
    )
    def test_they_are_recognised_by_their_content(self, record):
        assert Codex().recognises(record)

    @pytest.mark.parametrize(
        "record",
        [
            {},
            {"type": "user", "message": {}},
            {"type": "message", "role": "user", "content": [], "sessionId": "s"},
            {"id": "x", "timestamp": "t", "message": "chat"},
            {"id": "x", "timestamp": "t", "text": "chat"},
            {"type": ["session_meta"], "payload": {}},
            {"type": "session_meta", "payload": "p"},
        ],
    )
    def test_other_programs_records_are_not_theirs(self, record):
        assert not Codex().recognises(record)


class TestMirrors:
    """Every prompt and answer is written two or three times and counts once."""

    @pytest.mark.parametrize("item_first", [True, False])
    @pytest.mark.parametrize("mode", MODES)
    def test_every_mode_counts_once_in_either_order(self, mode, item_first):
        rollout = Rollout(mode=mode)
        rollout.item_first = item_first
        rollout.turn().ask("hello").answer("hi").call("c1").result("c1", "r").answer("done")
        rollout.turn().ask("hello").answer("hi")
        found = rollout.read()
        assert found.prompts == ["hello", "hello"]
        assert found.texts == ["hi", "done", "hi"]

    def test_all_three_carriers_in_one_file_count_once(self):
        rollout = Rollout().turn().message("user", "hello").event("user_message", message="hello")
        rollout.completed("UserMessage", content=[{"type": "text", "text": "hello"}]).answer("hi")
        assert rollout.read().prompts == ["hello"]

    @pytest.mark.parametrize("mode", MODES)
    def test_steering_in_one_turn_gives_two_prompts(self, mode):
        rollout = Rollout(mode=mode).turn().ask("begin").ask("and this").ask("and this")
        assert rollout.answer("ok").read().prompts == ["begin", "and this", "and this"]

    def test_the_same_prompt_an_hour_later_is_another(self):
        rollout = Rollout().ask("continue").wait(3600).event("user_message", message="continue")
        assert rollout.read().prompts == ["continue", "continue"]

    def test_a_turn_that_has_ended_has_no_mirror_behind_it(self):
        rollout = Rollout().turn().event("user_message", message="go").event("turn_aborted")
        assert rollout.turn().message("user", "go").answer("ok").read().prompts == ["go", "go"]

    def test_an_answer_parts_two_equal_prompts_of_different_carriers(self):
        rollout = Rollout().turn().event("user_message", message="go").message("assistant", "ok")
        assert rollout.message("user", "go").read().prompts == ["go", "go"]

    def test_an_answer_that_begins_like_another_is_not_its_mirror(self):
        rollout = Rollout().turn().ask("go").event("agent_message", message="Done.")
        rollout.message("assistant", "Done. All of it.")
        assert rollout.read().texts == ["Done.", "Done. All of it."]

    def test_a_prompt_that_begins_like_another_is_not_its_mirror(self):
        rollout = Rollout().turn().event("user_message", message="fix").message("user", "fix it")
        assert rollout.read().prompts == ["fix", "fix it"]

    @pytest.mark.parametrize("item_first", [True, False])
    def test_a_prompt_with_a_picture_counts_once(self, item_first):
        rollout = Rollout().turn()
        blocks = [
            {"type": "input_text", "text": "<image name=[Image #1] path=/a.png>"},
            {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo"},
            {"type": "input_text", "text": "</image>"},
            {"type": "input_text", "text": "[Image #1] what is it?"},
        ]
        ways = [
            lambda: rollout.event(
                "user_message", message="[Image #1] what is it?", local_images=["/a.png"]
            ),
            lambda: rollout.item("message", role="user", content=blocks),
        ]
        for way in reversed(ways) if item_first else ways:
            way()
        found = rollout.answer("a cat").read()
        assert found.kinds == [("typed", "[Image #1] what is it?")]
        assert not any("iVBOR" in message.text for message in found.messages)

    def test_a_picture_alone_is_a_prompt(self):
        rollout = Rollout().turn().event("user_message", message="", images=["data:x"])
        rollout.item("message", role="user", content=[{"type": "input_image", "image_url": "d"}])
        assert rollout.answer("a cat").read().kinds == [("image", "[image]")]

    @pytest.mark.parametrize("joined", ["a\nb", "ab", "a b"])
    @pytest.mark.parametrize("item_first", [True, False])
    def test_blocks_are_the_mirror_of_their_joined_text(self, joined, item_first):
        rollout = Rollout().turn()
        if item_first:
            rollout.message("user", "a", "b").event("user_message", message=joined)
        else:
            rollout.event("user_message", message=joined).message("user", "a", "b")
        assert len(rollout.answer("ok").read().prompts) == 1

    @pytest.mark.parametrize("item_first", [True, False])
    def test_an_unknown_envelope_in_front_does_not_make_two(self, item_first):
        rollout = Rollout().turn()
        whole = "<new_envelope>x</new_envelope>\n\nfix it"
        if item_first:
            rollout.message("user", whole).event("user_message", message="fix it")
        else:
            rollout.event("user_message", message="fix it").message("user", whole)
        assert len(rollout.answer("ok").read().prompts) == 1


class TestInjected:
    """What Codex says in the user's name."""

    def test_everything_in_one_message_leaves_the_human_s_words(self):
        text = f"{AGENTS}\n\n{ENVIRONMENT}\n{SKILL}\n\nfix it"
        rollout = Rollout().turn().message("user", text).event("user_message", message="fix it")
        assert rollout.answer("ok").read().prompts == ["fix it"]

    def test_blocks_of_one_message_are_judged_one_by_one(self):
        rollout = Rollout(mode="items").turn().message("user", AGENTS, ENVIRONMENT, "fix it")
        assert rollout.read().prompts == ["fix it"]

    def test_marks_beat_the_look_of_a_text(self):
        rollout = Rollout(mode="items").turn()
        body = marked(
            ("agents_md.instructions", "looks human"), ("user.text", SKILL), ("user.image", "")
        )
        rollout.line("response_item", body)
        assert rollout.read().prompts == [SKILL]

    def test_a_message_of_nothing_but_marked_context_is_no_prompt(self):
        rollout = Rollout().turn().line("response_item", marked(("hooks.additional_context", "x")))
        assert rollout.read().prompts == []

    def test_marks_that_do_not_fit_the_blocks_are_no_marks(self):
        body = marked(("user.text", "fix it"))
        passed = {"content_item_kinds": ["a", "b", "c"]}
        body["internal_chat_message_metadata_passthrough"] = passed
        assert Rollout(mode="items").line("response_item", body).read().prompts == ["fix it"]

    @pytest.mark.parametrize("role", ["developer", "system", "tool", None, 7])
    def test_other_roles_are_never_human(self, role):
        assert Rollout().turn().message(role, "do this").read().prompts == []

    @pytest.mark.parametrize("kind", ["user_instructions", "environment_context"])
    def test_events_may_say_that_they_are_injected(self, kind):
        rollout = Rollout().turn().event("user_message", message="be brief", kind=kind)
        assert rollout.read().prompts == []

    def test_a_reply_to_a_question_is_the_human_s(self):
        inside = json.dumps([{"questionItemId": "q", "question": "Which?", "answer": "Both"}])
        text = f"<send_user_message_question_reply>\n{inside}\n</send_user_message_question_reply>"
        rollout = Rollout().turn().ask("go").answer("Which?").ask(text).answer("ok")
        assert rollout.read().prompts == ["go", "Both"]

    def test_the_first_prompt_said_again_behind_an_abort_is_not_said_again(self):
        rollout = Rollout().turn().ask("build it").answer("I begin").event("turn_aborted")
        rollout.turn().message("user", ABORTED).message("user", "build it").answer("I go on")
        found = rollout.read()
        assert found.prompts == ["build it"]
        assert found.texts == ["I begin", "I go on"]

    def test_where_there_are_events_an_item_alone_tells_nothing_new_in_a_new_turn_either(self):
        rollout = Rollout().turn().ask("build it").event("turn_aborted").message("user", ABORTED)
        assert rollout.turn().message("user", "build it").answer("ok").read().prompts == [
            "build it"
        ]

    def test_a_human_who_types_it_again_behind_an_abort_does(self):
        rollout = Rollout().turn().ask("build it").event("turn_aborted")
        rollout.message("user", ABORTED).turn().ask("build it").answer("ok")
        assert rollout.read().prompts == ["build it", "build it"]

    @pytest.mark.parametrize("named", [True, False])
    def test_where_there_are_no_events_a_new_turn_s_id_tells(self, named):
        """R1: without ids it cannot be told."""
        name = "" if named else None
        rollout = Rollout(mode="items").turn(name).ask("go").answer("I begin")
        rollout.event("turn_aborted").message("user", ABORTED).turn(name).ask("go").answer("ok")
        assert rollout.read().prompts == (["go", "go"] if named else ["go"])

    def test_other_words_behind_an_abort_are_a_prompt(self):
        rollout = Rollout().turn().ask("build it").event("turn_aborted").message("user", ABORTED)
        assert rollout.turn().ask("not so").answer("ok").read().prompts == ["build it", "not so"]

    def test_turns_that_were_rolled_back_stay(self):
        rollout = Rollout().turn().ask("a").answer("A").event("thread_rolled_back", num_turns=1)
        found = rollout.turn().ask("b").answer("B").read()
        assert (found.prompts, found.texts) == (["a", "b"], ["A", "B"])

    def test_exec_is_marked(self):
        assert Rollout(source="exec").ask("go").read().kinds == [("exec", "go")]
        assert Rollout(originator="codex_exec").ask("go").read().kinds == [("exec", "go")]


class TestAgents:
    """Threads in which no human speaks."""

    @pytest.mark.parametrize(
        "meta",
        [
            {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}},
            {"source": {"subagent": "review"}},
            {"source": {"subagent": {"other": "guardian"}}},
            {"thread_source": "subagent"},
            {"thread_source": "guardian_review"},
        ],
    )
    def test_nothing_of_them_is_kept(self, meta):
        rollout = Rollout(**meta).turn().ask("search").call("c1").result("c1", "r").answer("Found.")
        found = rollout.read()
        assert not found.of(*Role)
        assert "subagent" in found.rules
        assert found.of(Role.HUMAN) == []

    def test_the_rest_of_such_a_file_is_not_even_parsed(self):
        reader = Codex().fold(PurePath("/h/x.jsonl"), {}, {})
        rollout = Rollout(thread_source="subagent").turn()
        for number, record in enumerate(rollout.records):
            reader.step(record, number)
        assert reader.left_out_as == "subagent"

    def test_a_program_that_names_itself_is_no_agent(self):
        assert Rollout(source={"custom": "my-editor"}).ask("go").read().prompts == ["go"]


class TestLinesWithoutWords:
    """Megabytes that are passed over, and what must not be passed over with them."""

    @pytest.mark.parametrize(
        "line",
        [
            b'{"timestamp":"2026-01-01T00:00:00.000Z","type":"compacted","payload":{}}',
            b'{"timestamp":"t","ordinal":12,"type":"compacted","payload":{}}\r',
            b'{"ordinal": 12, "timestamp": "t", "type": "compacted", "payload": {}}',
            b'{"type":"compacted","payload":{"message":"{\\"timestamp\\":1}"}}',
        ],
    )
    def test_a_compaction_is_told_by_its_first_bytes(self, line):
        assert Codex().skims(line) == "compacted"

    @pytest.mark.parametrize(
        "line",
        [
            b'{"timestamp":"t","type":"compacted","payload":{"message":"torn',
            b'{"timestamp":"t","type":"compacted","pay{"timestamp":"t","type":"event_msg"}',
            b'{"timestamp":"t","type":"response_item","payload":{"type":"compacted"}}',
            b'{"timestamp":"t","type":"compacted_by_hand","payload":{}}',
            b"compacted",
        ],
    )
    def test_what_may_hold_a_record_is_parsed(self, line):
        assert Codex().skims(line) == ""

    def test_what_compactions_repeat_is_no_prompt(self):
        history = [{"type": "message", "role": "user", "content": "go"}]
        rollout = Rollout().turn().ask("go").answer("ok")
        rollout.line("compacted", {"message": "sum", "replacement_history": history})
        rollout.item("compaction", text="go").event("context_compacted")
        assert rollout.read().prompts == ["go"]

    def test_unknown_types_are_counted_as_unknown(self):
        rollout = Rollout().line("future_line", {}).event("future_event").item("future_item")
        rollout.completed("FutureItem")
        found = [rule for rule in rollout.read().rules if rule.startswith("unknown:")]
        assert found == [
            "unknown:future_line", "unknown:event future_event", "unknown:item future_item",
            "unknown:item FutureItem",
        ]  # fmt: skip
