"""Rollouts of Codex, written line by line.

Owns: the shapes of their records in every mode, and a clock and ids that are the same in every run.
Never: asserts anything.
Called by: the tests of the Codex format, the properties of its homes, the benchmark.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath
from typing import Any

import zstandard

from mempalace.model import Message
from mempalace.transcripts.base import no_relatives
from mempalace.transcripts.codex import Codex, CodexFold
from tests.transcripts.builder import Read, line_of

Record = dict[str, Any]
MODES = ["legacy", "paginated", "items", "events"]
MORNING = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ENVIRONMENT = "<environment_context>\n  <cwd>/repo/shop</cwd>\n</environment_context>"
AGENTS = "# AGENTS.md instructions for /repo/shop\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>"
SKILL = "<skill>\n<name>review</name>\n<path>/s/SKILL.md</path>\nLook twice.\n</skill>"
ABORTED = "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>"


def stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def uuid7(at: datetime, number: int) -> str:
    """A version 7 UUID that was born at that moment."""
    born = f"{int(at.timestamp() * 1000):012x}"
    return f"{born[:8]}-{born[8:]}-7000-8000-{number:012x}"


class Rollout:
    """`Rollout(1).turn().ask("hello").answer("hi").records`: each method adds lines and gives it
    back. `mode` is legacy (events and items), paginated (completed items and items), items, or
    events."""

    def __init__(
        self, number: int = 1, *, at: datetime | None = None, mode: str = "legacy", **meta: Any
    ) -> None:
        self.now = at or MORNING + timedelta(hours=number)
        self.began = self.now
        self.session = uuid7(self.now, number)
        self.mode = mode
        self.records: list[Record] = []
        self.item_first = False
        self._number = number
        self._turns = 0
        self._meta = {
            "id": self.session, "timestamp": stamp(self.now), "cwd": "/repo/shop",
            "originator": "codex_cli_rs", "cli_version": "0.130.0", "source": "cli", **meta,
        }  # fmt: skip
        self.line("session_meta", {k: v for k, v in self._meta.items() if v is not ...})

    # --- lines ------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> Rollout:
        self.now += timedelta(seconds=seconds)
        return self

    def line(self, kind: str, payload: Any, **beside: Any) -> Rollout:
        self.records.append({"timestamp": stamp(self.now), "type": kind, "payload": payload,
                             **beside})  # fmt: skip
        self.now += timedelta(milliseconds=10)
        return self

    def event(self, kind: str, /, **fields: Any) -> Rollout:
        return self.line("event_msg", {"type": kind, **fields})

    def item(self, kind: str, /, **fields: Any) -> Rollout:
        return self.line("response_item", {"type": kind, **fields})

    def turn(self, turn: str | None = "", *, cwd: str = "/repo/shop") -> Rollout:
        """A new turn after half a minute; `turn` is its id, None for versions that had none."""
        self.wait(30)
        self._turns += 1
        name = turn or uuid7(self.now, self._number * 100 + self._turns)
        named = {} if turn is None else {"turn_id": name}
        if turn is not None:
            self.event("task_started", **named)
        return self.line("turn_context", {**named, "cwd": cwd, "model": "m"})

    def message(self, role: str, *texts: str, **fields: Any) -> Rollout:
        kind = "output_text" if role == "assistant" else "input_text"
        blocks = [{"type": kind, "text": text} for text in texts]
        return self.item("message", role=role, content=blocks, **fields)

    def ask(self, text: str, **fields: Any) -> Rollout:
        """A prompt, with its mirror in the rollout's mode."""
        ways: list[Callable[[], Rollout]] = [lambda: self.message("user", text, **fields)]
        if self.mode in ("legacy", "events"):
            ways.insert(0, lambda: self.event("user_message", message=text, images=[]))
        if self.mode == "paginated":
            content = [{"type": "text", "text": text, "text_elements": []}]
            ways.insert(0, lambda: self.completed("UserMessage", content=content))
        self._write(ways)
        return self

    def answer(self, text: str) -> Rollout:
        ways: list[Callable[[], Rollout]] = [lambda: self.message("assistant", text)]
        if self.mode in ("legacy", "events"):
            ways.insert(0, lambda: self.event("agent_message", message=text))
        if self.mode == "paginated":
            content = [{"type": "Text", "text": text}]
            ways.insert(0, lambda: self.completed("AgentMessage", content=content))
        self._write(ways)
        return self

    def _write(self, ways: list[Callable[[], Rollout]]) -> None:
        if self.mode == "events":
            ways = ways[:1]
        for way in reversed(ways) if self.item_first else ways:
            way()

    def completed(self, kind: str, /, **fields: Any) -> Rollout:
        return self.event("item_completed", thread_id=self.session, item={"type": kind, **fields})

    def call(self, call_id: str, name: str = "exec_command", **given: Any) -> Rollout:
        return self.item("function_call", name=name, call_id=call_id, arguments=json.dumps(given))

    def result(self, call_id: str, output: Any) -> Rollout:
        return self.item("function_call_output", call_id=call_id, output=output)

    # --- copies -----------------------------------------------------------------------------------

    def fork(self, number: int, *, restamped: bool = True, **meta: Any) -> Rollout:
        """`codex fork` of what is here now: its header, then all these lines, stamped anew."""
        other = Rollout(number, at=self.now + timedelta(minutes=5), mode=self.mode,
                        forked_from_id=self.session, **meta)  # fmt: skip
        for record in self.records:
            made = copy.deepcopy(record)
            if restamped:
                made["timestamp"] = stamp(other.now)
                other.now += timedelta(milliseconds=1)
            other.records.append(made)
        return other

    # --- files ------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return f"rollout-{self.began:%Y-%m-%dT%H-%M-%S}-{self.session}.jsonl"

    def lines(self) -> list[bytes]:
        return [line_of(record) for record in self.records]

    def bytes(self) -> bytes:
        return b"".join(self.lines())

    def write(self, home: Path, folder: str = "sessions/2026/03/01", *, name: str = "") -> Path:
        path = home / folder / (name or self.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = self.bytes()
        path.write_bytes(packed(content) if path.suffix == ".zst" else content)
        return path

    def read(self, **given: Any) -> Read:
        return read(self.records, f"/h/sessions/{self.name}", **given)


def packed(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(content)


def read(
    records: Iterable[Any], path: str = "/h/sessions/rollout-x.jsonl", *, turns: Any = None
) -> Read:
    """What the format reads in these records, through its state after each of them; `turns` are
    those of files at hand, by session."""
    known = no_relatives if turns is None else turns.get
    reader = Codex().fold(PurePath(path), {}, {}, known)
    messages: list[Message] = []
    for number, record in enumerate(records):
        messages += reader.step(record, number)
        reader = restarted(reader, path, known)
    return Read(messages + reader.finish())


def restarted(reader: CodexFold, path: str, known: Any = no_relatives) -> CodexFold:
    """As if the process had ended here: only what is stored goes on."""
    return Codex().fold(PurePath(path), json.loads(json.dumps(reader.state())), {}, known)


def call_key(read_: Read, name: str) -> bytes:
    """The key of the first call of that tool."""
    return next(m.keys[0] for m in read_.messages if m.kind == name)


def marked(*pairs: tuple[str, str]) -> Record:
    """A user message whose blocks Codex has marked: (mark, text), an image where there is none."""
    blocks = [
        {"type": "input_text", "text": text} if text else {"type": "input_image", "image_url": "u"}
        for _, text in pairs
    ]
    kinds = [kind for kind, _ in pairs]
    return {
        "type": "message", "role": "user", "content": blocks,
        "internal_chat_message_metadata_passthrough": {"content_item_kinds": kinds},
    }  # fmt: skip
