"""Codex: wrong types everywhere, a state that stays small, and names of files."""

from __future__ import annotations

import json
from pathlib import PurePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempalace.model import Role
from mempalace.transcripts.codex import Codex
from tests.transcripts.codex_builder import (
    Rollout,
    read,
)


def _bare_message(role: str, text: str) -> dict:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner,
                                                                 max_size=3),
    max_leaves=6,
)  # fmt: skip
_FIELDS = st.sampled_from(
    [
        "id", "type", "role", "content", "message", "payload", "item", "turn_id", "call_id",
        "name", "namespace", "arguments", "output", "summary", "source", "thread_source",
        "timestamp", "cwd", "questions", "answers", "images", "kind", "record_type", "text",
        "action", "internal_chat_message_metadata_passthrough", "content_item_kinds", "result",
        "tools", "originator", "function",
    ]
)  # fmt: skip
_KINDS = st.sampled_from(
    [
        "session_meta", "turn_context", "response_item", "event_msg", "compacted",
        "retained_context", "message", "user_message", "agent_message", "item_completed",
        "UserMessage", "AgentMessage", "function_call", "function_call_output",
        "web_search_call", "reasoning", "tool_result", "task_started", "turn_aborted",
        "verified_answer", "user", "assistant",
    ]
)  # fmt: skip
_RECORD = st.recursive(
    st.dictionaries(_FIELDS, _KINDS | _JSON, max_size=6),
    lambda inner: st.dictionaries(_FIELDS, inner | _KINDS | _JSON | st.lists(inner, max_size=2),
                                  max_size=6),
    max_leaves=8,
)  # fmt: skip


class TestWrongTypes:
    """Any value may stand anywhere (R6)."""

    @settings(max_examples=400, deadline=None)
    @given(st.lists(_RECORD, max_size=6))
    def test_no_record_raises(self, records):
        for record in records:
            Codex().recognises(record)
        read(records)

    def test_what_json_cannot_say_again_does_not_raise(self):
        deep: dict = {}
        for _ in range(600):
            deep = {"a": deep}
        rollout = Rollout().turn().ask("go")
        rollout.item("function_call", name="f", call_id="c1", arguments={"n": 2**80})
        rollout.item("function_call", name="g", call_id="c2", arguments=deep)
        assert len(rollout.read().of(Role.CALL)) == 2


class TestState:
    """R5: small, and without a text."""

    def test_the_state_stays_small_and_holds_no_words(self):
        rollout = Rollout().turn()
        words = "Wombat " * 40
        for n in range(400):
            rollout.event("user_message", message=f"{words}{n}\n{words}\n\n{words}{n}\nx\ny")
            rollout.event("agent_message", message=words + str(n))
            rollout.call(f"call_{n}_" + "i" * 300, f"tool_{n}_" + "n" * 200, cmd=words)
        rollout.turn("t" * 5000)
        reader = Codex().fold(PurePath("/h/" + rollout.name), {}, {})
        for number, record in enumerate(rollout.records):
            reader.step(record, number)
            state = json.dumps(reader.state())
            assert len(state) <= 64 * 1024
        assert "Wombat" not in state

    def test_many_headers_do_not_make_it_grow(self):
        rollout = Rollout()
        for n in range(2000):
            rollout.line("session_meta", {"id": f"other-{n}" * 20, "cwd": "/" + "x" * 9000})
        reader = Codex().fold(PurePath("/h/" + rollout.name), {}, {})
        for number, record in enumerate(rollout.records):
            reader.step(record, number)
        assert len(json.dumps(reader.state())) <= 64 * 1024


class TestNames:
    """The session of a rollout is that of its first header, else of its name."""

    @pytest.mark.parametrize("end", [".jsonl", ".jsonl.zst", "_2.jsonl", "_r1.jsonl.zst", ".json"])
    def test_the_uuid_in_the_name_is_the_session(self, end):
        uuid = "01900000-0000-7000-8000-000000000001"
        found = read([_bare_message("user", "go")], f"/h/rollout-2026-05-01T10-00-00-{uuid}{end}")
        assert found.of(Role.HUMAN)[0].session == uuid

    def test_a_name_without_one_is_the_same_compressed(self):
        names = [
            read([_bare_message("user", "go")], f"/h/rollout-x{end}").of(Role.HUMAN)[0]
            for end in (".jsonl", ".jsonl.zst")
        ]
        assert names[0].session == names[1].session
        assert names[0].keys == names[1].keys

    def test_the_header_beats_the_name_and_later_ones_change_nothing(self):
        rollout = Rollout(id="named")
        rollout.turn().ask("go").line("session_meta", {"id": "named", "cwd": "/else"})
        found = rollout.turn().ask("on").read()
        assert {m.session for m in found.of(Role.HUMAN)} == {"named"}
        assert found.prompts == ["go", "on"]
