"""A newer parser, or other settings, over a palace that an older one has filled.

The newer parser is the real one with one rule more: a subclass whose version is one higher, put in
the registry's place. R3: no id changes, nothing doubles. R5: text is updated in place; what was
taken for a prompt and is none is retired, and its answers go to the prompt before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import pytest

from mempalace.model import Message, Role
from mempalace.transcripts import registry
from mempalace.transcripts.base import Fold, TurnsOf, no_relatives
from tests.capturing import Capturing
from tests.faults.lines import Lines, Story
from watcher import tail

OLD = registry.FORMATS[0]
ENVELOPE = "<memo>not said by anybody</memo>\n"
NOISE = "[automatic check]"


class NewerFold:
    """The fold of today; `change` is what it has learnt."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fold, name)

    def step(self, record: dict[str, Any], offset: int) -> list[Message]:
        return [self.change(message) for message in self._fold.step(record, offset)]

    def change(self, message: Message) -> Message:
        raise NotImplementedError


class Stripping(NewerFold):
    def change(self, message: Message) -> Message:
        return replace(message, text=message.text.replace(ENVELOPE, ""))


class Doubting(NewerFold):
    def change(self, message: Message) -> Message:
        if message.role is Role.HUMAN and message.text.startswith(NOISE):
            return replace(
                message, role=Role.NOISE, rule="automatic", keys=(b"noise" + b"\0" * 11,)
            )
        return message


class Newer:
    """The format of the next version."""

    source = OLD.source
    version = OLD.version + 1

    def __init__(self, fold: type[NewerFold]) -> None:
        self._kind = fold

    def fold(
        self,
        path: PurePath,
        state: dict[str, Any],
        waiting: dict[str, str],
        turns_of: TurnsOf = no_relatives,
    ) -> NewerFold:
        return self._kind(OLD.fold(path, state, waiting, turns_of))

    def skims(self, line: bytes) -> str:
        return OLD.skims(line)

    def recognises(self, record: dict[str, Any]) -> bool:
        return OLD.recognises(record)


@pytest.fixture
def said() -> Lines:
    return Lines(1)


@pytest.fixture
def file(home: Path, said: Lines) -> Path:
    folder = home / ".claude" / "projects" / "-home-ada-shop"
    folder.mkdir(parents=True)
    return folder / f"{said.session}.jsonl"


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch):
    def put(fold: type[NewerFold]) -> None:
        newer = Newer(fold)
        monkeypatch.setattr(registry, "FORMATS", (newer,))
        monkeypatch.setattr(registry, "VERSION", newer.version)

    return put


def ids(captured: Capturing) -> set[str]:
    return {row["id"] for row in captured.rows()}


def told(captured: Capturing) -> list[list[str]]:
    """The texts of each exchange that is neither retired nor headless."""
    return [
        [text for _, _, text, _, _ in row["records"]]
        for row in captured.rows()
        if not row["retired"] and not row["headless"]
    ]


def write(path: Path, parts: Iterable[bytes]) -> None:
    path.write_bytes(b"".join(parts))


