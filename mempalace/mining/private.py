"""What must not be kept, taken out before anything else sees the text (R10, R11).

Owns: `<private>` blocks, MemPalace's own injected context, and which tools are its own.
Never: logs or counts the words.
Called by: filing, for every message and every text that must wait.
"""

from __future__ import annotations

import re

_ECHO = re.compile(r"\s*<mempalace-context\b[^>]*>.*?(?:</mempalace-context>\s?|\Z)", re.DOTALL)
OWN_TOOL = "mempalace"


def is_private(text: str) -> bool:
    """Does any of it have to stay out?"""
    return "<private>" in text or "<private>" in text.lower()


def strip_private(text: str) -> str:
    """The text without `<private>…</private>`; one that is not closed reaches to the end."""
    if not is_private(text):
        return text
    # Nested blocks: what is left behind an inner end still stands before an outer one.
    depth, kept, last = 0, [], 0
    for mark in re.finditer(r"</?private>", text, re.IGNORECASE):
        if mark.group().startswith("</"):
            if depth:
                depth -= 1
                last = mark.end()
            continue
        if depth == 0:
            kept.append(text[last : mark.start()])
        depth += 1
    if depth == 0:
        kept.append(text[last:])
    return "".join(kept)


def is_left_open(text: str) -> bool:
    """Does a private block reach beyond this text, to the end of the message it is a part of?"""
    depth = 0
    for mark in re.finditer(r"</?private>", text, re.IGNORECASE) if is_private(text) else ():
        depth = max(0, depth - 1) if mark.group().startswith("</") else depth + 1
    return depth > 0


def strip_echo(text: str) -> str:
    """The text without our own context where that opens the block."""
    while "<mempalace-context" in text:
        rest = _ECHO.match(text)
        if not rest:
            break
        text = text[rest.end() :]
    return text


def is_own_tool(name: str) -> bool:
    """Is this a tool of MemPalace itself, by its own name or over MCP?"""
    return name.startswith(("mempalace", "mcp__mempalace__", "mcp__plugin_mempalace"))
