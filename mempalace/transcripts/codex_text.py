"""Whose words stand in a user-role message of Codex?

Owns: the openings and envelopes that Codex writes in the user's name (docs/formats/codex.md).
Never: keeps state, looks at more than one message.
Called by: mempalace.transcripts.codex and its parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import orjson

# A message, or the beginning of one, in one of these envelopes was written by the harness.
_ENVELOPES = (
    "user_instructions", "environment_context", "skill", "user_shell_command", "turn_aborted",
    "subagent_notification", "additional_context", "extension_context", "goal_context",
    "codex_internal_context", "recommended_plugins", "hook_prompt", "user_action", "app-context",
)  # fmt: skip
_BLANK_LINES = r"[ \t]*(?:\r?\n(?:[ \t]*\r?\n)*)?"  # what a human indents stays so
_LEADING = re.compile(
    rf"\s*<({'|'.join(_ENVELOPES)})(?:\s[^>]*)?>.*?</\1>{_BLANK_LINES}", re.DOTALL
)
_AGENTS = re.compile(
    r"\s*# AGENTS\.md instructions\b[^\n]*\n\s*<INSTRUCTIONS>.*?</INSTRUCTIONS>" + _BLANK_LINES,
    re.DOTALL,
)
_OPEN_AGENTS = re.compile(r"\s*# AGENTS\.md instructions\b[^\n]*\n\s*<INSTRUCTIONS>")
_WARNINGS = (
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via",
)
_IDE = re.compile(
    r"\A\s*# (?:Context from my IDE setup|Files mentioned by the user):.*?"
    r"^## My request for Codex:" + _BLANK_LINES,
    re.DOTALL | re.MULTILINE,
)
_REPLY = re.compile(
    r"\s*<send_user_message_question_reply(?:\s[^>]*)?>\s*(.*?)\s*"
    r"</send_user_message_question_reply>\s*",
    re.DOTALL,
)
_IMAGE_TAG = re.compile(r"\s*(?:<image\b[^>]*>|</image>)\s*")
_ENVIRONMENT = re.compile(r"<environment_context>.*?(?:</environment_context>|\Z)", re.DOTALL)
_CWD = re.compile(r"<cwd>(.*?)</cwd>|^Current working directory: ([^\r\n]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Words:
    """The human's own words in a text; without any, the rule that leaves it out."""

    text: str
    rule: str = ""
    is_abort: bool = False  # it tells that a turn was aborted


def human_words(text: str, *, is_marked: bool = False) -> Words:
    """Whole envelopes in front of the words go; one that is not closed, or further in, is prose.

    What Codex has marked as a human's may look like an envelope and be none.
    """
    if _IMAGE_TAG.fullmatch(text):
        return Words("", "image")
    rest, rule, is_abort = text, "", False
    while envelope := None if is_marked else _LEADING.match(rest) or _AGENTS.match(rest):
        rule = "context-envelope"
        is_abort = is_abort or rest.lstrip().startswith("<turn_aborted")
        rest = rest[envelope.end() :]
    rest = _IDE.sub("", rest)
    reply = _REPLY.fullmatch(rest)
    if reply:
        return Words(_replies(reply.group(1)))
    if not rest.strip():
        return Words("", rule or "blank", is_abort)
    if not is_marked and (rest.lstrip().startswith(_WARNINGS) or _OPEN_AGENTS.match(rest)):
        return Words("", "context-envelope", is_abort)
    return Words(rest)


def _replies(inside: str) -> str:
    """The answers in a reply to the agent's questions; a form that is not known stays as it is."""
    try:
        value = orjson.loads(inside)
    except orjson.JSONDecodeError:
        return inside
    rows = value if isinstance(value, list) else [value]
    said = [row.get("answer") if isinstance(row, dict) else None for row in rows]
    words = [answer for answer in said if isinstance(answer, str) and answer]
    return "\n".join(words) if words else inside


def folder_in(text: str) -> str | None:
    """The working folder that an injected environment names: old sessions tell it only there."""
    environment = _ENVIRONMENT.search(text)
    found = _CWD.search(environment.group()) if environment else None
    return (found.group(1) or found.group(2) or "").strip()[:4096] or None if found else None


def answers_in(output: str) -> list[str]:
    """A human's answers in the output of `request_user_input`."""
    try:
        value = orjson.loads(output)
    except orjson.JSONDecodeError:
        return []
    given = value.get("answers") if isinstance(value, dict) else None
    said: list[str] = []
    for answer in given.values() if isinstance(given, dict) else []:
        said += _strings(answer.get("answers") if isinstance(answer, dict) else answer)
    return said


def answers_retained(body: dict[str, Any]) -> list[str]:
    """The same answers as `retained_context` tells them."""
    asked = body.get("questions")
    said: list[str] = []
    for one in asked if isinstance(asked, list) else []:
        if isinstance(one, dict):
            answer = one.get("answer", one.get("answers"))
            said += _strings(answer.get("answers") if isinstance(answer, dict) else answer)
    return said


def _strings(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, str) and one.strip()]
