"""Tool calls of Codex, their results, and the human's answers among them."""

from __future__ import annotations

import json

import pytest

from mempalace.model import Role
from tests.transcripts.codex_builder import (
    Rollout,
    call_key,
)


class TestTools:
    """Calls of all kinds, each once, and their results."""

    @pytest.mark.parametrize(
        ("call", "text"),
        [
            ({"type": "function_call", "name": "f", "arguments": '{"a":1}'}, 'f {"a":1}'),
            ({"type": "function_call", "name": "f", "arguments": {"a": 1}}, 'f {"a":1}'),
            ({"type": "function_call", "name": "f"}, "f"),
            ({"type": "function_call", "name": "x", "namespace": "mcp__s__"}, "mcp__s__x"),
            ({"type": "function_call", "name": "x", "namespace": "mcp__s"}, "mcp__s__x"),
            ({"type": "custom_tool_call", "name": "apply_patch", "input": "*** B\n+a"},
             "apply_patch *** B\n+a"),
            ({"type": "local_shell_call", "action": {"command": ["ls"]}},
             'local_shell_call {"command":["ls"]}'),
            ({"type": "web_search_call", "action": {"query": "q"}},
             'web_search_call {"query":"q"}'),
            ({"type": "tool_search_call", "arguments": {"query": "q"}},
             'tool_search_call {"query":"q"}'),
            ({"type": "image_generation_call", "result": "iVBORw0KGgo"}, "image_generation_call"),
        ],
    )  # fmt: skip
    def test_a_call_is_a_line_of_name_and_input(self, call, text):
        found = Rollout().turn().ask("go").line("response_item", {"call_id": "c1", **call}).read()
        assert [m.text for m in found.of(Role.CALL)] == [text]

    @pytest.mark.parametrize(
        ("output", "text"),
        [
            ("plain", "plain"),
            ({"content": "inside", "success": True}, "inside"),
            ({"content": [{"type": "input_text", "text": "a"}]}, "a"),
            ({"type": "input_text", "text": "one"}, "one"),
            ([{"type": "output_text", "text": "a"}, {"type": "input_image", "image_url": "data:"}],
             "a\n[image]"),
            ([], ""),
            (None, ""),
            ({"exit": 0}, '{"exit":0}'),
            (7, "7"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("kind", ["function_call_output", "custom_tool_call_output"])
    def test_a_result_is_its_text_and_knows_its_call(self, kind, output, text):
        rollout = Rollout().turn().ask("go").call("c1", "f").call("c2", "g")
        found = rollout.item(kind, call_id="c1", output=output).read()
        result = found.of(Role.RESULT)[0]
        assert (result.text, result.call) == (text, call_key(found, "f"))

    def test_events_that_tell_of_the_same_calls_are_not_counted_again(self):
        rollout = Rollout().turn().ask("go").call("c1", "exec_command", cmd="ls").result("c1", "a")
        rollout.event("exec_command_end", call_id="c1", aggregated_output="a")
        rollout.event("mcp_tool_call_end", call_id="c1", result={"Ok": {}})
        rollout.event("patch_apply_end", call_id="c1").event("web_search_end", call_id="c1")
        rollout.event("view_image_tool_call", call_id="c1")
        rollout.event("image_generation_end", call_id="c1", result="iVBORw0KGgo")
        for kind in ("CommandExecution", "McpToolCall", "FileChange", "WebSearch", "Extension"):
            rollout.completed(kind, id="c1", aggregated_output="a")
        found = rollout.read()
        assert len(found.of(Role.CALL)) == len(found.of(Role.RESULT)) == 1
        assert not any(rule.startswith("unknown") for rule in found.rules)

    def test_our_own_tools_are_told_by_their_namespace(self):
        rollout = Rollout().turn().call("c1", "search", q="x")
        rollout.records[-1]["payload"]["namespace"] = "mcp__mempalace"
        found = rollout.result("c1", "old words").read()
        assert found.of(Role.RESULT)[0].call_name == "mcp__mempalace__search"

    def test_two_equal_calls_of_one_turn_are_two(self):
        rollout = Rollout().turn().call("c1").result("c1", "r").call("c1").result("c1", "r")
        found = rollout.read()
        assert len(found.of(Role.CALL)) == len(found.of(Role.RESULT)) == 2

    def test_ids_that_every_session_has_name_nothing(self):
        one, other = (
            Rollout(n).turn(None).ask("go", id="msg-1").call("call_0").result("call_0", "r")
            for n in (1, 2)
        )
        mine, theirs = ({k for m in r.read().messages for k in m.keys} for r in (one, other))
        assert not mine & theirs

    def test_thinking_is_off_and_encrypted_content_is_nowhere(self):
        rollout = Rollout().turn().ask("go")
        rollout.item("reasoning", summary=[{"type": "summary_text", "text": "I look."}],
                     encrypted_content="gAAAAsecret", content=None)  # fmt: skip
        rollout.item("agent_message", content=[
            {"type": "encrypted_content", "encrypted_content": "gAAAAsecret"}])  # fmt: skip
        rollout.item("compaction", encrypted_content="gAAAAsecret")
        found = rollout.read()
        assert [m.text for m in found.messages if m.rule == "thinking"] == ["I look."]
        assert not any("secret" in message.text for message in found.messages)
        assert not found.of(Role.THINKING)


class TestAnswersToQuestions:
    """`request_user_input`: the human's answers stand in the output and in retained context."""

    def _rollout(self, *order: str, answers: list[str]) -> Rollout:
        rollout = Rollout(mode="items").turn().ask("go").call("c1", "request_user_input")
        output = json.dumps({"answers": {"q1": {"answers": answers}}})
        for kind in order:
            if kind == "retained":
                asked = [{"question": "?", "answer": answer} for answer in answers]
                rollout.line("retained_context", {
                    "type": "verified_answer", "call_id": "c1", "questions": asked})  # fmt: skip
            else:
                rollout.result("c1", output)
        return rollout.answer("ok")

    @pytest.mark.parametrize(
        "order", [["retained", "output"], ["output", "retained"], ["output"], ["retained"]]
    )
    def test_they_are_said_once(self, order):
        found = self._rollout(*order, answers=["Green", "Yes", "Yes"]).read()
        assert found.said == ["Green", "Yes", "Yes"]
        assert {m.call for m in found.of(Role.SAID)} == {call_key(found, "request_user_input")}

    def test_other_tools_may_return_the_same_form(self):
        output = '{"answers":{"q":{"answers":["Green"]}}}'
        assert Rollout().turn().call("c1", "quiz").result("c1", output).read().said == []

    def test_other_retained_context_is_counted(self):
        found = Rollout().line("retained_context", {"type": "note"}).read()
        assert "retained_context" in found.rules
