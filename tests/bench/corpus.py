"""Made-up Claude Code sessions of the shape and size of real ones.

Per session, as measured on 144 public sessions (median): 163,000 characters, 80 % of it tool calls
and results; 8 exchanges; 43 drawers of talk, about 240 with tools.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

_SYLLABLES = re.findall("..", "katorimishunevolapedrogantelburfizoquinastmerulixbaduso")
_COMMON = re.findall(
    r"\w+",
    "the a to of and in is that it for on with this we should can be as file test error when "
    "function value data user call returns add fix check run use from not line code then set",
)


class Corpus:
    """Deterministic for a seed: the same sessions every time."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._start = datetime(2026, 1, 1, 8, tzinfo=UTC)
        self._rare = [self._word() for _ in range(20_000)]

    def _word(self) -> str:
        return "".join(self._random.choice(_SYLLABLES) for _ in range(self._random.randint(2, 4)))

    def text(self, characters: int) -> str:
        """Words of which some are common and most sentences hold a rare one."""
        pick, words, length = self._random, [], 0
        while length < characters:
            rare = pick.random() < 0.35
            word = pick.choice(self._rare) if rare else pick.choice(_COMMON)
            if pick.random() < 0.08:
                word += pick.choice([".\n", ".", ",", ":\n\n"])
            words.append(word)
            length += len(word) + 1
        return " ".join(words)

    def session(self, *, cwd: str, start: datetime, exchanges: int = 8) -> tuple[str, list[bytes]]:
        """A session id and its lines."""
        session_id = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        now, parent, lines = start, None, []

        def line(kind: str, message: dict, **more: object) -> None:
            nonlocal now, parent
            now += timedelta(seconds=self._random.randint(1, 40), milliseconds=7)
            own = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
            record = {
                "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": cwd,
                "sessionId": session_id, "version": "2.1.40", "gitBranch": "main", "type": kind,
                "message": message, "uuid": own,
                "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"), **more,
            }  # fmt: skip
            parent = own
            lines.append(json.dumps(record, separators=(",", ":")).encode() + b"\n")

        for _ in range(exchanges):
            line("user", {"role": "user", "content": self.text(self._random.randint(40, 900))})
            for _ in range(self._random.randint(4, 11)):
                self._step(line)
            self._say(line, self._random.randint(300, 2400))
        return session_id, lines

    def _say(self, line, characters: int) -> None:
        message_id = f"msg_{self._random.getrandbits(80):020x}"
        block = {"type": "text", "text": self.text(characters)}
        line("assistant", {"id": message_id, "role": "assistant", "content": [block]})

    def _step(self, line) -> None:
        """A remark, a tool call and its result."""
        if self._random.random() < 0.5:
            self._say(line, self._random.randint(60, 400))
        tool = f"toolu_{self._random.getrandbits(80):020x}"
        call = {
            "type": "tool_use", "id": tool, "name": self._random.choice(["Bash", "Read", "Edit"]),
            "input": {"command": self.text(self._random.randint(40, 700))},
        }  # fmt: skip
        message_id = f"msg_{self._random.getrandbits(80):020x}"
        line("assistant", {"id": message_id, "role": "assistant", "content": [call]})
        output = self.text(self._random.choice([200, 900, 1800, 4000]))
        result = {"type": "tool_result", "tool_use_id": tool, "content": output}
        line("user", {"role": "user", "content": [result]}, toolUseResult={"stdout": output})

    def write(self, projects: Path, sessions: int, *, exchanges: int = 8) -> int:
        """Sessions over twenty projects below `projects`; the bytes written."""
        total = 0
        for number in range(sessions):
            cwd = f"/home/dev/code/project-{number % 20:02d}"
            self._start += timedelta(hours=1)
            name, lines = self.session(cwd=cwd, start=self._start, exchanges=exchanges)
            folder = projects / cwd.replace("/", "-")
            folder.mkdir(parents=True, exist_ok=True)
            total += (folder / f"{name}.jsonl").write_bytes(b"".join(lines))
        return total

    def a_prompt_of(self, palace: Path) -> str:
        """The words of some prompt that was filed: something that a user would look for."""
        with sqlite3.connect(f"file:{palace / 'palace.db'}?mode=ro", uri=True) as db:
            rows = db.execute(
                "SELECT text FROM drawers WHERE stream = 0 AND position = 0 ORDER BY n LIMIT 50"
            ).fetchall()
        words = re.findall(r"[a-z]{5,}", self._random.choice(rows)[0])
        return " ".join(words[:8])
