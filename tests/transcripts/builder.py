"""Sessions of Claude Code, written line by line.

Owns: the shapes of its records, and a clock and uuids that are the same in every run.
Never: asserts anything.
Called by: the tests of the Claude Code format and the properties of reading.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any

from mempalace.ids import digest
from mempalace.model import Message, Role
from mempalace.transcripts.claude_code import ClaudeCode, ClaudeFold

MAIN = "5f0c7a60-0000-4000-8000-0000000000a1"
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was"
    " a file edit, the new_string was NOT written to the file). To tell you how to proceed, the"
    " user said:\n"
)
Record = dict[str, Any]


class Session:
    """`Session().user("hello").text("hi").records`: each method adds a line and gives it back."""

    def __init__(self, session: str = MAIN, *, cwd: str = "/repo/shop") -> None:
        self.session = session
        self.cwd = cwd
        self.records: list[Record] = []
        self._count = 0
        self._parent: str | None = None

    # --- lines ------------------------------------------------------------------------------------

    def add(self, kind: str, **fields: Any) -> Session:
        """Any line, with no field that is not given."""
        self.records.append({"type": kind, **fields})
        return self

    def line(self, kind: str, message: Any, **fields: Any) -> Session:
        """A line of the conversation, hung on the one before."""
        uuid = f"{digest(f'{self.session} {self._count}')[:8]}-0000-4000-8000-{self._count:012x}"
        record = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.40",
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": self.tick(),
            **fields,
        }
        self._parent = record["uuid"]
        self.records.append({name: value for name, value in record.items() if value is not ...})
        return self

    def user(self, content: Any, **fields: Any) -> Session:
        return self.line("user", {"role": "user", "content": content}, **fields)

    def text(self, text: str, *, message: str = "", **fields: Any) -> Session:
        return self.answer([{"type": "text", "text": text}], message=message, **fields)

    def answer(self, blocks: Any, *, message: str = "", model: str = "m", **fields: Any) -> Session:
        body = {"id": message or f"msg_{self.session[-2:]}_{self._count}", "model": model}
        return self.line("assistant", {**body, "role": "assistant", "content": blocks}, **fields)

    def call(self, tool: str, *, name: str = "Bash", message: str = "", **given: Any) -> Session:
        block = {"type": "tool_use", "id": tool, "name": name, "input": given}
        return self.answer([block], message=message)

    def result(self, tool: str, text: Any, *beside: str, **fields: Any) -> Session:
        blocks: list[Record] = [{"type": "tool_result", "tool_use_id": tool, "content": text}]
        blocks += [{"type": "text", "text": more} for more in beside]
        return self.user(blocks, **{"toolUseResult": text, **fields})

    def queue(self, operation: str, content: str | None = None, **fields: Any) -> Session:
        words = {} if content is None else {"content": content}
        return self.add(
            "queue-operation",
            operation=operation,
            timestamp=self.tick(),
            sessionId=self.session,
            **words,
            **fields,
        )

    def attachment(self, prompt: Any, *, mode: str = "prompt", **body: Any) -> Session:
        inner = {"type": "queued_command", "prompt": prompt, "commandMode": mode, **body}
        self.line("attachment", ..., attachment=inner)
        return self

    def interrupt(self) -> Session:
        return self.user([{"type": "text", "text": "[Request interrupted by user]"}])

    # --- what becomes of them ---------------------------------------------------------------------

    def tick(self) -> str:
        self._count += 1
        return (
            f"2026-02-01T10:{self._count // 60:02}:{self._count % 60:02}.{self._count % 1000:03}Z"
        )

    def copied(self, *, session: str, anew: bool = False) -> Session:
        """The same records in another file: a fork, or `anew` a resume with new uuids."""
        other = Session(session, cwd=self.cwd)
        other._count = self._count + 400 * (1 + int(session[-2:], 16) % 7)  # another time
        other._parent = self._parent
        for record in self.records:
            if "uuid" not in record:
                continue  # such lines are not copied
            made = {**copy.deepcopy(record), "sessionId": session}
            if anew:
                made["uuid"] = _anew(made["uuid"], session)
                made["parentUuid"] = made["parentUuid"] and _anew(made["parentUuid"], session)
                if record["type"] == "assistant":
                    made["timestamp"] = "2026-02-02T08:00:00.000Z"
            other.records.append(made)
            other._parent = made["uuid"]
        return other

    def lines(self) -> list[bytes]:
        return [line_of(record) for record in self.records]

    def bytes(self) -> bytes:
        return b"".join(self.lines())

    def write(self, folder: Path, name: str = "") -> Path:
        path = folder / f"{name or self.session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.bytes())
        return path

    def read(self, path: str = "", *, cold: bool = True) -> Read:
        return Read(fold(self.records, path or f"/p/{self.session}.jsonl", cold=cold))


class Read:
    """The messages of a session, asked for by what a reader wants to know."""

    def __init__(self, messages: list[Message]) -> None:
        self.messages = messages
        known: dict[bytes, int] = {}
        self.distinct: list[Message] = []
        self._gone: set[int] = set()
        for message in messages:
            found = [known[key] for key in message.keys if key in known]
            if message.role is Role.RETRACTED:
                self._gone.update(found)
                continue
            place = found[0] if found else len(self.distinct)
            if not found:
                self.distinct.append(message)
            known.update(dict.fromkeys(message.keys, place))

    def of(self, *roles: Role) -> list[Message]:
        """The records of these roles that no rule leaves out, each once."""
        return [
            message
            for place, message in enumerate(self.distinct)
            if message.role in roles and not message.rule and place not in self._gone
        ]

    @property
    def prompts(self) -> list[str]:
        return [message.text for message in self.of(Role.HUMAN)]

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(message.kind, message.text) for message in self.of(Role.HUMAN)]

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.of(Role.ASSISTANT)]

    @property
    def said(self) -> list[str]:
        return [message.text for message in self.of(Role.SAID)]

    @property
    def rules(self) -> list[str]:
        return [message.rule for message in self.messages if message.rule]


def fold(records: Iterable[Record], path: str, *, cold: bool = True) -> list[Message]:
    """What the format reads in these records, through its state after each of them."""
    reader = ClaudeCode().fold(PurePath(path), {}, {})
    messages: list[Message] = []
    for number, record in enumerate(records):
        messages += reader.step(record, number)
        reader = restarted(reader, path)
    return messages + (reader.finish() if cold else [])


def restarted(reader: ClaudeFold, path: str) -> ClaudeFold:
    """As if the process had ended here: only what is stored goes on."""
    state = json.loads(json.dumps(reader.state()))
    return ClaudeCode().fold(PurePath(path), state, dict(reader.waiting))


def _anew(uuid: str, session: str) -> str:
    return digest(uuid + session)[:8] + uuid[8:]


def line_of(record: Any) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
