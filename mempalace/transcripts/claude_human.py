"""Whose words does a Claude Code line hold? First its flags, then its texts.

Owns: the order of these tests (docs/formats/claude-code.md, "Whose words"): a flag beats a text.
Never: keeps state, makes keys.
Called by: mempalace.transcripts.claude_code.
"""

from __future__ import annotations

from typing import Any

from mempalace.transcripts.base import label
from mempalace.transcripts.claude_blocks import Block
from mempalace.transcripts.claude_text import Words, human_words, words_in_result

_ASKS_THE_HUMAN = {"AskUserQuestion", "ExitPlanMode"}


def is_summary(record: dict[str, Any]) -> bool:
    """A compaction's summary of the whole past: it may stand in anybody's name."""
    return record.get("isCompactSummary") is True or record.get("isVisibleInTranscriptOnly") is True


def injected_by(record: dict[str, Any]) -> str:
    """The rule that leaves a line out because its flags say that no human wrote it, or ''."""
    if record.get("isMeta") is True:
        return "meta"
    kind = _origin(record)
    if kind and kind != "human":
        return f"origin:{label(kind)}"
    return "origin:system" if record.get("promptSource") == "system" else ""


def words_of_line(record: dict[str, Any], blocks: list[Block]) -> Words:
    """The human words of a `user` line, or the rule that leaves it out; neither where it holds
    tool results alone."""
    others = [block for block in blocks if block.type != "tool_result"]
    if not others:
        return Words()
    if is_summary(record):
        return Words(rule="compact-summary")
    rule = injected_by(record)
    if rule:
        return Words(rule=rule)
    if record.get("toolUseResult") is not None and len(others) == len(blocks):
        return Words(rule="tool-output")
    words = words_of_blocks(others, by_human=_origin(record) == "human")
    if words.kind == "typed" and record.get("planContent"):
        return Words(words.text, "plan")
    return words


def words_of_blocks(blocks: list[Block], *, by_human: bool = False) -> Words:
    """The human words of a prompt's content: each text is judged on its own."""
    read = [human_words(b.text, by_human=by_human) for b in blocks if b.type == "text"]
    said = [words for words in read if words.text]
    if said:
        kind = said[0].kind if len(said) == 1 else "typed"
        return Words("\n".join(words.text for words in said), kind)
    if any(block.type in ("image", "document") for block in blocks):
        return Words("[image]", "image")
    return next(iter(read), Words(rule="blank"))


def words_of_attachment(record: dict[str, Any], body: dict[str, Any], blocks: list[Block]) -> Words:
    """The human words of a `queued_command`, or the rule that leaves it out."""
    rule = injected_by(body) or injected_by(record)
    if not rule and body.get("commandMode") == "task-notification":
        rule = "task-notification"
    if rule:
        return Words(rule=rule)
    words = words_of_blocks(blocks, by_human="human" in (_origin(body), _origin(record)))
    if body.get("commandMode") == "bash" and words.kind == "typed":
        return Words("!" + words.text, "bash")
    return words


def words_said(record: dict[str, Any], text: str, tool: str) -> str:
    """Human words inside a result: from its text, else from the answers beside it."""
    result = record.get("toolUseResult")
    answers = result.get("answers") if isinstance(result, dict) else None
    asked = tool in _ASKS_THE_HUMAN or isinstance(answers, dict)
    said = words_in_result(text, question=asked)
    if said or not isinstance(answers, dict):
        return said
    return ", ".join(f'"{question}"="{answer}"' for question, answer in answers.items())


def _origin(record: dict[str, Any]) -> str:
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return kind if isinstance(kind, str) else ""
