"""Claude Code lines made by hand, and a model of what the palace must hold of them.

Owns: how a test writes a session, and `Story`: random turns whose outcome is known beforehand.
Never: imports the code under test, so that the model cannot share its mistakes.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

CWD = "/home/ada/shop"
KEPT = 2000  # characters of a call and of a result, `mining.tool_chars`
_BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)
_SOME = (
    "why is the basket empty after login cookie expired session тест 設定を確認する a\u2028b "
    'retry😀 \\n\\t "quoted" {"type":"user"} naïve <b>tag</b> end.'
)
_WORDS = _SOME.split(" ")

Record = tuple[str, str, int]  # role, text, microseconds since 1970


def uuid(session: int, number: int) -> str:
    return f"{session:08x}-0000-4000-8000-{number:012x}"


class Lines:
    """The lines of one session. Every one has an id and a time of its own."""

    def __init__(self, session: int = 1, *, cwd: str | None = CWD) -> None:
        self.number = session
        self.session = uuid(session, 0)
        self.cwd = cwd
        self.at = 0  # of the line made last
        self._count = 0
        self._call = ""
        self._clock = _BEGIN + timedelta(days=session)

    def line(self, kind: str, **fields: Any) -> bytes:
        """One line; a field that is None is left out."""
        self._count += 1
        self._clock += timedelta(milliseconds=1250)
        self.at = int(self._clock.timestamp() * 1000) * 1000
        record = {
            "type": kind, "uuid": uuid(self.number, self._count), "cwd": self.cwd,
            "sessionId": self.session, "version": "2.1.42", **fields,
            "timestamp": self._clock.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }  # fmt: skip
        kept = {name: value for name, value in record.items() if value is not None}
        return json.dumps(kept, ensure_ascii=False).encode() + b"\n"

    def prompt(self, text: str, **fields: Any) -> bytes:
        return self.line("user", message={"role": "user", "content": text}, **fields)

    def answer(self, text: str, **fields: Any) -> bytes:
        return self._assistant({"type": "text", "text": text}, **fields)

    def thinking(self, text: str) -> bytes:
        return self._assistant({"type": "thinking", "thinking": text})

    def call(self, name: str, given: dict[str, Any]) -> bytes:
        self._call = f"toolu_{self.number}_{self._count}"
        return self._assistant({"type": "tool_use", "id": self._call, "name": name, "input": given})

    def result(self, text: str) -> bytes:
        """Of the call made last."""
        block = {"type": "tool_result", "tool_use_id": self._call, "content": text}
        return self.line("user", message={"role": "user", "content": [block]})

    def queue(self, operation: str, text: str | None = None) -> bytes:
        """`enqueue`, `dequeue`, `remove`, `popAll`: such lines name no folder and have no id."""
        return self.line("queue-operation", operation=operation, content=text, cwd=None, uuid=None)

    def attachment(self, text: str) -> bytes:
        return self.line("attachment", attachment={"type": "queued_command", "prompt": text})

    def _assistant(self, block: dict[str, Any], **fields: Any) -> bytes:
        message = {"id": f"msg_{self.number}_{self._count}", "role": "assistant"}
        return self.line("assistant", message={**message, "content": [block]}, **fields)


@dataclass(slots=True)
class Exchange:
    """What the palace must hold of one: its records in order of arrival."""

    records: list[Record] = field(default_factory=list)


class Story:
    """A session that goes on for as long as it is asked to; `exchanges` is the whole truth."""

    def __init__(self, session: int, seed: int) -> None:
        self.lines = Lines(session)
        self.exchanges: list[Exchange] = []
        self._random = random.Random(seed * 1000 + session)

    def turn(self) -> list[bytes]:
        """The lines of one more turn."""
        kinds = (self._plain, self._plain, self._with_tools, self._steered, self._run_later)
        return self._random.choice([*kinds, self._attached])()

    def truth(self) -> list[list[Record]]:
        return [exchange.records for exchange in self.exchanges]

    # --- the kinds of turn ------------------------------------------------------------------------

    def _plain(self) -> list[bytes]:
        text = self._random.choice(["yes", "go on", "", "", ""]) or self._text(400)
        return [self._prompt(text), *self._answers(3)]

    def _with_tools(self) -> list[bytes]:
        made = [self._prompt(self._text(80)), *self._answers(1)]
        for _ in range(self._random.randint(1, 4)):
            made += [self._call(), self._result(), *self._answers(1)]
        return made

    def _steered(self) -> list[bytes]:
        """Typed while a tool runs, and handed to the running turn."""
        words = self._random.choice(["no, the other one", self._text(60)])
        made = [self._prompt(self._text(80)), self._call()]
        made.append(self.lines.queue("enqueue", words))
        at = self.lines.at
        made += [self._result(), self.lines.queue("remove", words)]
        self._open("HUMAN", words, at)
        return [*made, *self._answers(2)]

    def _run_later(self) -> list[bytes]:
        """Typed during an answer, run as the next prompt."""
        words = self._random.choice(["and now the tests", self._text(60)])
        made = [self._prompt(self._text(80)), *self._answers(1)]
        made.append(self.lines.queue("enqueue", words))
        at = self.lines.at
        made += [*self._answers(1), self.lines.queue("dequeue"), self.lines.prompt(words)]
        self._open("HUMAN", words, at)
        return [*made, *self._answers(2)]

    def _attached(self) -> list[bytes]:
        """Typed while the agent works, carried by an attachment."""
        words = self._text(60)
        made = [self._prompt(self._text(80)), self.lines.queue("enqueue", words)]
        at = self.lines.at
        made.append(self.lines.attachment(words))
        self._open("HUMAN", words, at)
        return [*made, *self._answers(2)]

    # --- records ----------------------------------------------------------------------------------

    def _prompt(self, text: str) -> bytes:
        line = self.lines.prompt(text)
        self._open("HUMAN", text, self.lines.at)
        return line

    def _open(self, role: str, text: str, at: int) -> None:
        self.exchanges.append(Exchange([(role, text, at)]))

    def _answers(self, most: int) -> list[bytes]:
        return [self._answer() for _ in range(self._random.randint(1, most))]

    def _answer(self) -> bytes:
        text = self._text(self._random.choice([40, 300, 3000]))
        line = self.lines.answer(text)
        self.exchanges[-1].records.append(("ASSISTANT", text, self.lines.at))
        return line

    def _call(self) -> bytes:
        given = {"command": self._text(self._random.choice([20, 4000]))}
        line = self.lines.call("Bash", given)
        compact = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
        self.exchanges[-1].records.append(("CALL", cut("Bash " + compact), self.lines.at))
        return line

    def _result(self) -> bytes:
        text = self._text(self._random.choice([20, 1000, 12_000]))
        line = self.lines.result(text)
        self.exchanges[-1].records.append(("RESULT", cut(text), self.lines.at))
        return line

    def _text(self, length: int) -> str:
        """Words of every script, and a number, so that hardly two texts are the same."""
        words = [self._random.choice(_WORDS) for _ in range(max(1, length // 7))]
        return f"{' '.join(words)} {self._random.randrange(10**9)}"


def cut(text: str) -> str:
    """What is kept of a call or a result."""
    return (
        text if len(text) <= KEPT else f"{text[:KEPT]} [… {len(text) - KEPT} characters left out]"
    )
