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
_BLANKS = re.compile(_BLANK_LINES)
_AGENTS = "INSTRUCTIONS"
_OPENING = re.compile(
    rf"\s*(?:<(?P<tag>{'|'.join(_ENVELOPES)})(?:\s[^>]*)?>"
    rf"|# AGENTS\.md instructions\b[^\n]*\n\s*<(?P<agents>{_AGENTS})>)"
)
_ABORT = re.compile(r"\s*<turn_aborted")
_ENDS = re.compile(rf"\s*\Z|{_OPENING.pattern}")  # nothing of a human's follows at once
_LINE_END = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_WARNING = re.compile(
    r"""\s*Warning:\ (?:
        The\ maximum\ number\ of\ unified\ exec\ processes\ you\ can\ keep\ open\ is\ \d+
        (?:\ and\ you\ currently\ have\ \d+\ processes\ open)?\.?
        (?:\ Reuse\ older\ processes\ or\ close\ them\ to\ prevent\ automatic\ pruning
        \ of\ old\ processes\.?)?
        |apply_patch\ was\ requested\ via\ \w+\.
        \ Use\ the\ apply_patch\ tool\ instead\ of\ \w+\.?
    )\s*""",
    re.VERBOSE,
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
    whole: str = ""  # the text, with whatever was taken off it


def human_words(text: str, *, is_marked: bool = False, is_told: bool = False) -> Words:
    """Whole envelopes in front of the words go; one that is not closed, or further in, is prose.

    What Codex has marked as a human's may look like an envelope and be none. Of what an event or a
    completed item has told (`is_told`) all is the human's, unless nothing but envelopes is there.
    """
    if _IMAGE_TAG.fullmatch(text) and not is_told:
        return Words("", "image")
    begin, rule, is_abort = 0, "", False
    while end := 0 if is_marked else _envelope(text, begin):
        rule = "context-envelope"
        is_abort = is_abort or _ABORT.match(text, begin) is not None
        begin = end
    rest = text[begin:]
    opening = _OPENING.match(rest)
    is_open = opening is not None and opening["agents"] is not None and not is_told
    if not is_marked and (_WARNING.fullmatch(rest) or is_open):
        return Words("", "context-envelope", is_abort)
    rest = _IDE.sub("", text if is_told and rest.strip() else rest)
    reply = _REPLY.fullmatch(rest)
    if reply:
        return Words(_replies(reply.group(1)), whole=text)
    if not rest.strip():
        return Words("", rule or "blank", is_abort)
    return Words(rest, whole=text)


def _envelope(text: str, begin: int) -> int:
    """Where the envelope ends that stands at `begin`, the empty lines behind it included; 0 where
    there is none, or it is not closed.

    What is inside may name the closing tag too: the last one ends the envelope where it has a line
    of its own and nothing, or another envelope, follows. A tag that is opened again inside is two
    envelopes with words between them, but for AGENTS.md instructions: nobody types their opening.
    """
    opening = _OPENING.match(text, begin)
    if opening is None:
        return 0
    is_agents = opening["agents"] is not None
    tag = _AGENTS if is_agents else opening["tag"]
    closing = f"</{tag}>"
    first, last = text.find(closing, opening.end()), text.rfind(closing)
    if first < 0:
        return 0
    is_one = is_agents or text.find(f"<{tag}", first, last) < 0
    if not (is_one and _is_alone(text, last, closing) and _ENDS.match(text, last + len(closing))):
        last = first
        while is_agents and last >= 0 and not _is_alone(text, last, closing):
            last = text.find(closing, last + 1)
        last = first if last < 0 else last
    blanks = _BLANKS.match(text, last + len(closing))
    return blanks.end() if blanks else len(text)


def _is_alone(text: str, begin: int, closing: str) -> bool:
    """Has the closing tag a line of its own?"""
    before = text[text.rfind("\n", 0, begin) + 1 : begin]
    return not before.strip() and _LINE_END.match(text, begin + len(closing)) is not None


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
