"""What was forgotten never comes back, and nothing else goes.

Random sessions are read in random pieces; between any two reads exchanges and whole sessions are
forgotten, the process ends and begins again, files are met once more under other names or read
once more under other settings (R3, R4). The model: the words of a story are all distinct, and
a palace of its own reads the story at once to tell which words belong to one exchange.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mempalace.filing import forget as forgetting
from mempalace.store import sweep
from tests.capturing import Capturing, write
from tests.properties.sessions import Story, Teller

SPOKEN = {"HUMAN", "SAID", "ASSISTANT", "ALTERNATE"}
Word = tuple[str, str]


def spoken(row: dict) -> set[Word]:
    return {(role, text) for role, _, text, _, _ in row["records"] if role in SPOKEN}


class Reader:
    """Reads a story piece by piece, and forgets between the pieces."""

    def __init__(self, story: Story, chance: random.Random, home: Path) -> None:
        self._random = chance
        self._folder = home / "files"
        self._folder.mkdir()
        self._left = {self._folder / f"{one.session}.jsonl": one.bytes() for one in story.files}
        self._whole: list[Path] = []
        self._reads_noise = False
        self.capturing = Capturing(home / "palace")
        self.forgotten: set[Word] = set()

    def run(self) -> None:
        moves = [
            self._read, self._read, self._read, self._restart, self._copy, self._reread,
            self._forget_exchange, self._forget_exchange, self._forget_session,
        ]  # fmt: skip
        while self._left:
            self._random.choice(moves)()
        for _ in range(3):
            self._random.choice(moves[3:])()
        for path in sorted(self._folder.iterdir()):
            self._look(path)

    # --- moves ------------------------------------------------------------------------------------

    def _read(self) -> None:
        if not self._left:
            return
        path = self._random.choice(sorted(self._left))
        left = self._left[path]
        cut = self._random.randint(1, max(1, len(left) // 2))
        cut = len(left) if self._random.random() < 0.3 else cut
        with path.open("ab") as file:
            file.write(left[:cut])
        self._left[path] = left[cut:]
        if not self._left[path]:
            del self._left[path]
            self._whole.append(path)
        self._look(path, cold=self._random.random() < 0.5)

    def _look(self, path: Path, **how: bool) -> None:
        """Read. A line may tell that a prompt, stored under another name, is a forgotten one: then
        what was stored with it goes with it."""
        before = {row["id"]: spoken(row) for row in self.capturing.rows()}
        self.capturing.read(path, **how)
        after = {row["id"] for row in self.capturing.rows()}
        for exchange_id, words in before.items():
            if exchange_id not in after and words & self.forgotten:
                self.forgotten |= words

    def _restart(self) -> None:
        self.capturing.again()

    def _copy(self) -> None:
        if self._whole:
            copy = self._folder / f"copy-{len(list(self._folder.iterdir()))}.jsonl"
            write(copy, [self._random.choice(self._whole).read_bytes()])
            self._look(copy)

    def _reread(self) -> None:
        """Every file from its beginning: other settings than it was read with."""
        self._reads_noise = not self._reads_noise
        self.capturing.config = replace(self.capturing.config, noise=self._reads_noise)
        self.capturing.again()
        for path in sorted(self._folder.iterdir()):
            self._look(path, cold=self._random.random() < 0.5, reread=True)

    def _forget_exchange(self) -> None:
        rows = self.capturing.rows()
        if rows:
            row = self._random.choice(rows)
            self._forget([row], forgetting.these([row["id"]]), whole=False)

    def _forget_session(self) -> None:
        rows = self.capturing.rows()
        if rows and self._random.random() < 0.3:
            session = self._random.choice(rows)["session"]
            choose = forgetting.whole_session("claude-code", session)
            gone = [row for row in rows if row["session"] == session]
            self.forgotten |= self._waiting(session)
            self._forget(gone, choose, whole=True)

    def _waiting(self, session: str) -> set[Word]:
        """What was typed in a session, and is not stored yet."""
        rows = self.capturing.palace.db.execute(
            "SELECT w.text FROM waiting w JOIN files f ON f.n = w.file WHERE f.path LIKE ?",
            (f"%/{session}.jsonl",),
        )
        return {("HUMAN", text) for (text,) in rows}

    def _forget(self, gone: list[dict], choose: forgetting.Choice, *, whole: bool) -> None:
        for row in gone:
            self.forgotten |= spoken(row)
        for _ in forgetting.forget(self.capturing.palace, choose, whole=whole):
            pass
        left = {row["id"] for row in self.capturing.rows()}
        assert not left & {row["id"] for row in gone}


def exchanges_of(story: Story, home: Path) -> list[set[Word]]:
    """The words that belong together, in palaces that forget nothing: one that reads all files, and
    one for each of them alone. A fork may not have copied a queued prompt; then the answers to it
    stand there behind the prompt before."""
    found = []
    for number, files in enumerate([story.files, *([one] for one in story.files)]):
        with Capturing(home / f"other-{number}") as capturing:
            for session in files:
                capturing.read(session.write(home / "reference"))
            found += [spoken(row) for row in capturing.rows()]
    return found


def tell(chance: random.Random, home: Path) -> None:
    story = Teller(chance, distinct=True).story()
    reader = Reader(story, chance, home)
    with reader.capturing as capturing:
        reader.run()
        capturing.check()
        words = Counter(capturing.words())
        assert not reader.forgotten & words.keys()  # nothing came back
        assert words.keys() <= story.words.keys()
        assert set(words.values()) <= {1}  # exactly once
        gone = set().union(*(e for e in exchanges_of(story, home) if e & reader.forgotten))
        assert story.words.keys() - words.keys() - reader.forgotten <= gone
        stored = capturing.palace.db.execute(
            "SELECT COUNT(*) FROM keys WHERE key IN (SELECT key FROM tombstones)"
        ).fetchone()[0]
        assert stored == 0
        for _ in sweep.sweep(capturing.palace):
            pass
        capturing.check()
    content = b"".join(p.read_bytes() for p in (home / "palace").iterdir())
    for _, text in reader.forgotten & story.words.keys():  # not the first half of an answer
        assert text.encode() not in content


class TestForgetting:
    """R4: tombstones win over every later reading. R1: all else is stored once."""

    @settings(
        max_examples=60,
        deadline=None,  # it writes to disk
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(chance=st.randoms(use_true_random=False))
    def test_what_was_forgotten_stays_away_and_all_else_is_there_once(self, chance):
        with TemporaryDirectory() as folder:
            tell(chance, Path(folder))
