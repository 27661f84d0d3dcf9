"""Codex rollouts, all versions: records → messages.

Owns: which records of `rollout-*.jsonl` are human words, answers, calls and results
(docs/formats/codex.md). Every prompt and every answer may stand there two or three times, as an
event and as an item: it counts once.
Never: reads a file; looks for a fork's parent by itself (`turns_of` is given to it).
Called by: mempalace.transcripts.registry, filing.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from mempalace.ids import digest, record_key
from mempalace.model import Message, Role
from mempalace.transcripts.base import COPIED, TurnsOf, label, no_relatives
from mempalace.transcripts.codex_calls import Calls, answers_of, numbered
from mempalace.transcripts.codex_items import (
    dict_at,
    folder_at,
    has_images,
    header_in,
    id_at,
    ids_of,
    is_bare_message,
    marked_texts,
    text_at,
    texts_in,
)
from mempalace.transcripts.codex_mirrors import Mirrors
from mempalace.transcripts.codex_names import (
    HEADER_FIELDS,
    INJECTED_KINDS,
    ITEMS,
    LINES,
    OUTPUTS,
    TURN_ENDS,
    WORDLESS_EVENTS,
    WORDLESS_ITEMS,
    WORDLESS_PARTS,
    named,
    session_in_name,
    wordless_line,
)
from mempalace.transcripts.codex_text import Words, answers_retained, folder_in, human_words
from mempalace.transcripts.codex_turns import SOURCE, Turns

VERSION = 1

_SUBAGENT = "subagent"


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
        return wordless_line(line)

    def recognises(self, record: dict[str, Any]) -> bool:
        """A line of today's shape, the bare first line of an old one, or its `record_type`."""
        kind = record.get("type")
        if isinstance(kind, str) and kind in LINES:
            return isinstance(record.get("payload"), dict)
        if kind == "message" and "role" in record and "sessionId" not in record:
            return isinstance(record.get("content"), list)
        if kind is None:
            is_header = {"id", "timestamp"} <= record.keys() <= HEADER_FIELDS
            bare = {"role", "content", "timestamp"} <= record.keys()
            return is_header or bare or record.get("record_type") == "state"
        return False


