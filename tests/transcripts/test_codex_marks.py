"""What Codex marks as a human's, and what an event tells, is verbatim and counts once (R2)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.transcripts.codex_builder import ENVIRONMENT, SKILL, Rollout, marked

_TEXTS = [
    "<skill>foo</skill> why does my parser choke on this?",
    "<skill>foo</skill>\nWhy does my SKILL.md parser choke on this?",
    f"{SKILL}\n\n{ENVIRONMENT}\n\nwhat are these?",
    "<turn_aborted>\nx\n</turn_aborted>\nwhat is this?",
    "Warning: The maximum number of unified exec processes you can keep open is 4.\n\nWhy?",
    "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>\n\nToo long?",
]


def _carriers(mode: str, text: str, item: Callable[[Rollout], Rollout]) -> list[Callable]:
    content = [{"type": "text", "text": text, "text_elements": []}]

    def told(rollout: Rollout) -> Rollout:
        if mode == "legacy":
            return rollout.event("user_message", message=text, images=[])
        return rollout.completed("UserMessage", content=content)

    return [told, item]


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize("item_first", [True, False])
@pytest.mark.parametrize("mode", ["legacy", "paginated"])
def test_marked_words_and_their_event_are_one_prompt(mode, item_first, text):
    body = marked(("user.text", text))
    ways = _carriers(mode, text, lambda rollout: rollout.line("response_item", body))
    rollout = Rollout(mode=mode).turn()
    for way in reversed(ways) if item_first else ways:
        way(rollout)
    found = rollout.answer("ok").turn().ask("next").read()
    assert found.prompts == [text, "next"]


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize("mode", ["legacy", "paginated"])
def test_without_marks_the_event_s_words_count_once(mode, text):
    ways = _carriers(mode, text, lambda rollout: rollout.message("user", text))
    rollout = Rollout(mode=mode).turn()
    for way in ways:
        way(rollout)
    assert rollout.answer("ok").read().prompts == [text]


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize("mode", ["legacy", "paginated"])
def test_without_marks_an_item_in_front_of_its_event_is_the_same_prompt(mode, text):
    """The item alone cannot tell an envelope that Codex wrote from one that a human typed."""
    ways = _carriers(mode, text, lambda rollout: rollout.message("user", text))
    rollout = Rollout(mode=mode).turn()
    for way in reversed(ways):
        way(rollout)
    (found,) = rollout.answer("ok").read().prompts
    assert text.endswith(found)


@pytest.mark.parametrize("item_first", [True, False])
def test_a_marked_envelope_alone_is_a_prompt(item_first):
    ways = _carriers("legacy", SKILL, lambda rollout: rollout.line("response_item", body))
    body = marked(("user.text", SKILL))
    rollout = Rollout().turn()
    for way in reversed(ways) if item_first else ways:
        way(rollout)
    assert rollout.answer("ok").read().prompts == [SKILL]
