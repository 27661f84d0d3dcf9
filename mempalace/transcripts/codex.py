"""Codex rollouts, all versions: records → messages.

Owns: which records of `rollout-*.jsonl` are human words, answers, calls and results, and their
keys (docs/formats/codex.md). Every prompt and every answer may stand there two or three times, as
an event and as an item: it counts once.
Never: reads a file; looks for a fork's parent by itself (`turns_of` is given to it).
Called by: mempalace.transcripts.registry, filing.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

import orjson

from mempalace.ids import digest, record_key
from mempalace.model import Message, Role
from mempalace.transcripts.base import TurnsOf, instant, no_relatives, what_runs
from mempalace.transcripts.codex_items import (
    call_in,
    has_images,
    holds,
    ids_of,
    kinds_of,
    output_in,
    text_at,
    texts_in,
    time_of_uuid7,
)
from mempalace.transcripts.codex_text import answers_in, folder_in, human_words

SOURCE = "codex"
VERSION = 1

_UUID = re.compile(
    r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?:_[^.]*)?(?:\.jsonl)?$"
)
_CALLS_KEPT = 200  # open calls in the state (R5)
_MIRRORS_KEPT = 40
_WORDLESS_LINE = re.compile(
    rb'\{"timestamp":\s*"[^"]{0,40}",\s*(?:"ordinal":\s*\d+,\s*)?'
    rb'"type":\s*"(compacted|world_state|token_usage_record)"'
)
_ITEMS = frozenset(
    [
        "message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
        "custom_tool_call_output", "local_shell_call", "web_search_call", "tool_search_call",
        "tool_search_output", "image_generation_call", "tool_call", "tool_result",
    ]
)  # fmt: skip
_LINES = frozenset(
    [
        "session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
        "inter_agent_communication", "inter_agent_communication_metadata", "token_usage_record",
        "retained_context", "realtime_item", "security_risk_score",
    ]
)  # fmt: skip
_WORDLESS_ITEMS = frozenset(
    ["agent_message", "ghost_snapshot", "compaction", "compaction_summary", "context_compaction"]
)


class Codex:
    """The format, as the registry knows it."""

    source = SOURCE
    version = VERSION

    def fold(
        self,
        path: PurePath,
        state: dict[str, Any],
        waiting: dict[str, str],
        turns_of: TurnsOf = no_relatives,
    ) -> CodexFold:
        """A reader for `path`: new where `state` is empty, else where it had stopped."""
        return CodexFold(path, state, waiting, turns_of)

    def skims(self, line: bytes) -> str:
        """Compactions repeat the whole past, pictures included: up to 90 % of a large file."""
        found = _WORDLESS_LINE.match(line)
        return found.group(1).decode() if found else ""

    def recognises(self, record: dict[str, Any]) -> bool:
        """A line of today's shape, the bare first line of an old one, or its `record_type`."""
        kind = record.get("type")
        if kind in _LINES:
            return isinstance(record.get("payload"), dict)
        if kind == "message" and "role" in record and "sessionId" not in record:
            return isinstance(record.get("content"), list)
        if kind is None:
            is_header = {"id", "timestamp"} <= record.keys() and "message" not in record
            bare = {"role", "content", "timestamp"} <= record.keys()
            return is_header or bare or record.get("record_type") == "state"
        return False


