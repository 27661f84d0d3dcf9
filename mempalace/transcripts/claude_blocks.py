"""The content of a Claude Code message, whatever shape a version gave it, as plain blocks.

Owns: strings, lists of strings, lists of typed blocks, wrong types; base64 is dropped here.
Never: decides whose words they are.
Called by: mempalace.transcripts.claude_code, claude_answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from mempalace.ids import digest
from mempalace.transcripts.base import label, what_runs


@dataclass(frozen=True, slots=True)
class Block:
    """`type` is text, thinking, call, tool_result, image, document, or what the record says."""

    type: str
    text: str
    id: str = ""  # of the call, for calls and results
    name: str = ""  # of the tool, for calls
    runs: str = ""  # what the call runs: the tool, or `mempalace` where it is a command of ours
    raw: str = ""  # for images and documents: MD5 of what was dropped


def text_at(record: dict[str, Any], name: str) -> str | None:
    """The value of that name where it is a string with something in it."""
    value = record.get(name)
    return value if isinstance(value, str) and value else None


def content_of(record: dict[str, Any]) -> list[Block] | None:
    """The blocks of a `user` or `assistant` line; None where its message has no content."""
    message = record.get("message")
    return blocks_of(message.get("content")) if isinstance(message, dict) else None


def blocks_of(content: object) -> list[Block] | None:
    """Content as blocks; None where it is no content at all."""
    if isinstance(content, str):
        return [Block("text", content)]
    if not isinstance(content, list):
        return None
    blocks = []
    for item in content:
        if isinstance(item, str):
            blocks.append(Block("text", item))
        elif isinstance(item, dict):
            blocks.append(_block(item))
    return blocks


def raw_digest(blocks: Iterable[Block]) -> str:
    """MD5 of content before anything is stripped; a string is the same as one text block."""
    return digest("\0".join(block.text + block.raw for block in blocks))


def _block(item: dict[str, Any]) -> Block:
    kind = text_at(item, "type") or "(no type)"
    if kind == "text":
        return Block("text", text_at(item, "text") or "")
    if kind in ("thinking", "redacted_thinking"):
        return Block("thinking", text_at(item, "thinking") or "")
    if kind == "tool_use" or kind.endswith("_tool_use"):
        name = label(text_at(item, "name") or "tool")
        given = _compact(item.get("input", {}))
        own_id, runs = text_at(item, "id") or "", what_runs(name, given)
        return Block("call", f"{name} {given}", id=own_id, name=name, runs=runs)
    if kind == "tool_result" or kind.endswith("_tool_result"):
        return Block("tool_result", _result(item), id=text_at(item, "tool_use_id") or "")
    if kind in ("image", "document"):
        return Block(kind, "", raw=digest(_compact(item.get("source"))))
    return Block(kind[:40], "")


def _result(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else _compact(content)
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict):
            text = part.get("text")
            parts.append(text if isinstance(text, str) else f"[{part.get('type', 'value')}]")
    return "\n".join(parts)


def _compact(value: object) -> str:
    """JSON on one line."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:  # deeper than 254, or a number of more than 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
