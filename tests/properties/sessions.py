"""Random sessions, with a model of the words that a careful reader finds in them.

Owns: the moves that a session is made of, and what each must leave in the palace.
Called by: tests/properties/test_reading.py, tests/properties/test_forgetting.py.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from tests.transcripts.builder import REJECTED, Session

Words = Counter[tuple[str, str]]
_PHRASES = [
    "go on",
    "yes",
    "fix the tests",
    "see U+2028: \u2028 there",
    "  indented\r\nand more ",
    "はい",
]


@dataclass
class Story:
    """Files that tell of one piece of work, and its words."""

    files: list[Session]
    words: Words = field(default_factory=Counter)


class Teller:
    """Makes a story of random moves; where `distinct`, no words are said twice."""

    def __init__(self, chance: random.Random, *, distinct: bool = False) -> None:
        self._random = chance
        self._tools = 0
        self._is_distinct = distinct
        self._said = 0

    def story(self) -> Story:
        story = Story([Session(self._session(0))])
        for _ in range(self._random.randint(3, 9)):
            self._turn(story, story.files[0])
        for n in range(self._random.randint(0, 2)):
            origin = self._random.choice(story.files)
            copy = origin.copied(session=self._session(n + 1), anew=self._random.random() < 0.5)
            story.files.append(copy)
            for _ in range(self._random.randint(0, 2)):
                self._turn(story, copy)
        if self._random.random() < 0.3:  # a second /compact appends what is there already
            first = story.files[0]
            first.records += [r for r in first.records if "uuid" in r][: self._random.randint(1, 6)]
        return story

    def _session(self, n: int) -> str:
        return f"5f0c7a60-0000-4000-8000-0000000000a{n}"

    def _turn(self, story: Story, session: Session) -> None:
        self._hear(story, session.user, "HUMAN")
        for _ in range(self._random.randint(0, 3)):
            move = self._random.choice(
                [self._answer, self._tool, self._tool, self._steer, self._noise, self._side]
            )
            move(story, session)
        self._answer(story, session)

    def _words(self, choices: list[str]) -> str:
        words = self._random.choice(choices)
        self._said += 1
        return f"{words} zq{self._said:03}x" if self._is_distinct else words

    def _hear(self, story: Story, tell, role: str) -> str:
        words = self._words(_PHRASES)
        tell(words)
        story.words[(role, words)] += 1
        return words

    def _answer(self, story: Story, session: Session) -> None:
        message = f"msg_{session.session[-2:]}_{len(session.records)}"
        words = self._words(["Done.", "I look at it.", "はい。"])
        if self._random.random() < 0.3:
            session.text(words[:2], message=message, parentUuid="p")
            session.text(words, message=message, parentUuid="p")
        else:
            session.text(words, message=message)
        story.words[("ASSISTANT", words)] += 1

    def _tool(self, story: Story, session: Session) -> None:
        self._tools += 1
        tool = f"toolu_{self._tools}"
        session.call(tool, name="Edit", file_path="a.py")
        choice = self._random.random()
        if choice < 0.2:
            words = self._words(["not like that"])
            session.result(tool, REJECTED + words)
            story.words[("SAID", words)] += 1
        elif choice < 0.4:
            self._hear(story, lambda words: session.result(tool, "ok", words), "HUMAN")
            self._answer(story, session)  # an equal text that is queued next is no mirror of it
        else:
            session.result(tool, "ok")

    def _steer(self, story: Story, session: Session) -> None:
        words = self._words(_PHRASES)
        ways: list[list[tuple[str, str | None]]] = [
            [("enqueue", words), ("remove", None)],
            [("enqueue", words), ("remove", words)],
            [("enqueue", words), ("remove", words), ("attachment", words)],
            [("enqueue", words), ("attachment", words), ("remove", words)],
            [("enqueue", words), ("dequeue", None), ("user", words)],
            [("enqueue", words), ("dequeue", None)],
            [("remove", words), ("attachment", words)],
            [("attachment", words)],
        ]
        for kind, said in self._random.choice(ways):
            if kind == "attachment":
                session.attachment(said)
            elif kind == "user":
                session.user(said)
            else:
                session.queue(kind, said)
        story.words[("HUMAN", words)] += 1
        self._answer(story, session)

    def _noise(self, story: Story, session: Session) -> None:
        noise = self._random.choice(
            [
                lambda: session.user("<local-command-stdout>x</local-command-stdout>"),
                lambda: session.user("go on", isMeta=True),
                lambda: session.user("go on", origin={"kind": "hook"}),
                lambda: session.text("API Error", isApiErrorMessage=True),
                lambda: session.queue("enqueue", "half a thou").queue("popAll", "half a thou"),
                lambda: session.queue("enqueue", "<task-notification>x").queue("dequeue"),
                lambda: session.add("summary", summary="go on", leafUuid="u"),
            ]
        )
        noise()

    def _side(self, story: Story, session: Session) -> None:
        session.user("search", isSidechain=True).text("Found.", isSidechain=True)
