"""Whose words stand in a user-role message of Codex?

Owns: the openings and envelopes that Codex writes in the user's name (docs/formats/codex.md).
Never: keeps state, looks at more than one message.
Called by: mempalace.transcripts.codex.
"""

from __future__ import annotations

import re
from typing import Any

# A message, or the beginning of one, in one of these envelopes was written by the harness.
_ENVELOPES = (
    "user_instructions", "environment_context", "skill", "user_shell_command", "turn_aborted",
    "subagent_notification", "additional_context", "extension_context", "goal_context",
    "codex_internal_context", "recommended_plugins", "hook_prompt",
)  # fmt: skip
_LEADING = re.compile(rf"\s*<({'|'.join(_ENVELOPES)})\b[^>]*>.*?</\1>[ \t]*\r?\n?\s*", re.DOTALL)
_AGENTS = re.compile(
    r"\s*# AGENTS\.md instructions\b[^\n]*\n+<INSTRUCTIONS>.*?</INSTRUCTIONS>\s*", re.DOTALL
)
_OPENINGS = (
    "# AGENTS.md instructions",
    "Warning: The maximum number of unified exec processes",
    "<user_instructions>",
    "<environment_context>",
)
_IDE = re.compile(
    r"\A\s*# Context from my IDE setup:.*?^## My request for Codex:[ \t]*\r?\n", re.S | re.M
)
_REPLY = re.compile(
    r"\s*<send_user_message_question_reply\b[^>]*>(.*)</send_user_message_question_reply>\s*", re.S
)
_IMAGE_TAG = re.compile(r"\s*(?:<image\b[^>]*>|</image>)\s*")
_CWD = re.compile(r"<cwd>(.*?)</cwd>|^Current working directory: (.+)$", re.MULTILINE)


def human_words(text: str) -> tuple[str, str]:
    """(words, rule): the human's own words, or the rule that leaves the text out."""
    if _IMAGE_TAG.fullmatch(text):
        return "", "image"
    reply = _REPLY.fullmatch(text)
    if reply:
        return reply.group(1), ""
    rest, rule = text, ""
    while True:
        envelope = _LEADING.match(rest) or _AGENTS.match(rest)
        if not envelope:
            break
        rule = "context-envelope"
        rest = rest[envelope.end() :]
    rest = _IDE.sub("", rest)
    if not rest.strip():
        return "", rule or "blank"
    if rest.lstrip().startswith(_OPENINGS):
        return "", "context-envelope"
    return rest, ""


def folder_in(text: str) -> str | None:
    """The working folder that an injected environment names: old sessions tell it only there."""
    found = _CWD.search(text)
    return (found.group(1) or found.group(2)).strip() if found else None


def answers_in(output: str, parse: Any) -> str:
    """A human's answers in the output of `request_user_input`, or ''."""
    try:
        value = parse(output)
    except ValueError:
        return ""
    given = value.get("answers") if isinstance(value, dict) else None
    if not isinstance(given, dict):
        return ""
    said = []
    for answer in given.values():
        words = answer.get("answers") if isinstance(answer, dict) else answer
        said += [str(word) for word in (words if isinstance(words, list) else [words]) if word]
    return ", ".join(said)
