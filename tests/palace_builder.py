"""A palace out of a few words: sessions, prompts, answers and tool calls, filed as the real ones.

Owns: how a test says what a palace holds, without a transcript.
Never: writes a row that filing would not write; asserts anything.
Called by: the tests of search, export, wake-up, status, sessions and show.

    with PalaceBuilder(home) as palace:
        shop = palace.session(cwd="/home/ada/shop", at="2026-01-10T09:00:00Z")
        shop.prompt("Why is the basket empty?").answer("The cookie expired.")
        shop.call("Read", "basket.py").result("def basket(): ...")
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType

from mempalace import config as configuration
from mempalace.config import Config
from mempalace.filing import Filing, Origin
from mempalace.ids import record_key
from mempalace.model import Message, Role
from mempalace.store import checkpoints
from mempalace.store.palace import Palace

SECOND = 1_000_000  # microseconds
SOURCE = "claude-code"


def moment(text: str) -> int:
    """Microseconds since 1970 UTC of an ISO 8601 time."""
    when = datetime.fromisoformat(text)
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * SECOND)


def session_id(number: int) -> str:
    return f"{number:08d}-0000-4000-8000-000000000000"


class PalaceBuilder:
    """Builds a palace in `home`. Sessions are filed, one transaction each, when it is left."""

    def __init__(
        self, home: str | os.PathLike[str], *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.config: Config = configuration.load(
            {**os.environ, "MEMPALACE_HOME": os.fspath(home), **(environment or {})}
        )
        self.palace = Palace.writer(home, create=True)
        self._sessions: list[SessionBuilder] = []

    def __enter__(self) -> PalaceBuilder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, where: TracebackType | None
    ) -> None:
        if kind is None:
            self.file()
        self.palace.close()

    def session(
        self,
        session: str = "",
        *,
        cwd: str | None = "/home/ada/shop",
        at: str | None = "2026-01-10T09:00:00Z",
        path: str = "",
        source: str = SOURCE,
    ) -> SessionBuilder:
        """A session whose first record is said at `at` (None: no record has a time)."""
        name = session or session_id(len(self._sessions) + 1)
        path = path or f"/home/ada/.claude/projects/p/{name}.jsonl"
        made = SessionBuilder(name, cwd, None if at is None else moment(at), path, source)
        self._sessions.append(made)
        return made

    def file(self) -> None:
        """File what was said since the last time."""
        for session in self._sessions:
            if not session.messages:
                continue
            with self.palace.transaction() as db:
                file = checkpoints.create(db, session.path, session.source)
                origin = Origin(file, session.path, 0, session.source, 1, session.cwd)
                filing = Filing(db, self.config, origin, session.state, now=0)
                filing.file(session.messages)
                session.state = filing.close()
                session.messages = []

    def execute(self, statement: str, *values: object) -> None:
        """For what filing cannot make happen yet: importance, rooms, a second content."""
        with self.palace.transaction() as db:
            db.execute(statement, values)


@dataclass
class SessionBuilder:
    """Says one record after the other; each is a second and a hundred bytes behind the last."""

    id: str
    cwd: str | None
    at: int | None
    path: str
    source: str
    messages: list[Message] = field(default_factory=list)
    state: dict[str, str] = field(default_factory=dict)
    offset: int = 0
    last_key: bytes = b""
    call_keys: dict[str, bytes] = field(default_factory=dict)

    def prompt(self, text: str, *, at: str | None = None, kind: str = "typed") -> SessionBuilder:
        return self._say(Role.HUMAN, text, at=at, kind=kind)

    def answer(self, text: str, *, at: str | None = None) -> SessionBuilder:
        return self._say(Role.ASSISTANT, text, at=at)

    def abandon(self) -> SessionBuilder:
        """The conversation goes on without the last answer."""
        return self._say(Role.SUPERSEDED, "", key=self.last_key)

    def retract(self) -> SessionBuilder:
        """The author takes the last prompt back: it is retired."""
        return self._say(Role.RETRACTED, "", key=self.last_key)

    def call(self, name: str, text: str, *, tag: str = "") -> SessionBuilder:
        self._say(Role.CALL, text, kind=name)
        self.call_keys[tag] = self.last_key
        return self

    def result(self, text: str, *, tag: str | None = "") -> SessionBuilder:
        """The result of the last call, of the one that was given `tag`, or (None) of none."""
        call = None if tag is None else self.call_keys[tag]
        return self._say(Role.RESULT, text, call=call)

    def says(self, text: str) -> SessionBuilder:
        """Human words inside the result of the last call."""
        return self._say(Role.SAID, text, call=self.call_keys[""])

    def _say(
        self,
        role: Role,
        text: str,
        *,
        at: str | None = None,
        kind: str = "",
        key: bytes = b"",
        call: bytes | None = None,
    ) -> SessionBuilder:
        if at is not None:
            self.at = moment(at)
        key = key or record_key(self.source, self.id, self.offset, text)
        self.messages.append(
            Message(
                role,
                text,
                (key,),
                self.offset,
                at=self.at,
                kind=kind,
                cwd=self.cwd,
                session=self.id,
                call=call,
            )
        )
        self.last_key = key
        self.offset += 100
        if self.at is not None:
            self.at += SECOND
        return self
