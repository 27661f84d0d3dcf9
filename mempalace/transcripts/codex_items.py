"""The values of Codex's records, whatever shape a version gave them.

Owns: texts, ids, calls and outputs out of items and events; base64 and encrypted content stay
behind.
Never: decides whose words they are.
Called by: mempalace.transcripts.codex and its parts, watcher.lineage.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from mempalace.ids import digest

_LONGEST_ID = 64  # characters; a longer one is known by its digest: state is small (R5)
_LONGEST_FOLDER = 4096  # characters, as file systems have it
_LEAST_OF_AN_OWN_ID = 20  # characters; "cli" or "msg-1" name a record in no other file
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def text_at(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) and value else None


def dict_at(body: dict[str, Any], name: str) -> dict[str, Any]:
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def id_at(body: dict[str, Any], name: str) -> str:
    """An id, '' where there is none."""
    value = text_at(body, name) or ""
    return value if len(value) <= _LONGEST_ID else digest(value)


def folder_at(body: dict[str, Any], name: str) -> str | None:
    value = text_at(body, name)
    return value if value and len(value) <= _LONGEST_FOLDER else None


def is_uuid(value: str) -> bool:
    return _UUID.fullmatch(value) is not None


def texts_in(content: object) -> tuple[list[str], bool]:
    """The texts of a message's content, and whether images stand beside them."""
    if isinstance(content, str):
        return [content], False
    texts, has_images = [], False
    for block in content if isinstance(content, list) else []:
        text, is_image = _of_block(block)
        has_images = has_images or is_image
        if text is not None:
            texts.append(text)
    return texts, has_images


def _of_block(block: object) -> tuple[str | None, bool]:
    """A block's text, and whether it is an image."""
    if isinstance(block, str):
        return block, False
    if not isinstance(block, dict):
        return None, False
    for name in ("text", "code"):
        text = block.get(name)
        if isinstance(text, str):
            return text, False
    return None, "image" in str(block.get("type", ""))


def has_images(body: dict[str, Any]) -> bool:
    return bool(body.get("images")) or bool(body.get("local_images"))


def marked_texts(body: dict[str, Any]) -> tuple[list[str], list[str]] | None:
    """A message's texts that Codex itself marks as a human's, and the others; None without marks.

    `content_item_kinds` has one mark a block, pictures included.
    """
    kinds = dict_at(body, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    blocks = body.get("content")
    if not isinstance(kinds, list) or not kinds or not isinstance(blocks, list):
        return None
    found = [text for block in blocks if (text := _of_block(block)[0]) is not None]
    if len(kinds) == len(blocks):
        pairs = [(_of_block(block)[0], kind) for block, kind in zip(blocks, kinds, strict=True)]
    elif len(kinds) == len(found):
        pairs = list(zip(found, kinds, strict=True))
    else:
        return None
    human = [text for text, kind in pairs if text is not None and kind == "user.text"]
    return human, [text for text, kind in pairs if text is not None and kind != "user.text"]


def ids_of(body: dict[str, Any]) -> list[str]:
    """The ids that a prompt has in no other place but its copies."""
    names = (id_at(body, "id"), id_at(body, "client_id"))
    return [name for name in names if len(name) >= _LEAST_OF_AN_OWN_ID]


def prompt_in(record: dict[str, Any]) -> tuple[str, str] | None:
    """(carrier, MD5 of the text) of a record in the user's name, whoever wrote it.

    A copy and its original agree in these, line by line, though their times differ.
    """
    body = dict_at(record, "payload") or record
    kind = body.get("type")
    if kind == "user_message":
        return "event", digest(text_at(body, "message") or "")
    if kind == "item_completed":
        item = dict_at(body, "item")
        if item.get("type") != "UserMessage":
            return None
        return "completed", digest("\0".join(texts_in(item.get("content"))[0]))
    if body.get("role") == "user" and kind in ("message", None):
        return "item", digest("\0".join(texts_in(body.get("content"))[0]))
    return None


def turn_in(record: dict[str, Any]) -> str:
    """The id of the turn that a record begins, or goes on with; '' where it does neither."""
    body, kind = dict_at(record, "payload"), record.get("type")
    begins = kind == "event_msg" and (text_at(body, "type") or "").endswith("_started")
    return id_at(body, "turn_id") if begins or kind == "turn_context" else ""


def header_in(record: dict[str, Any]) -> dict[str, Any] | None:
    """The body of a header: of a `session_meta`, or a bare first line from before 0.40."""
    kind = record.get("type")
    if kind == "session_meta":
        return dict_at(record, "payload")
    if isinstance(kind, str) or record.get("record_type") is not None or is_bare_message(record):
        return None
    return record if isinstance(record.get("id"), str) and "timestamp" in record else None


def is_bare_message(record: dict[str, Any]) -> bool:
    """A message without a type and an envelope."""
    return {"role", "content"} <= record.keys() and "created_at" not in record


def is_among_agents(header: dict[str, Any]) -> bool:
    """Is it the thread of a sub-agent, a reviewer, a guardian? No human speaks there."""
    source, thread = header.get("source"), header.get("thread_source")
    is_other = isinstance(source, dict) and "custom" not in source
    return is_other or thread in ("subagent", "guardian_review")


def call_in(body: dict[str, Any], kind: str) -> tuple[str, str]:
    """A tool's name and what it was given, on one line where it is JSON."""
    name = text_at(body, "name") or text_at(dict_at(body, "function"), "name") or kind
    space = text_at(body, "namespace")
    if space and not name.startswith(space):
        name = space + name if space.endswith("__") else f"{space}__{name}"
    for field in ("arguments", "input", "action", "query"):
        given = body.get(field)
        if isinstance(given, str):
            return name, given
        if given is not None:
            return name, as_json(given)
    return name, ""


def output_in(body: dict[str, Any]) -> str:
    """What a tool gave back, as text."""
    for field in ("output", "result", "tools"):
        value = body.get(field)
        if isinstance(value, dict) and isinstance(value.get("content"), str | list):
            value = value["content"]
        if isinstance(value, dict) and isinstance(value.get("text"), str):
            value = value["text"]
        if isinstance(value, str):
            return value
        if isinstance(value, list) and field != "tools":
            texts, with_images = texts_in(value)
            if texts or with_images or not value:
                return "\n".join([*texts, "[image]"] if with_images else texts)
        if value is not None:
            return as_json(value)
    return ""


def as_json(value: object) -> str:
    """JSON on one line."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # deeper than 254, or a number of more than 64 bits
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except (RecursionError, ValueError):
            return ""  # deeper than anything that a program writes


def time_of_uuid7(value: str) -> int | None:
    """The microseconds since 1970 inside a version 7 UUID."""
    if not is_uuid(value) or value[14] != "7":
        return None
    return int(value[:8] + value[9:13], 16) * 1000