class CodexFold:
    """A reader in the middle of one rollout."""

    def __init__(
        self, path: PurePath, state: dict[str, Any], waiting: dict[str, str], turns_of: TurnsOf
    ) -> None:
        named = _UUID.search(path.name.removesuffix(".zst").removesuffix(".jsonl"))
        self.waiting = waiting
        self._turns_of = turns_of
        self.folder: str | None = state.get("folder")
        self.cwd: str | None = state.get("cwd")
        self._own: str = state.get("own") or (named.group(1) if named else path.stem)
        self._is_named: bool = state.get("named", False)
        self._forked_at: int | None = state.get("forked_at")
        self._parents: list[str] = state.get("parents", [])  # whose turns are copied here
        self._is_copy: bool = state.get("copy", False)
        self._left_to_parent: bool = state.get("left", False)
        self._is_agent: bool = state.get("agent", False)
        self._turn: str = state.get("turn", "")
        self._counts: dict[str, int] = state.get("counts", {})
        self._mirrors: list[list[Any]] = state.get("mirrors", [])
        self._calls: dict[str, list[str]] = state.get("calls", {})
        self._at: int | None = state.get("at")

    def state(self) -> dict[str, Any]:
        return {
            "folder": self.folder, "cwd": self.cwd, "own": self._own, "named": self._is_named,
            "forked_at": self._forked_at, "parents": self._parents, "copy": self._is_copy,
            "left": self._left_to_parent, "agent": self._is_agent, "turn": self._turn,
            "counts": self._counts, "mirrors": self._mirrors, "calls": self._calls, "at": self._at,
        }  # fmt: skip

    @property
    def session(self) -> str:
        """The session whose turns are being read: a fork's parent while its copy lasts."""
        return self._parents[0] if self._is_copy and self._parents else self._own

    @property
    def left_out_as(self) -> str:
        """The words of a sub-agent's thread are the main agent's."""
        return "subagent" if self._is_agent else ""

    def finish(self) -> list[Message]:
        """Nothing waits: what was typed meanwhile is a turn of its own."""
        return []

    def step(self, record: dict[str, Any], offset: int) -> list[Message]:
        kind = record.get("type")
        self._at = instant(record.get("timestamp")) or self._at
        payload = record.get("payload")
        body: dict[str, Any] = payload if isinstance(payload, dict) else {}
        if kind == "session_meta":
            return self._meta(body, offset)
        if kind == "turn_context":
            self._begin_turn(text_at(body, "turn_id"))
            self._enter(text_at(body, "cwd"))
            return [self._left_out(offset, "turn_context")]
        if kind == "event_msg":
            return self._event(body, offset)
        if kind == "response_item":
            return self._item(body, offset)
        if kind == "retained_context":
            return self._retained(body, offset)
        if isinstance(kind, str) and kind in _LINES:
            return [self._left_out(offset, kind)]
        return self._bare(record, kind, offset)

    def _bare(self, record: dict[str, Any], kind: object, offset: int) -> list[Message]:
        """Lines from before 0.40: a header without a type, then items without an envelope."""
        if isinstance(kind, str):
            if kind in _ITEMS:
                return self._item(record, offset)
            return [self._left_out(offset, f"unknown:{kind[:40]}")]
        if record.get("record_type") is not None:
            return [self._left_out(offset, "state")]
        if "role" in record and "content" in record and "timestamp" in record:
            return self._item({"type": "message", **record}, offset)
        if isinstance(record.get("id"), str) and "timestamp" in record:
            return self._meta(record, offset)
        return [self._left_out(offset, "unknown:(no type)")]

    # --- whose session ------------------------------------------------------------------------

    def _meta(self, body: dict[str, Any], offset: int) -> list[Message]:
        session = text_at(body, "id")
        if not self._is_named:
            self._is_named = True
            self._own = session or self._own
            self._forked_at = instant(body.get("timestamp")) or self._at
            source, thread = body.get("source"), body.get("thread_source")
            self._is_agent = isinstance(source, dict) or thread in ("subagent", "guardian_review")
        elif session and session != self._own and session not in self._parents:
            self._parents.append(session)
            self._is_copy = True
            known = self._turns_of(self._parents[0])
            self._left_to_parent = known is not None
        self._enter(text_at(body, "cwd"))
        return [self._left_out(offset, "session_meta")]

    def _enter(self, cwd: str | None) -> None:
        self.cwd = cwd or self.cwd
        self.folder = self.folder or self.cwd

    def _begin_turn(self, turn: str | None) -> None:
        if not turn or turn == self._turn:
            return
        self._turn = turn
        self._counts = {}
        if self._is_copy and not self._is_parents(turn):
            self._is_copy = False

    def _is_parents(self, turn: str) -> bool:
        """Was this turn copied? The parent's file knows; else the time inside the id, else the
        time of the line: what is copied is stamped with the moment of the fork."""
        for parent in self._parents:
            turns = self._turns_of(parent)
            if turns is not None:
                return turn in turns
        born = time_of_uuid7(turn)
        if born is not None and self._forked_at is not None:
            return born < self._forked_at
        return self._at is None or self._forked_at is None or self._at <= self._forked_at

    # --- events and items ---------------------------------------------------------------------

    def _event(self, body: dict[str, Any], offset: int) -> list[Message]:
        kind = text_at(body, "type") or "(no type)"
        self._begin_turn(text_at(body, "turn_id") if kind.endswith("_started") else None)
        if kind == "user_message":
            return self._prompt(
                [text_at(body, "message") or ""], body, offset, "event", has_images(body)
            )
        if kind == "agent_message":
            return self._answer(text_at(body, "message") or "", offset, "event")
        if kind == "item_completed":
            item = body.get("item")
            return self._completed(item if isinstance(item, dict) else {}, offset)
        return [self._left_out(offset, f"event {kind[:40]}")]

    def _completed(self, item: dict[str, Any], offset: int) -> list[Message]:
        kind = text_at(item, "type") or "(no type)"
        if kind == "UserMessage":
            texts, has_images = texts_in(item.get("content"))
            return self._prompt(texts, item, offset, "completed", has_images)
        if kind == "AgentMessage":
            texts, _ = texts_in(item.get("content"))
            return [m for text in texts for m in self._answer(text, offset, "completed")]
        return [self._left_out(offset, f"item {kind[:40]}")]

    def _item(self, body: dict[str, Any], offset: int) -> list[Message]:
        kind = text_at(body, "type") or ("message" if "role" in body else "(no type)")
        if kind == "message":
            return self._message_item(body, offset)
        if kind in ("function_call_output", "custom_tool_call_output", "tool_search_output",
                    "tool_result"):  # fmt: skip
            return self._result(body, offset)
        if kind.endswith("_call"):
            return [self._call(body, kind, offset)]
        if kind == "reasoning":
            texts, _ = texts_in(body.get("summary"))
            text = "\n".join(texts)
            key = self._key("reasoning", digest(text))
            return [self._message(Role.THINKING, text, [key], offset, rule="thinking")]
        known = kind in _WORDLESS_ITEMS
        return [self._left_out(offset, f"item {kind}" if known else f"unknown:item {kind[:40]}")]

    def _message_item(self, body: dict[str, Any], offset: int) -> list[Message]:
        texts, has_images = texts_in(body.get("content"))
        role = body.get("role")
        if role == "user":
            kinds = kinds_of(body)
            if kinds and len(kinds) == len(texts):
                marked = [t for t, k in zip(texts, kinds, strict=True) if k == "user.text"]
                for text, kind in zip(texts, kinds, strict=True):
                    if kind != "user.text":
                        self._enter(None if self.folder else folder_in(text))
                if not marked:
                    return [self._left_out(offset, "context-envelope")]
                texts = marked
            return self._prompt(texts, body, offset, "item", has_images)
        if role == "assistant":
            return [m for text in texts for m in self._answer(text, offset, "item")]
        return [self._left_out(offset, f"role {str(role)[:40]}")]

    # --- prompts and answers ------------------------------------------------------------------

    def _prompt(
        self, texts: list[str], body: dict[str, Any], offset: int, carrier: str, has_images: bool
    ) -> list[Message]:
        said, rule = [], "blank"
        for text in texts:
            words, why = human_words(text)
            if words:
                said.append(words)
            else:
                rule = why or rule
                if why == "context-envelope" and self.folder is None:
                    self._enter(folder_in(text))
        text = "\n".join(said) or ("[image]" if has_images else "")
        if not text:
            return [self._left_out(offset, rule, "\n".join(texts))]
        if self._is_agent:
            key = self._key("task", digest(text))
            return [
                self._message(Role.ASSISTANT, text, [key], offset, kind="task", rule="subagent")
            ]
        keys = [record_key(SOURCE, name, digest(text)) for name in ids_of(body)]
        mirror = self._mirrored("human", text, carrier)
        if mirror:
            keys.insert(0, bytes.fromhex(mirror))
        else:
            keys.insert(0, self._key("human", digest(text)))
            self._remember("human", text, carrier, keys[0])
        kind = "image" if not said else "typed"
        return [self._kept(Role.HUMAN, text, keys, offset, kind=kind)]

    def _answer(self, text: str, offset: int, carrier: str) -> list[Message]:
        if not text.strip():
            return [self._left_out(offset, "blank")]
        rule = "subagent" if self._is_agent else ""
        mirror = self._mirrored("assistant", text, carrier)
        key = bytes.fromhex(mirror) if mirror else self._key("assistant", digest(text))
        if not mirror:
            self._remember("assistant", text, carrier, key)
        self._forget_mirrors("human")
        return [self._kept(Role.ASSISTANT, text, [key], offset, rule=rule)]

    def _mirrored(self, role: str, text: str, carrier: str) -> str:
        """The key of the same words that another kind of record has carried just now, or ''."""
        for mirror in self._mirrors:
            of, mark, length, key, carriers = mirror
            if of != role or carrier in carriers or not holds(text, mark, length):
                continue
            carriers.append(carrier)
            return str(key)
        return ""

    def _remember(self, role: str, text: str, carrier: str, key: bytes) -> None:
        self._mirrors.append([role, digest(text), len(text), key.hex(), [carrier]])
        if role == "human":
            self._forget_mirrors("assistant")
        del self._mirrors[:-_MIRRORS_KEPT]

    def _forget_mirrors(self, role: str) -> None:
        """Something came between: the same words again are said again."""
        self._mirrors = [mirror for mirror in self._mirrors if mirror[0] != role]

    # --- calls and results --------------------------------------------------------------------

    def _call(self, body: dict[str, Any], kind: str, offset: int) -> Message:
        name, given = call_in(body, kind)
        text = f"{name} {given}" if given else name
        call_id = text_at(body, "call_id") or text_at(body, "id") or ""
        mark = digest(text)
        key = record_key(SOURCE, call_id, mark) if call_id else self._key("call", mark)
        runs = what_runs(name, given)
        if call_id:
            self._calls[call_id] = [key.hex(), runs[:60]]
            while len(self._calls) > _CALLS_KEPT:
                del self._calls[next(iter(self._calls))]
        self._forget_mirrors("human")
        rule = "subagent" if self._is_agent else ""
        return self._kept(Role.CALL, text, [key], offset, kind=name, rule=rule, call_name=runs)

    def _result(self, body: dict[str, Any], offset: int) -> list[Message]:
        text = output_in(body)
        call_id = text_at(body, "call_id") or ""
        call_key, name = self._calls.pop(call_id, ("", ""))
        call = bytes.fromhex(call_key) if call_key else None
        mark = digest(text)
        key = record_key(SOURCE, call_id, "result", mark) if call_id else self._key("result", mark)
        rule = "subagent" if self._is_agent else ""
        messages = [
            self._kept(Role.RESULT, text, [key], offset, rule=rule, call=call, call_name=name)
        ]
        said = answers_in(text, orjson.loads) if name == "request_user_input" else ""
        return messages + (self._said(said, call_id, call, offset) if said and not rule else [])

    def _retained(self, body: dict[str, Any], offset: int) -> list[Message]:
        """`verified_answer`: what a human answered, told a second time beside the call's output."""
        asked = body.get("questions")
        if body.get("type") != "verified_answer" or not isinstance(asked, list) or self._is_agent:
            return [self._left_out(offset, "retained_context")]
        given = [str(one["answer"]) for one in asked if isinstance(one, dict) and one.get("answer")]
        call_id = text_at(body, "call_id") or ""
        call_key, _ = self._calls.get(call_id, ("", ""))
        call = bytes.fromhex(call_key) if call_key else None
        return self._said(", ".join(given), call_id, call, offset) if given else []

    def _said(self, words: str, call_id: str, call: bytes | None, offset: int) -> list[Message]:
        key = record_key(SOURCE, call_id, "said", digest(words))
        return [self._kept(Role.SAID, words, [key], offset, call=call)]

    # --- shared -------------------------------------------------------------------------------

    def _key(self, what: str, mark: str) -> bytes:
        """Turn id and ordinal in the turn name a record (R3); without turns, its place."""
        place = self._turn or self.session
        count = self._counts.get(what, 0)
        self._counts[what] = count + 1
        return record_key(SOURCE, place, what, count, mark)

    def _kept(
        self,
        role: Role,
        text: str,
        keys: list[bytes],
        offset: int,
        *,
        kind: str = "",
        rule: str = "",
        call: bytes | None = None,
        call_name: str = "",
    ) -> Message:
        """A record of the conversation; of a copy it is left to the parent that has it."""
        if self._is_copy and self._left_to_parent:
            rule = "copied from its parent"
        return self._message(
            role, text, keys, offset, kind=kind, rule=rule, call=call, call_name=call_name
        )

    def _message(
        self,
        role: Role,
        text: str,
        keys: list[bytes],
        offset: int,
        *,
        kind: str = "",
        rule: str = "",
        call: bytes | None = None,
        call_name: str = "",
    ) -> Message:
        return Message(
            role, text, tuple(keys), offset,
            at=self._at, kind=kind, rule=rule, cwd=self.cwd, session=self.session,
            call=call, call_name=call_name,
        )  # fmt: skip

    def _left_out(self, offset: int, rule: str, text: str = "") -> Message:
        keys = [record_key(SOURCE, "noise", self.session, offset, digest(text))] if text else []
        return self._message(Role.NOISE, text, keys, offset, rule=rule)