@pytest.fixture(params=["one piece", "many pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read in one transaction or in one for every line or two."""
    if request.param == "many pieces":
        monkeypatch.setattr(tail, "BLOCK", 300)


def small_pieces(captured: Capturing) -> Capturing:
    if tail.BLOCK == 300:
        captured.capture._piece = 1
        captured.capture._adapt = lambda *_: None  # type: ignore[method-assign]
    return captured


@pytest.mark.usefixtures("pieces")
class TestParser:
    def test_one_envelope_more_changes_texts_in_place_and_no_id(
        self, file, said, palace_home, upgrade
    ):
        long = "word " * 400
        write(file, [
            said.prompt(f"{ENVELOPE}first"), said.answer(f"{ENVELOPE}{long}"), said.answer("one"),
            said.prompt("second"), said.call("Bash", {"command": "ls"}),
            said.result(f"{ENVELOPE}file"), said.answer("two"),
        ])  # fmt: skip
        with small_pieces(Capturing(palace_home)) as captured:
            captured.read_ok(file)
            before = ids(captured)
            assert told(captured)[0] == [f"{ENVELOPE}first", f"{ENVELOPE}{long}", "one"]
            upgrade(Stripping)
            small_pieces(captured)
            captured.read(file, reread=True)
            captured.check()
            assert ids(captured) == before
            assert told(captured) == [
                ["first", long, "one"], ["second", 'Bash {"command":"ls"}', "file", "two"],
            ]  # fmt: skip
            drawers = captured.palace.db.execute("SELECT text FROM drawers").fetchall()
            assert not [text for (text,) in drawers if "<memo>" in text]
            hits = "SELECT COUNT(*) FROM talk WHERE talk MATCH 'anybody'"
            assert captured.palace.db.execute(hits).fetchone() == (0,)
            again = captured.rows()
            assert sum(o.bytes_read for o in captured.read(file, reread=True)) == 0
            assert captured.rows() == again

    def test_a_prompt_that_is_none_is_retired_and_its_answers_go_to_the_one_before(
        self, file, said, palace_home, upgrade
    ):
        write(file, [
            said.prompt("first"), said.answer("one"),
            said.prompt(f"{NOISE} build ok"), said.answer("two"),
            said.call("Bash", {"command": "ls"}), said.result("file"),
            said.prompt("third"), said.answer("three"),
        ])  # fmt: skip
        with small_pieces(Capturing(palace_home)) as captured:
            captured.read_ok(file)
            before = ids(captured)
            upgrade(Doubting)
            captured.read(file, reread=True)
            captured.check()
            assert ids(captured) == before
            call = ['Bash {"command":"ls"}', "file"]
            assert told(captured) == [["first", "one", "two", *call], ["third", "three"]]
            (retired,) = [row for row in captured.rows() if row["retired"]]
            assert [text for _, _, text, _, _ in retired["records"]] == [f"{NOISE} build ok"]
            captured.read(file, reread=True)
            assert told(captured) == [["first", "one", "two", *call], ["third", "three"]]
            with file.open("ab") as stream:
                stream.write(said.answer("four"))
            captured.read_ok(file)
            captured.check()
            assert told(captured)[-1] == ["third", "three", "four"]

    def test_a_first_prompt_that_is_none_leaves_its_answers_without_one(
        self, file, said, palace_home, upgrade
    ):
        write(file, [
            said.prompt(f"{NOISE} build ok"), said.answer("one"),
            said.prompt("second"), said.answer("two"),
        ])  # fmt: skip
        with small_pieces(Capturing(palace_home)) as captured:
            captured.read_ok(file)
            upgrade(Doubting)
            captured.read(file, reread=True)
            captured.check()
            assert told(captured) == [["second", "two"]]
            assert ("ASSISTANT", "one") in captured.words()

    # A prompt that was queued is told of long after the place where it was typed.
    def test_a_newer_parser_that_learnt_nothing_changes_no_row(self, file, palace_home, upgrade):
        story = Story(1, 5)
        write(file, [line for _ in range(40) for line in story.turn()])

        class Same(NewerFold):
            def change(self, message: Message) -> Message:
                return message

        with small_pieces(Capturing(palace_home)) as captured:
            captured.read_ok(file)
            before = captured.rows()
            upgrade(Same)
            captured.read(file, reread=True)
            captured.check()
            assert captured.rows() == before

    # The daemon meets a grown file of an older parser before it comes to idle work.
    def test_a_file_that_grew_meanwhile_is_read_once_more_and_on(
        self, file, said, palace_home, upgrade
    ):
        write(file, [said.prompt(f"{ENVELOPE}first"), said.answer("one")])
        with small_pieces(Capturing(palace_home)) as captured:
            captured.read_ok(file)
            upgrade(Stripping)
            with file.open("ab") as stream:
                stream.write(said.answer(f"{ENVELOPE}two") + said.prompt("second"))
            captured.read_ok(file, cold=False)
            captured.check()
            assert told(captured) == [["first", "one", "two"], ["second"]]

    # R4: the words of a file that is gone stay as they were read.
    def test_a_file_that_is_gone_keeps_what_an_older_parser_read(
        self, file, said, palace_home, upgrade
    ):
        write(file, [said.prompt(f"{ENVELOPE}first"), said.answer("one")])
        with Capturing(palace_home) as captured:
            captured.read_ok(file)
            upgrade(Stripping)
            file.unlink()
            captured.read(file, reread=True)
            assert told(captured) == [[f"{ENVELOPE}first", "one"]]


class TestSettings:
    """R5: other settings read again, which R3 makes harmless."""

    @pytest.fixture
    def file(self, file: Path, said: Lines) -> Path:
        write(file, [
            said.prompt("first"), said.thinking("hm"), said.call("Bash", {"command": "ls " * 99}),
            said.result("r" * 5000), said.answer("one"),
            said.prompt("a task", isSidechain=True), said.answer("done", isSidechain=True),
            said.prompt("second"), said.answer("two"),
        ])  # fmt: skip
        return file

    def read(self, palace_home: Path, file: Path, **settings: Any) -> list[dict[str, Any]]:
        with Capturing(palace_home, **settings) as captured:
            captured.read(file, reread=True)
            captured.check()
            spoken = [t for r, t in captured.words() if t in ("one", "two", "first", "second")]
            assert spoken == ["one", "two", "first", "second"]
            return captured.rows()

    def results(self, rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
        return [
            (text, omitted)
            for row in rows
            for role, _, text, omitted, _ in row["records"]
            if role == "RESULT"
        ]

    def test_more_of_the_tools_is_added_in_place_and_less_takes_nothing_away(
        self, file, palace_home
    ):
        first = self.read(palace_home, file)
        ((text, omitted),) = self.results(first)
        assert (len(text), omitted) == (2000 + len(" [… 3000 characters left out]"), 3000)
        for limit in (-1, 100, 0, 2000):
            rows = self.read(palace_home, file, tool_chars=limit)
            assert self.results(rows) == [("r" * 5000, 0)]
            assert [row["id"] for row in rows] == [row["id"] for row in first]

    def test_nothing_of_the_tools_becomes_all_of_them(self, file, palace_home):
        assert self.results(self.read(palace_home, file, tool_chars=0)) == [("", 5000)]
        assert self.results(self.read(palace_home, file, tool_chars=-1)) == [("r" * 5000, 0)]

    @pytest.mark.parametrize(
        ("setting", "role", "texts"),
        [("thinking", "THINKING", ["hm"]), ("subagents", "ASSISTANT", ["a task", "done"])],
    )
    def test_what_is_turned_on_is_added_once_and_stays_when_it_is_turned_off(
        self, file, palace_home, setting, role, texts
    ):
        self.read(palace_home, file)
        for on in (True, True, False, True):
            rows = self.read(palace_home, file, **{setting: on})
            found = [t for row in rows for r, _, t, _, _ in row["records"] if r == role]
            assert [text for text in found if text in texts] == texts

    @pytest.mark.parametrize("setting", ["thinking", "subagents", "noise"])
    def test_turned_on_late_or_from_the_start_the_same_words_are_there(
        self, file, palace_home, setting
    ):
        self.read(palace_home, file)
        late = self.read(palace_home, file, **{setting: True})
        start = self.read(palace_home.with_name("other"), file, **{setting: True})
        assert words(late) == words(start)

    def test_the_same_settings_read_nothing_again(self, file, palace_home):
        self.read(palace_home, file)
        with Capturing(palace_home) as captured:
            assert sum(o.bytes_read for o in captured.read(file, reread=True)) == 0


def words(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((r, t) for row in rows for r, _, t, _, _ in row["records"])


class TestQueue:
    """Words that were stored because a file was cold, and what the file says of them later."""

    def test_words_taken_back_after_a_cold_end_are_retired(self, file, said, palace_home):
        write(file, [said.prompt("first"), said.answer("one"), said.queue("enqueue", "wait")])
        with Capturing(palace_home) as captured:
            captured.read_ok(file)
            assert captured.prompts() == ["first", "wait"]
            with file.open("ab") as stream:
                stream.write(said.queue("popAll") + said.answer("two"))
            captured.read_ok(file)
            captured.check()
            assert captured.prompts() == ["first"]
            assert told(captured) == [["first", "one", "two"]]

    @pytest.mark.parametrize("kind", ["remove", "user line", "attachment", "nothing"])
    def test_a_cold_look_in_the_middle_changes_no_row(self, file, said, palace_home, kind):
        parts = [said.prompt("first"), said.answer("one"), said.queue("enqueue", "wait")]
        write(file, parts)
        later = {
            "remove": lambda: [said.queue("remove")],
            "user line": lambda: [said.queue("dequeue"), said.prompt("wait")],
            "attachment": lambda: [said.attachment("wait")],
            "nothing": lambda: [said.answer("still one")],
        }[kind]()
        with Capturing(palace_home) as captured:
            captured.read_ok(file)
            with file.open("ab") as stream:
                stream.write(b"".join([*later, said.answer("two")]))
            captured.read_ok(file)
            captured.check()
            cold = captured.rows()
        with Capturing(palace_home.with_name("quiet")) as captured:
            captured.read_ok(file)
            assert captured.rows() == cold

    # A paste is queued as a mark and run in full: the mark was nobody's prompt.
    def test_a_paste_that_was_stored_as_its_mark_is_its_text_when_that_is_known(
        self, file, said, palace_home
    ):
        mark, paste = "[Pasted text #1 +2 lines]", "line one\nline two\nline three"
        write(file, [said.prompt("first"), said.answer("one"), said.queue("enqueue", mark)])
        with Capturing(palace_home) as captured:
            captured.read_ok(file)
            with file.open("ab") as stream:
                stream.write(said.queue("dequeue") + said.prompt(paste) + said.answer("two"))
            captured.read_ok(file)
            captured.check()
            cold = captured.prompts()
        with Capturing(palace_home.with_name("quiet")) as captured:
            captured.read_ok(file)
            assert captured.prompts() == cold