class CodexFold:
    """A reader in the middle of one rollout."""

    def __init__(
        self, path: PurePath, state: dict[str, Any], waiting: dict[str, str], turns_of: TurnsOf
    ) -> None:
        self.waiting = waiting
        self.folder: str | None = state.get("folder")
        self.cwd: str | None = state.get("cwd")
        self._home: str | None = state.get("home")  # the folder of its own header
        self._is_new: bool = state.get("new", False)  # nothing but headers so far
        self._kind: str = state.get("kind", "typed")
        self._first: str = state.get("first", "")  # MD5 of the first prompt
        self._is_after_abort: bool = state.get("aborted", False)
        self._is_told: bool = state.get("told", False)  # prompts have events here
        self._turns = Turns(session_in_name(path), state.get("turns", {}), turns_of)
        self._mirrors = Mirrors(state.get("mirrors", []))
        self._calls = Calls(state.get("calls", {}))

    def state(self) -> dict[str, Any]:
        return {
            "folder": self.folder, "cwd": self.cwd, "home": self._home, "new": self._is_new,
            "kind": self._kind, "first": self._first, "aborted": self._is_after_abort,
            "told": self._is_told, "turns": self._turns.state(),
            "mirrors": self._mirrors.state(), "calls": self._calls.state(),
        }  # fmt: skip

    @property
    def session(self) -> str:
        """The session whose turns are being read: a fork's parent while its copy lasts."""
        return self._turns.session

    @property
    def left_out_as(self) -> str:
        """The words of a sub-agent's thread are the main agent's; what it copies may be a human's,
        and is told nowhere else if the parent is gone."""
        is_decided = not self._is_new and not self._turns.is_copy
        return _SUBAGENT if self._turns.is_agent and is_decided else ""

    def finish(self) -> list[Message]:
        """Nothing waits: what was typed meanwhile is a turn of its own."""
        return []

    def step(self, record: dict[str, Any], offset: int) -> list[Message]:
        turns, header = self._turns, header_in(record)
        was_copy, was_named, turn = turns.is_copy, turns.is_named, turns.turn
        turns.follow(record)
        if was_copy and not turns.is_copy:
            self.cwd = self._home or self.cwd
        if turns.turn != turn and not self._is_told:
            self._is_after_abort = False  # what Codex repeats stands in the turn of the abort
        if header is not None:
            return self._header(header, offset, is_first=not was_named)
        return self._line(record, offset)

    def _line(self, record: dict[str, Any], offset: int) -> list[Message]:
        kind = record.get("type")
        body = dict_at(record, "payload")
        self._is_new = False
        if kind == "turn_context":
            self._enter(folder_at(body, "cwd"))
            return [self._left_out(offset, "turn_context")]
        if kind == "event_msg":
            return self._event(body, offset)
        if kind == "response_item":
            return self._item(body, offset)
        if kind == "retained_context":
            return self._retained(body, offset)
        if isinstance(kind, str) and kind in LINES:
            return [self._left_out(offset, kind)]
        return self._bare(record, kind, offset)

    def _bare(self, record: dict[str, Any], kind: object, offset: int) -> list[Message]:
        """Lines from before 0.40: items without an envelope."""
        if isinstance(kind, str):
            if kind in ITEMS:
                return self._item(record, offset)
            return [self._left_out(offset, f"unknown:{label(kind)}")]
        if record.get("record_type") is not None:
            return [self._left_out(offset, "state")]
        if is_bare_message(record):
            return self._item({"type": "message", **record}, offset)
        return [self._left_out(offset, "unknown:(no type)")]

    # --- whose session ------------------------------------------------------------------------

    def _header(self, body: dict[str, Any], offset: int, *, is_first: bool) -> list[Message]:
        cwd = folder_at(body, "cwd")
        if is_first:
            self._is_new = True
            self._home = cwd
            if body.get("source") == "exec" or text_at(body, "originator") == "codex_exec":
                self._kind = "exec"
        self._enter(cwd)
        return [self._left_out(offset, "session_meta")]

    def _enter(self, cwd: str | None) -> None:
        self.cwd = cwd or self.cwd
        self.folder = self.folder or self.cwd

    # --- events and items ---------------------------------------------------------------------

    def _event(self, body: dict[str, Any], offset: int) -> list[Message]:
        kind = text_at(body, "type") or "(no type)"
        if kind == "user_message":
            if body.get("kind") in INJECTED_KINDS:
                return [self._left_out(offset, "context-envelope", text_at(body, "message") or "")]
            said = human_words(text_at(body, "message") or "", is_told=True)
            return self._prompt([said], body, offset, "event", has_images=has_images(body))
        if kind == "agent_message":
            return self._answer(text_at(body, "message") or "", offset, "event")
        if kind == "item_completed":
            return self._completed(dict_at(body, "item"), offset)
        if kind in TURN_ENDS:
            self._mirrors.forget()
        return [self._left_out(offset, named("event", kind, WORDLESS_EVENTS))]

    def _completed(self, item: dict[str, Any], offset: int) -> list[Message]:
        kind = text_at(item, "type") or "(no type)"
        texts, with_images = texts_in(item.get("content"))
        if kind == "UserMessage":
            said = [human_words(text, is_told=True) for text in texts]
            return self._prompt(said, item, offset, "completed", has_images=with_images)
        if kind == "AgentMessage":
            return [m for text in texts for m in self._answer(text, offset, "completed")]
        return [self._left_out(offset, named("item", kind, WORDLESS_PARTS))]

    def _item(self, body: dict[str, Any], offset: int) -> list[Message]:
        kind = text_at(body, "type") or ("message" if "role" in body else "(no type)")
        if kind == "message":
            return self._message_item(body, offset)
        if kind in OUTPUTS:
            return self._result(body, offset)
        if kind in ITEMS and kind.endswith("_call"):
            return [self._call(body, kind, offset)]
        if kind == "reasoning":
            text = "\n".join(texts_in(body.get("summary"))[0])
            keys = self._turns.keys("reasoning", digest(text))
            return [self._message(Role.THINKING, text, keys, offset, rule="thinking")]
        return [self._left_out(offset, named("item", kind, WORDLESS_ITEMS))]

    def _message_item(self, body: dict[str, Any], offset: int) -> list[Message]:
        texts, with_images = texts_in(body.get("content"))
        role = body.get("role")
        if role == "assistant":
            return [m for text in texts for m in self._answer(text, offset, "item")]
        if role != "user":
            return [self._left_out(offset, f"role {str(role)[:40]}")]
        if self.folder is None:
            self._enter(next((cwd for text in texts if (cwd := folder_in(text))), None))
        marked = marked_texts(body)
        if marked is None:
            said = [human_words(text) for text in texts]
        else:
            said = [human_words(text, is_marked=True) for text in marked[0]]
            said += [Words("", "context-envelope", human_words(t).is_abort) for t in marked[1]]
        return self._prompt(said, body, offset, "item", has_images=with_images)

    # --- prompts and answers ------------------------------------------------------------------

    def _prompt(
        self,
        said: list[Words],
        body: dict[str, Any],
        offset: int,
        carrier: str,
        *,
        has_images: bool,
    ) -> list[Message]:
        self._is_told = self._is_told or carrier != "item"
        texts = [words.text for words in said if words.text] or (["[image]"] if has_images else [])
        was_aborted, is_abort = self._is_after_abort, any(words.is_abort for words in said)
        self._is_after_abort = is_abort or (was_aborted and not texts)
        if is_abort:
            self._mirrors.forget()
        if not texts:
            rule = next((words.rule for words in said if words.rule), "blank")
            return [self._left_out(offset, rule)]
        text = "\n".join(texts)
        mark = digest(text)
        written = "".join(words.whole for words in said if words.text)
        known = self._mirrors.find("human", texts, carrier, written)
        is_again = (was_aborted or is_abort) and carrier == "item" and mark == self._first
        if is_again and not known:
            return [self._left_out(offset, "repeated behind an abort")]
        what = "task" if self._turns.is_agents else "human"
        keys = (bytes.fromhex(known),) if known else self._turns.keys(what, mark)
        if not known:
            self._mirrors.remember("human", texts, carrier, keys[0].hex(), written)
            self._mirrors.forget("assistant")
            self._first = self._first or mark
        keys += tuple(record_key(SOURCE, name, mark) for name in ids_of(body))
        if what == "task":
            return [self._kept(Role.ASSISTANT, text, keys, offset, kind="task")]
        kind = "image" if texts == ["[image]"] and has_images else self._kind
        return [self._kept(Role.HUMAN, text, keys, offset, kind=kind)]

    def _answer(self, text: str, offset: int, carrier: str) -> list[Message]:
        if not text.strip():
            return [self._left_out(offset, "blank")]
        self._is_after_abort = False
        known = self._mirrors.find("assistant", [text], carrier)
        keys = (bytes.fromhex(known),) if known else self._turns.keys("assistant", digest(text))
        if not known:
            self._mirrors.remember("assistant", [text], carrier, keys[0].hex())
        self._mirrors.forget("human")
        return [self._kept(Role.ASSISTANT, text, keys, offset)]

    # --- calls and results --------------------------------------------------------------------

    def _call(self, body: dict[str, Any], kind: str, offset: int) -> Message:
        self._is_after_abort = False
        self._mirrors.forget("human")
        text, keys, name, runs = self._calls.call(body, kind, self._turns)
        return self._kept(Role.CALL, text, keys, offset, kind=name, call_name=runs)

    def _result(self, body: dict[str, Any], offset: int) -> list[Message]:
        text, keys, call, runs = self._calls.result(body, self._turns)
        result = self._kept(Role.RESULT, text, keys, offset, call=call, call_name=runs)
        return [result, *self._said(answers_of(text, runs), body, call, offset)]

    def _retained(self, body: dict[str, Any], offset: int) -> list[Message]:
        """`verified_answer`: what a human answered, told a second time beside the call's output."""
        is_answer = body.get("type") == "verified_answer"
        answers = answers_retained(body) if is_answer else []
        said = self._said(answers, body, self._calls.call_of(body), offset)
        return said or [self._left_out(offset, "retained_context")]

    def _said(
        self, answers: list[str], body: dict[str, Any], call: bytes | None, offset: int
    ) -> list[Message]:
        call_id = id_at(body, "call_id")
        return [
            self._kept(
                Role.SAID,
                words,
                self._turns.answer_keys(call_id, number, digest(words)),
                offset,
                call=call,
            )
            for words, number in numbered(answers)
        ]

    # --- shared -------------------------------------------------------------------------------

    def _kept(
        self,
        role: Role,
        text: str,
        keys: tuple[bytes, ...],
        offset: int,
        *,
        kind: str = "",
        call: bytes | None = None,
        call_name: str = "",
    ) -> Message:
        """A record of the conversation; of a copy it is left to the parent that has it."""
        rule = COPIED if self._turns.is_left else ""
        rule = _SUBAGENT if self._turns.is_agents else rule
        return self._message(
            role, text, keys, offset, kind=kind, rule=rule, call=call, call_name=call_name
        )

    def _message(
        self,
        role: Role,
        text: str,
        keys: tuple[bytes, ...],
        offset: int,
        *,
        kind: str = "",
        rule: str = "",
        call: bytes | None = None,
        call_name: str = "",
    ) -> Message:
        return Message(
            role, text, keys, offset,
            at=self._turns.at, kind=kind, rule=rule, cwd=self.cwd, session=self.session,
            call=call, call_name=call_name,
        )  # fmt: skip

    def _left_out(self, offset: int, rule: str, text: str = "") -> Message:
        key = record_key(SOURCE, "noise", self.session, offset, digest(text))
        return self._message(Role.NOISE, text, (key,) if text else (), offset, rule=rule)
