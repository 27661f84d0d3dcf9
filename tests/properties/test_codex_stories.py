"""Random Codex homes: every prompt that a human gave is stored once (R1, R3).

The model is a count of the words; what is random: modes, kinds of turn ids, forks of forks at any
point, how the files appear and grow, the order of reading, restarts, moves, compression.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.capturing import Capturing
from tests.transcripts.codex_builder import ABORTED, AGENTS, ENVIRONMENT, MODES, Rollout, packed
from watcher.debts import call_in
from watcher.disk import Disk

_PHRASES = [
    "go on",
    "yes",
    "fix the tests",
    "  indented\r\n\nand more ",
    "はい",
    "see \u2028 there",
]
_SETTINGS = settings(
    max_examples=60,
    deadline=None,  # it writes to disk
    suppress_health_check=[HealthCheck.too_slow],
)


@dataclass
class Home:
    """Rollouts that tell of one piece of work, and the words in them."""

    chance: random.Random
    turns: str  # what kind of ids they have: uuid, counter or none
    rollouts: list[Rollout] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)
    _calls: int = 0

    def fill(self) -> None:
        mode = self.chance.choice(MODES)
        self.rollouts.append(Rollout(1, mode=mode))
        self._work(self.rollouts[0])
        for number in range(2, 2 + self.chance.randint(0, 3)):
            origin = self.chance.choice(self.rollouts)
            fork = origin.fork(number, restamped=self.chance.random() < 0.8)
            self.rollouts.append(fork)
            for rollout in self.chance.sample(self.rollouts, self.chance.randint(1, number)):
                self._work(rollout)

    def _work(self, rollout: Rollout) -> None:
        for _ in range(self.chance.randint(0, 3)):
            self._turn(rollout)

    def _turn(self, rollout: Rollout) -> None:
        turn = sum(record["type"] == "turn_context" for record in rollout.records) + 1
        rollout.turn({"uuid": "", "counter": f"turn-{turn}", "none": None}[self.turns])
        rollout.item_first = self.chance.random() < 0.5
        if self.chance.random() < 0.3:
            rollout.message("user", AGENTS, ENVIRONMENT)
        for _ in range(self.chance.choice([1, 1, 1, 2])):
            words = self.chance.choice(_PHRASES)
            rollout.ask(words)
            self.words[words] += 1
        for _ in range(self.chance.randint(0, 2)):
            self._calls += 1
            rollout.answer("I look.").call(f"c{self._calls}").result(f"c{self._calls}", "r")
        # Items alone, without a turn's id, do not tell a first prompt that is typed again from one
        # that Codex repeats.
        is_told = rollout.mode != "items" or self.turns != "none"
        if is_told and self.chance.random() < 0.2:
            rollout.event("turn_aborted").message("user", ABORTED)
        else:
            rollout.answer(self.chance.choice(["Done.", "Yes."])).event("task_complete")
        if self.chance.random() < 0.2:
            rollout.line("compacted", {"replacement_history": [{"role": "user", "content": "x"}]})


def _check(capturing: Capturing, home: Home) -> None:
    capturing.check()
    assert Counter(capturing.prompts()) == home.words


def _settle(capturing: Capturing) -> None:
    """What the daemon does at its next scan: nothing is owed that a file has."""
    for path in call_in(capturing.palace, capturing.config, Disk()):
        capturing.read(Path(path), reread=True)


def _sessions(capturing: Capturing) -> list[tuple[str, str]]:
    return sorted((row["session"], str(row["records"])) for row in capturing.rows())


class TestHomesAtRest:
    """All files are there, whatever ids their turns have: any order, any words the same."""

    @_SETTINGS
    @given(
        chance=st.randoms(use_true_random=False), turns=st.sampled_from(["uuid", "counter", "none"])
    )
    def test_each_prompt_is_stored_once(self, chance, turns):
        home = Home(chance, turns)
        home.fill()
        with TemporaryDirectory() as folder:
            paths = [
                one.write(Path(folder), chance.choice(["sessions/2026/03/01", "archived_sessions"]))
                for one in home.rollouts
            ]
            seen = []
            for number in range(2):
                chance.shuffle(paths)
                with Capturing(Path(folder) / f"palace-{number}") as capturing:
                    for path in paths:
                        capturing.read(path, cold=chance.random() < 0.5)
                    capturing.read_ok(*paths)
                    _settle(capturing)
                    _check(capturing, home)
                    seen.append((capturing.words(), _sessions(capturing)))
            assert seen[0] == seen[1]


class TestHomesThatGrow:
    """Files appear in any order, grow, move and are compressed: no prompt is lost or doubled."""

    @_SETTINGS
    @given(chance=st.randoms(use_true_random=False))
    def test_each_prompt_is_stored_once(self, chance):
        home = Home(chance, "uuid")
        home.fill()
        with TemporaryDirectory() as folder:
            self._tell(home, Path(folder))

    def _tell(self, home: Home, folder: Path) -> None:
        chance = home.chance
        left = {one.name: one.bytes() for one in home.rollouts}
        places: dict[str, Path] = {}
        with Capturing(folder / "palace") as capturing:
            while left:
                name = chance.choice(sorted(left))
                path = places.setdefault(name, folder / "sessions" / name)
                path.parent.mkdir(parents=True, exist_ok=True)
                cut = chance.choice([len(left[name]), chance.randint(1, len(left[name]))])
                with path.open("ab") as file:
                    file.write(left[name][:cut])
                left[name] = left[name][cut:]
                if not left[name]:
                    del left[name]
                capturing.read(path, cold=chance.random() < 0.5)
                if name not in left:
                    self._put_away(capturing, chance, places, name)
                if chance.random() < 0.3:
                    capturing.again()
            capturing.read_ok(*places.values())
            _settle(capturing)
            _check(capturing, home)
            before = _sessions(capturing)
            capturing.again()
            capturing.read_ok(*places.values())
            assert _sessions(capturing) == before  # reading twice changes nothing

    def _put_away(
        self, capturing: Capturing, chance: random.Random, places: dict[str, Path], name: str
    ) -> None:
        path = places[name]
        if chance.random() < 0.3:
            archive = path.parent.parent / "archived_sessions"
            archive.mkdir(exist_ok=True)
            path = path.rename(archive / name)
            capturing.read(path)
        if chance.random() < 0.3:
            twin = path.with_name(name + ".zst")
            twin.write_bytes(packed(path.read_bytes()))
            if chance.random() < 0.5:
                capturing.read(twin)
            path.unlink()
            path = twin
            capturing.read(path)
        places[name] = path
