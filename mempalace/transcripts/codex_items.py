"""The values of Codex's records, whatever shape a version gave them.

Owns: texts, calls and outputs out of items and events; base64 and encrypted content stay behind.
Never: decides whose words they are.
Called by: mempalace.transcripts.codex.
"""

from __future__ import annotations

from typing import Any

import orjson

from mempalace.ids import digest


def text_at(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) and value else None


def texts_in(content: object) -> tuple[list[str], bool]:
    """The texts of a message's content, and whether images stand beside them."""
    if isinstance(content, str):
        return [content], False
    texts, has_images = [], False
    for block in content if isinstance(content, list) else []:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict):
            kind = str(block.get("type", ""))
            text = block.get("text", block.get("code"))
            if isinstance(text, str):
                texts.append(text)
            elif "image" in kind:
                has_images = True
    return texts, has_images


def has_images(body: dict[str, Any]) -> bool:
    return bool(body.get("images")) or bool(body.get("local_images"))


def kinds_of(body: dict[str, Any]) -> list[str]:
    """What Codex itself says that each block of a message is, in newer versions."""
    passed = body.get("internal_chat_message_metadata_passthrough")
    kinds = passed.get("content_item_kinds") if isinstance(passed, dict) else None
    return [str(kind) for kind in kinds] if isinstance(kinds, list) else []


def ids_of(body: dict[str, Any]) -> list[str]:
    return [name for name in (text_at(body, "id"), text_at(body, "client_id")) if name]


def call_in(body: dict[str, Any], kind: str) -> tuple[str, str]:
    """A tool's name and what it was given, on one line where it is JSON."""
    function = body.get("function")
    named = function.get("name") if isinstance(function, dict) else None
    name = text_at(body, "name") or (named if isinstance(named, str) else None) or kind
    for field in ("arguments", "input", "action", "query"):
        given = body.get(field)
        if isinstance(given, str):
            return name, given
        if given is not None:
            return name, orjson.dumps(given, default=str).decode()
    return name, ""


def output_in(body: dict[str, Any]) -> str:
    value = body.get("output", body.get("result"))
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        return str(value["content"])
    if isinstance(value, list):
        texts, has_images = texts_in(value)
        return "\n".join([*texts, "[image]"] if has_images else texts)
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value, default=str).decode()


def holds(text: str, mark: str, length: int) -> bool:
    """Are these the words with that digest, or do they begin or end with them?"""
    if length > len(text):
        return False
    return digest(text[-length:] if length else "") == mark or digest(text[:length]) == mark


def time_of_uuid7(value: str) -> int | None:
    """The microseconds since 1970 inside a version 7 UUID."""
    plain = value.replace("-", "")
    if len(plain) != 32 or plain[12] != "7":
        return None
    try:
        return int(plain[:12], 16) * 1000
    except ValueError:
        return None
