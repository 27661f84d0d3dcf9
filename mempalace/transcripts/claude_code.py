"""Claude Code session files, all versions: records → messages.

Owns: which records of `~/.claude/projects/**/*.jsonl` are human words, answers, tool calls and
results, and their keys (docs/formats/claude-code.md states what is kept, what is dropped and why).
Never: reads a file, knows the palace, drops words by itself: what a rule leaves out is still given
back as a message that names the rule.
Called by: mempalace.transcripts.registry, filing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from mempalace.ids import digest, record_key
from mempalace.model import Message, Role
from mempalace.transcripts.base import instant
from mempalace.transcripts.claude_answers import Answers
from mempalace.transcripts.claude_blocks import Block, blocks_of, content_of, raw_digest, text_at
from mempalace.transcripts.claude_queue import Queue
from mempalace.transcripts.claude_text import Words, human_words, words_in_result

SOURCE = "claude-code"
VERSION = 1

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CALLS_KEPT = 300  # open calls in the state: at most 300 x ~100 bytes of the 64 KiB (R5)
_ASKS_THE_HUMAN = {"AskUserQuestion", "ExitPlanMode"}
_NOISE_TYPES = frozenset(
    [
        "summary",
        "custom-title",
        "ai-title",
        "agent-name",
        "agent-setting",
        "last-prompt",
        "file-history-snapshot",
        "progress",
        "pr-link",
        "mode",
        "permission-mode",
        "atis-latch",
        "bridge-session",
        "frame-link",
        "worktree-state",
        "relocated",
        "started",
        "result",
        "system",
        "attachment",
        "tool_use",
        "tool_result",
    ]
)


class ClaudeCode:
    """The format, as the registry knows it."""

    source = SOURCE
    version = VERSION

    def fold(self, path: PurePath, state: dict[str, Any], waiting: dict[str, str]) -> ClaudeFold:
        """A reader for `path`: new where `state` is empty, else where it had stopped."""
        return ClaudeFold(path, state, waiting)

    def recognises(self, record: dict[str, Any]) -> bool:
        """Any of the first records will do: of 400 live files none began with a turn."""
        kind = record.get("type")
        if kind in ("user", "assistant", "human"):
            return isinstance(record.get("message"), dict)
        if kind in _NOISE_TYPES or kind == "queue-operation":
            return not _is_foreign(record)
        return "parentUuid" in record or ("sessionId" in record and "uuid" in record)


def _is_foreign(record: dict[str, Any]) -> bool:
    """`system`, `result` and the like are words that other programs use as well."""
    return record.get("type") in (
        "system",
        "result",
        "started",
        "tool_use",
        "tool_result",
    ) and not ({"sessionId", "uuid", "agentId"} & record.keys())


class ClaudeFold:
    """A reader in the middle of one session file."""

    def __init__(self, path: PurePath, state: dict[str, Any], waiting: dict[str, str]) -> None:
        self._stem = path.stem
        self._is_subagent = path.stem.startswith("agent-") or "subagents" in path.parts
        named = path.stem if _UUID.fullmatch(path.stem) else None
        self.session: str | None = state.get("session", named)
        self.folder: str | None = state.get("folder")
        self.cwd: str | None = state.get("cwd")
        self.waiting = waiting
        self._ordinal: int = state.get("ordinal", 0)
        self._calls: dict[str, list[str]] = state.get("calls", {})
        self._queue = Queue(state.get("queue", []), state.get("mirrors", []), waiting)
        self._answers = Answers(state.get("answers", []), state.get("recent", []))

    def state(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "folder": self.folder,
            "cwd": self.cwd,
            "ordinal": self._ordinal,
            "calls": self._calls,
            **self._queue.state(),
            **self._answers.state(),
        }

    def step(self, record: dict[str, Any], offset: int) -> list[Message]:
        kind = record.get("type")
        if not isinstance(kind, str):
            return [self._left_out(record, offset, "unknown:(no type)")]
        if kind in ("user", "assistant", "human") and self.session is None:
            self.session = text_at(record, "sessionId")
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
        known = kind in _NOISE_TYPES
        return [self._left_out(record, offset, kind if known else f"unknown:{kind[:40]}")]

    def finish(self) -> list[Message]:
        # Their folder is the session's: which one was named last depends on when this is asked.
        return [replace(self._queued(*found), cwd=None) for found in self._queue.rest()]

    # --- user lines -------------------------------------------------------------------------

    def _user(self, record: dict[str, Any], offset: int) -> list[Message]:
        blocks = content_of(record)
        if blocks is None:
            return [self._left_out(record, offset, "malformed")]
        if self._is_subagent or record.get("isSidechain") is True:
            return self._subagent_user(record, blocks, offset)
        messages = list(self._results(record, blocks, offset))
        if any(block.text.strip().startswith("[Request interrupted by user") for block in blocks):
            self._queue.answered()  # the turn is over
        has_results = bool(messages)
        prompt = self._prompt_in(record, blocks, has_results=has_results)
        if prompt.text:
            messages.append(self._prompt(record, blocks, prompt, offset, steers=has_results))
        elif prompt.rule:
            text = "\n".join(block.text for block in blocks)
            messages.append(self._left_out(record, offset, prompt.rule, text))
        return messages

    def _prompt_in(
        self, record: dict[str, Any], blocks: list[Block], *, has_results: bool
    ) -> Words:
        """The human words of a line, or the rule that leaves it out (docs: the order of tests)."""
        others = [block for block in blocks if block.type != "tool_result"]
        if not others:
            return Words()
        if (
            record.get("isCompactSummary") is True
            or record.get("isVisibleInTranscriptOnly") is True
        ):
            return Words(rule="compact-summary")
        if record.get("isMeta") is True:
            return Words(rule="meta")
        origin = _injected_by(record)
        if origin:
            return Words(rule=origin)
        if "toolUseResult" in record and not has_results:
            return Words(rule="tool-output")
        read = [human_words(block.text) for block in others if block.type == "text"]
        said = [words for words in read if words.text]
        if said:
            kind = said[0].kind if len(said) == 1 else "typed"
            return Words("\n".join(words.text for words in said), kind)
        if any(block.type in ("image", "document") for block in others):
            return Words("[image]", "image")
        return next(iter(read), Words(rule="blank"))

    def _prompt(
        self,
        record: dict[str, Any],
        blocks: list[Block],
        words: Words,
        offset: int,
        *,
        steers: bool,
    ) -> Message:
        raw = raw_digest(block for block in blocks if block.type != "tool_result")
        keys = self._human_keys(record, raw)
        if steers:  # re-stamped with the tool's line when a session is resumed: the tool id is not
            keys += [record_key(SOURCE, block.id, raw) for block in blocks if block.id]
        kind = "steer" if steers and words.kind == "typed" else words.kind
        keys, at, place = self._queue.carried(
            words.text,
            keys,
            instant(record.get("timestamp")),
            offset,
            carrier="inline" if steers else "user",
        )
        return self._message(record, Role.HUMAN, words.text, keys, place, kind=kind, at=at)

    def _human_keys(self, record: dict[str, Any], raw: str) -> list[bytes]:
        keys = []
        uuid = text_at(record, "uuid")
        if uuid:
            keys.append(record_key(SOURCE, uuid, raw))
        stamp = record.get("timestamp")
        at = instant(stamp)
        if at is not None and (
            not isinstance(stamp, str) or len(stamp) >= len("2026-01-01T00:00:00")
        ):
            keys.append(record_key(SOURCE, at, raw))
        return keys or [self._place_key(raw)]

    def _place_key(self, raw: str) -> bytes:
        """The key of a record that has neither an id nor a time: its place in the conversation."""
        self._ordinal += 1
        return record_key(SOURCE, self.session or self._stem, self._ordinal, raw)

    def _subagent_user(
        self, record: dict[str, Any], blocks: list[Block], offset: int
    ) -> list[Message]:
        """A sub-agent's prompt is written by the main agent: never human words."""
        messages = list(self._results(record, blocks, offset, rule="subagent"))
        text = "\n".join(block.text for block in blocks if block.type == "text")
        if text.strip():
            keys = self._human_keys(record, raw_digest(blocks))
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
            said = _answers(record, block.text, name) if not rule else ""
            if said.strip():
                key = record_key(SOURCE, tool or text_at(record, "uuid") or "", "said", raw)
                yield self._message(record, Role.SAID, said, [key], offset, call=call)

    # --- words typed while the agent works ----------------------------------------------------

    def _queue_operation(self, record: dict[str, Any], offset: int) -> list[Message]:
        operation = record.get("operation")
        content = record.get("content")
        blocks = blocks_of(content) if content is not None else []
        words = _queued_words(blocks or [])
        at = instant(record.get("timestamp"))
        raw = raw_digest(blocks or [])
        if operation == "enqueue":
            self._queue.enqueue(words, self._human_keys(record, raw)[0], at, offset)
            return []
        if operation == "popAll":
            return [
                self._message(record, Role.RETRACTED, "", [key], offset)
                for key in self._queue.clear()
            ]
        if operation == "dequeue":
            self._queue.dequeue(words if content is not None else None)
            return []
        if operation == "remove":
            keys = self._human_keys(record, raw) if words.text else []
            found = self._queue.remove(words if content is not None else None, keys, at, offset)
            return [self._queued(*found)] if found else []
        return [self._left_out(record, offset, "unknown:queue-operation")]

    def _attachment(self, record: dict[str, Any], offset: int) -> list[Message]:
        body = record.get("attachment")
        if not isinstance(body, dict) or body.get("type") != "queued_command":
            return [self._left_out(record, offset, "attachment")]
        if self._is_subagent or record.get("isSidechain") is True:
            return [self._left_out(record, offset, "subagent")]
        blocks = blocks_of(body.get("prompt")) or []
        words = _queued_words(blocks)
        rule = _injected_by(body) or _injected_by(record)
        if body.get("commandMode") == "task-notification":
            rule = rule or "task-notification"
        if rule or not words.text:
            return [self._left_out(record, offset, rule or words.rule or "blank")]
        if body.get("commandMode") == "bash" and words.kind == "typed":
            words = Words("!" + words.text, "bash")
        raw = raw_digest(blocks)
        keys = self._human_keys(record, raw)
        if text_at(body, "source_uuid"):
            keys.append(record_key(SOURCE, str(body["source_uuid"]), raw))
        keys, at, place = self._queue.carried(
            words.text, keys, instant(record.get("timestamp")), offset, carrier="attachment"
        )
        kind = "steer" if words.kind == "typed" else words.kind
        return [self._message(record, Role.HUMAN, words.text, keys, place, kind=kind, at=at)]

    def _queued(self, words: Words, keys: list[bytes], at: int | None, offset: int) -> Message:
        kind = "steer" if words.kind == "typed" else words.kind
        return Message(
            Role.HUMAN,
            words.text,
            tuple(keys),
            offset,
            at=at,
            kind=kind,
            cwd=self.cwd,
            session=self.session or self._stem,
        )

    # --- assistant lines ----------------------------------------------------------------------

    def _assistant(self, record: dict[str, Any], offset: int) -> list[Message]:
        blocks = content_of(record)
        if blocks is None:
            return [self._left_out(record, offset, "malformed")]
        message = record["message"]
        if (
            record.get("isCompactSummary") is True
            or record.get("isVisibleInTranscriptOnly") is True
        ):
            return [self._left_out(record, offset, "compact-summary")]
        if message.get("model") == "<synthetic>" or record.get("isApiErrorMessage") is True:
            text = "\n".join(block.text for block in blocks)
            return [self._left_out(record, offset, "api-message", text)]
        rule = "subagent" if self._is_subagent or record.get("isSidechain") is True else ""
        uuid = text_at(record, "uuid") or ""
        native = text_at(message, "id") or uuid
        if not native:
            at = instant(record.get("timestamp"))
            native = str(at) if at is not None else self._place_key("").hex()
        keyed = self._answers.keys(native, uuid, text_at(record, "parentUuid"), blocks)
        messages = []
        for block, (key, grows) in zip(blocks, keyed, strict=True):
            made = self._answer_block(record, block, key, grows, offset, rule)
            if made:
                messages.append(made)
        replaced = record.get("supersedesUuids")
        messages += [
            self._message(record, Role.SUPERSEDED, "", [key], offset)
            for key in self._answers.superseded(replaced if isinstance(replaced, list) else [])
        ]
        if any(m.role is Role.ASSISTANT and not m.rule for m in messages):
            messages = self._orphaned_prompts() + messages
            self._queue.answered()
        return messages

    def _orphaned_prompts(self) -> list[Message]:
        """Queued words that were run although no `user` line ever carried them."""
        return [self._queued(*found) for found in self._queue.unclaimed()]

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
                self._calls[block.id] = [key.hex(), block.name]
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
                call_name=block.name,
            )
        if kind == "tool_result":  # a tool that the server ran: web search and the like
            call_key, name = self._calls.pop(block.id, ("", ""))
            call = bytes.fromhex(call_key) if call_key else None
            return self._message(
                record, Role.RESULT, text, [key], offset, rule=rule, call=call, call_name=name
            )
        return self._left_out(record, offset, kind if kind == "image" else f"unknown:block {kind}")

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
            named=text_at(record, "sessionId"),
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


