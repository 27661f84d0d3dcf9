"""A reader in the middle of a Claude Code session file: records → messages.

Owns: which records of `~/.claude/projects/**/*.jsonl` are human words, answers, tool calls and
results, and their keys (docs/formats/claude-code.md states what is kept, what is dropped and why).
Never: reads a file, knows the palace, drops words by itself: what a rule leaves out is still given
back as a message that names the rule.
Called by: mempalace.transcripts.claude_code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from mempalace.ids import digest, record_key
from mempalace.model import Message, Role
from mempalace.transcripts.base import instant, label
from mempalace.transcripts.claude_answers import Answers
from mempalace.transcripts.claude_blocks import Block, blocks_of, content_of, raw_digest, text_at
from mempalace.transcripts.claude_human import (
    is_summary,
    words_of_attachment,
    words_of_blocks,
    words_of_line,
    words_said,
)
from mempalace.transcripts.claude_names import Names
from mempalace.transcripts.claude_queue import Found, Queue
from mempalace.transcripts.claude_records import WORDLESS, is_agents, is_subagents
from mempalace.transcripts.claude_text import Words

SOURCE = "claude-code"

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CALLS_KEPT = 150  # open calls in the state: about 120 bytes each of its 64 KiB (R5)


class ClaudeFold:
    """A reader in the middle of one session file."""

    def __init__(self, path: PurePath, state: dict[str, Any], waiting: dict[str, str]) -> None:
        self._stem = path.stem
        self._is_subagent = is_subagents(path)
        self.left_out_as = "subagent" if self._is_subagent else ""
        named = path.stem if _UUID.fullmatch(path.stem) else None
        self.session: str | None = state.get("session", named)
        self.folder: str | None = state.get("folder")
        self.cwd: str | None = state.get("cwd")
        self.waiting = waiting
        self._begun: bool = state.get("begun", False)  # what is queued before is no steering
        self._names = Names(state.get("ordinal", 0))
        self._calls: dict[str, list[str]] = state.get("calls", {})
        self._queue = Queue(state.get("queue", []), state.get("mirrors", []), waiting)
        self._answers = Answers(state.get("answers", []), state.get("recent", []))

    def state(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "folder": self.folder,
            "cwd": self.cwd,
            "begun": self._begun,
            "ordinal": self._names.ordinal,
            "calls": self._calls,
            **self._queue.state(),
            **self._answers.state(),
        }

    def step(self, record: dict[str, Any], offset: int) -> list[Message]:
        kind = record.get("type")
        if not isinstance(kind, str):
            return [self._left_out(record, offset, "unknown:(no type)")]
        is_turn = kind in ("user", "assistant", "human")
        self._begun = self._begun or is_turn
        if is_turn and self.session is None:
            self.session = text_at(record, "sessionId") or text_at(record, "session_id")
        self.cwd = text_at(record, "cwd") or self.cwd
        self.folder = self.folder or self.cwd
        if kind in ("user", "human"):
            return self._user(record, offset)
        if kind == "assistant":
            return self._assistant(record, offset)
        if kind == "queue-operation":
            return self._queue_operation(record, offset)
        if kind == "attachment":
            return self._attachment(record, offset)
        known = kind in WORDLESS
        return [self._left_out(record, offset, kind if known else f"unknown:{label(kind)}")]

    def finish(self) -> list[Message]:
        # Their folder is the session's: which one was named last depends on when this is asked.
        return [replace(self._queued(found), cwd=None) for found in self._queue.rest()]

    # --- user lines -------------------------------------------------------------------------

    def _user(self, record: dict[str, Any], offset: int) -> list[Message]:
        blocks = content_of(record)
        if blocks is None:
            return [self._left_out(record, offset, "malformed")]
        if self._is_subagent or is_agents(record):
            return self._subagent_user(record, blocks, offset)
        messages = list(self._results(record, blocks, offset))
        if any(block.text.strip().startswith("[Request interrupted by user") for block in blocks):
            self._queue.answered()  # the turn is over
        has_results = bool(messages)
        words = words_of_line(record, blocks)
        if words.text:
            messages += self._prompt(record, blocks, words, offset, steers=has_results)
        elif words.rule:
            text = "\n".join(block.text for block in blocks if block.type != "tool_result")
            messages += self._disowned(record, text, words.rule, offset)
            messages.append(self._left_out(record, offset, words.rule, text))
        return messages

    def _prompt(
        self,
        record: dict[str, Any],
        blocks: list[Block],
        words: Words,
        offset: int,
        *,
        steers: bool,
    ) -> list[Message]:
        raw = raw_digest(block for block in blocks if block.type != "tool_result")
        keys = self._names.of_words(record, self.session or self._stem, raw)
        if steers:  # re-stamped with the tool's line when a session is resumed: the tool id is not
            keys += [record_key(SOURCE, block.id, raw) for block in blocks if block.id]
        kind = "steer" if steers and words.kind == "typed" else words.kind
        carrier = "inline" if steers else "user"
        return self._carried(record, Words(words.text, kind), keys, offset, carrier)

    def _carried(
        self, record: dict[str, Any], words: Words, keys: list[bytes], offset: int, carrier: str
    ) -> list[Message]:
        """A prompt that may have been queued before; what was queued in its stead goes."""
        at = instant(record.get("timestamp"))
        told = self._queue.carried(words.text, keys, at, offset, carrier=carrier)
        return [
            *self._retracted(record, told.instead_of, offset),
            *map(self._queued, told.before),
            self._message(
                record,
                Role.HUMAN,
                words.text,
                told.keys,
                told.offset,
                kind=told.kind or words.kind,
                at=told.at,
            ),
        ]

    def _disowned(self, record: dict[str, Any], text: str, rule: str, offset: int) -> list[Message]:
        """What was queued and turns out to be no human's words."""
        wrapped = rule.startswith(("origin:", "teammate"))
        return self._retracted(record, self._queue.disown(text, wrapped=wrapped), offset)

    def _retracted(self, record: dict[str, Any], keys: list[bytes], offset: int) -> list[Message]:
        return [self._message(record, Role.RETRACTED, "", [key], offset) for key in keys]

    def _subagent_user(
        self, record: dict[str, Any], blocks: list[Block], offset: int
    ) -> list[Message]:
        """A sub-agent's prompt is written by the main agent: never human words."""
        messages = list(self._results(record, blocks, offset, rule="subagent"))
        text = "\n".join(block.text for block in blocks if block.type == "text")
        if text.strip():
            keys = self._names.of_words(record, self.session or self._stem, raw_digest(blocks))
            messages.append(
                self._message(
                    record, Role.ASSISTANT, text, keys, offset, kind="task", rule="subagent"
                )
            )
        return messages or [self._left_out(record, offset, "subagent")]

    def _results(
        self, record: dict[str, Any], blocks: list[Block], offset: int, *, rule: str = ""
    ) -> Iterable[Message]:
        for block in blocks:
            if block.type != "tool_result":
                continue
            raw, tool = digest(block.text), block.id
            call_key, name = self._calls.pop(tool, ("", ""))
            call = bytes.fromhex(call_key) if call_key else None
            if tool:
                key = record_key(SOURCE, tool, "result", raw)
            else:
                key = record_key(SOURCE, text_at(record, "uuid") or self._stem, "result", raw)
            yield self._message(
                record,
                Role.RESULT,
                block.text,
                [key],
                offset,
                rule=rule,
                call=call,
                call_name=name,
            )
            said = words_said(record, block.text, name) if not rule else ""
            if said.strip():
                key = record_key(SOURCE, tool or text_at(record, "uuid") or "", "said", raw)
                yield self._message(record, Role.SAID, said, [key], offset, call=call)

    # --- words typed while the agent works ----------------------------------------------------

    def _queue_operation(self, record: dict[str, Any], offset: int) -> list[Message]:
        operation = record.get("operation")
        content = record.get("content")
        blocks = (blocks_of(content) or []) if content is not None else []
        words = words_of_blocks(blocks)
        if words.kind == "typed" and self._begun:
            words = Words(words.text, "steer")
        named = words if content is not None else None
        at, raw = instant(record.get("timestamp")), raw_digest(blocks)
        if operation == "enqueue":
            key = self._names.of_words(record, self.session or self._stem, raw)[0]
            return [self._queued(one) for one in self._queue.enqueue(words, key, at, offset)]
        if operation == "popAll":
            return self._retracted(record, self._queue.clear(), offset)
        if operation == "dequeue":
            self._queue.dequeue(named)
            return []
        if operation == "remove":
            keys = (
                self._names.of_words(record, self.session or self._stem, raw) if words.text else []
            )
            found, instead_of = self._queue.remove(named, keys, at, offset)
            gone = self._retracted(record, instead_of, offset)
            return [*gone, self._queued(found)] if found else gone
        return [self._left_out(record, offset, "unknown:queue-operation")]

    def _attachment(self, record: dict[str, Any], offset: int) -> list[Message]:
        body = record.get("attachment")
        if not isinstance(body, dict) or body.get("type") != "queued_command":
            return [self._left_out(record, offset, "attachment")]
        if self._is_subagent or is_agents(record):
            return [self._left_out(record, offset, "subagent")]
        blocks = blocks_of(body.get("prompt")) or []
        words = words_of_attachment(record, body, blocks)
        if not words.text:
            text = "\n".join(block.text for block in blocks)
            gone = self._disowned(record, text, words.rule, offset)
            return [*gone, self._left_out(record, offset, words.rule or "blank")]
        raw = raw_digest(blocks)
        keys = self._names.of_words(record, self.session or self._stem, raw)
        source = text_at(body, "source_uuid")
        if source:
            keys.append(record_key(SOURCE, source, raw))
        kind = "steer" if words.kind == "typed" else words.kind
        return self._carried(record, Words(words.text, kind), keys, offset, "attachment")

    def _queued(self, found: Found) -> Message:
        words, keys, at, offset = found
        return Message(
            Role.HUMAN,
            words.text,
            tuple(keys),
            offset,
            at=at,
            kind=words.kind,
            cwd=self.cwd,
            session=self.session or self._stem,
        )

    # --- assistant lines ----------------------------------------------------------------------

    def _assistant(self, record: dict[str, Any], offset: int) -> list[Message]:
        blocks = content_of(record)
        if blocks is None:
            return [self._left_out(record, offset, "malformed")]
        message = record["message"]
        if is_summary(record):
            return [self._left_out(record, offset, "compact-summary")]
        if message.get("model") == "<synthetic>" or record.get("isApiErrorMessage") is True:
            text = "\n".join(block.text for block in blocks)
            return [self._left_out(record, offset, "api-message", text)]
        rule = "subagent" if self._is_subagent or is_agents(record) else ""
        uuid = text_at(record, "uuid") or ""
        native = text_at(message, "id") or uuid
        if not native:
            at = instant(record.get("timestamp"))
            native = (
                str(at)
                if at is not None
                else self._names.of_place(self.session or self._stem, "").hex()
            )
        keyed = self._answers.keys(native, uuid, text_at(record, "parentUuid"), blocks)
        messages = []
        for block, (key, grows) in zip(blocks, keyed, strict=True):
            made = self._answer_block(record, block, key, grows, offset, rule)
            if made:
                messages.append(replace(made, whole=native))
        replaced = record.get("supersedesUuids")
        messages += [
            self._message(record, Role.SUPERSEDED, "", [key], offset)
            for key in self._answers.superseded(replaced if isinstance(replaced, list) else [])
        ]
        if any(m.role is Role.ASSISTANT and not m.rule for m in messages):
            run = self._queue.unclaimed()  # no `user` line ever carried these words
            messages = [*map(self._queued, run), *messages]
            self._queue.answered()
        return messages

    def _answer_block(
        self,
        record: dict[str, Any],
        block: Block,
        key: bytes,
        grows: bytes | None,
        offset: int,
        rule: str,
    ) -> Message | None:
        kind, text = block.type, block.text
        if kind == "text":
            if not text.strip():
                return self._left_out(record, offset, "blank")
            return self._message(
                record, Role.ASSISTANT, text, [key], offset, rule=rule, grows=grows
            )
        if kind == "thinking":
            return self._message(
                record, Role.THINKING, text, [key], offset, rule=rule or "thinking"
            )
        if kind == "call":
            if block.id:
                self._calls[block.id] = [key.hex(), block.runs[:60]]
                while len(self._calls) > _CALLS_KEPT:
                    del self._calls[next(iter(self._calls))]
            return self._message(
                record,
                Role.CALL,
                text,
                [key],
                offset,
                kind=block.name,
                rule=rule,
                call_name=block.runs,
            )
        if kind == "tool_result":  # a tool that the server ran: web search and the like
            call_key, name = self._calls.pop(block.id, ("", ""))
            call = bytes.fromhex(call_key) if call_key else None
            return self._message(
                record, Role.RESULT, text, [key], offset, rule=rule, call=call, call_name=name
            )
        return self._left_out(
            record, offset, kind if kind == "image" else f"unknown:block {label(kind)}"
        )

    # --- shared -------------------------------------------------------------------------------

    def _message(
        self,
        record: dict[str, Any],
        role: Role,
        text: str,
        keys: list[bytes],
        offset: int,
        *,
        kind: str = "",
        rule: str = "",
        at: int | None = None,
        call: bytes | None = None,
        call_name: str = "",
        grows: bytes | None = None,
    ) -> Message:
        return Message(
            role,
            text,
            tuple(keys),
            offset,
            at=instant(record.get("timestamp")) if at is None else at,
            kind=kind,
            rule=rule,
            cwd=text_at(record, "cwd") or self.cwd,
            session=self.session or self._stem,
            named=text_at(record, "sessionId") or text_at(record, "session_id"),
            call=call,
            call_name=call_name,
            grows=grows,
        )

    def _left_out(self, record: dict[str, Any], offset: int, rule: str, text: str = "") -> Message:
        keys: list[bytes] = []
        if text:  # a name of its own: a newer parser may find human words in the same line
            native = text_at(record, "uuid") or instant(record.get("timestamp")) or self._stem
            keys = [record_key(SOURCE, "noise", native, digest(text))]
        return self._message(record, Role.NOISE, text, keys, offset, rule=rule)