# --- what a line says of itself ---------------------------------------------------------------


def _injected_by(record: dict[str, Any]) -> str:
    """The rule that leaves a line out because its flags say that no human wrote it, or ''."""
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    if isinstance(kind, str) and kind != "human":
        return f"origin:{kind[:40]}"
    return "origin:system" if record.get("promptSource") == "system" else ""


def _queued_words(blocks: list[Block]) -> Words:
    read = [human_words(block.text) for block in blocks if block.type == "text"]
    said = [words for words in read if words.text]
    if said:
        kind = said[0].kind if len(said) == 1 else "typed"
        return Words("\n".join(words.text for words in said), kind)
    if any(block.type in ("image", "document") for block in blocks):
        return Words("[image]", "image")
    return next(iter(read), Words(rule="blank"))


def _answers(record: dict[str, Any], text: str, tool: str) -> str:
    """Human words inside a result: from its text, else from the answers beside it."""
    result = record.get("toolUseResult")
    answers = result.get("answers") if isinstance(result, dict) else None
    asked = tool in _ASKS_THE_HUMAN or isinstance(answers, dict)
    said = words_in_result(text, question=asked)
    if said or not isinstance(answers, dict):
        return said
    return ", ".join(f'"{question}"="{answer}"' for question, answer in answers.items())
