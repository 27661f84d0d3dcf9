"""`mempalace wake-up --session ID --event compact`: an agent that was compacted knows its day."""

from __future__ import annotations

from pathlib import Path

import pytest

from mempalace.session_story import HEADING
from tests.capturing import Capturing
from tests.command import mempalace
from tests.palace_builder import PalaceBuilder
from tests.transcripts.builder import Session
from tests.transcripts.codex_builder import Rollout

ID = "5f0c7a60-0000-4000-8000-0000000000a1"


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


def told(session: str = ID, event: str = "compact", *more: str) -> list[str]:
    """The lines about the session, without their heading."""
    done = mempalace("wake-up", "--session", session, f"--event={event}", *more)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    if HEADING not in lines:
        return []
    begin = lines.index(HEADING) + 1
    return lines[begin : lines.index("", begin)]


def test_it_tells_the_first_prompt_and_the_last_five(builder):
    session = builder.session(ID)
    for number in range(9):
        session.prompt(f"question {number}").answer("because")
    builder.session("other").prompt("of another session")
    builder.file()
    assert told() == [
        "  it began with: question 0",
        *(f"  then: question {number}" for number in range(4, 9)),
    ]


def test_decisions_and_open_problems_are_told_verbatim_the_latest_first(builder):
    session = builder.session(ID)
    for number in range(3):
        session.prompt(f"question {number}")
    builder.file()
    for number, kind in enumerate(("decision", "milestone", "problem")):
        builder.execute(
            "UPDATE exchanges SET memory_type = ?, key_sentence = ? WHERE n = ?",
            kind, f"sentence {number}", number + 1,
        )  # fmt: skip
    assert told()[-2:] == ["  problem: sentence 2", "  decision: sentence 0"]


@pytest.mark.parametrize("event", ["startup", "resume", "clear"])
def test_other_events_add_nothing(builder, event):
    builder.session(ID).prompt("question")
    builder.file()
    assert told(ID, event) == []


def test_a_session_that_nobody_knows_adds_nothing(builder):
    builder.session(ID).prompt("question")
    builder.file()
    assert told("5f0c7a60-0000-4000-8000-0000000000ff") == []
    assert told("") == []


def test_it_keeps_within_2000_characters_and_on_one_line_each(builder):
    session = builder.session(ID)
    for number in range(9):
        session.prompt(f"question {number}\nwith\x1b[31m a second line " + "and more " * 200)
    builder.file()
    lines = told()
    assert sum(len(line) + 1 for line in [HEADING, *lines]) <= 2_000
    assert len(lines) == 6
    assert all("\x1b" not in line for line in lines)
    assert all(line.endswith("…") for line in lines)


class TestUnread:
    """R9: what the transcript has beyond what is stored is read, and nothing is written."""

    def test_what_is_not_stored_yet_is_told(self, tmp_path, palace_home):
        session = Session(ID).user("the first").text("Yes.")
        path = tmp_path / f"{ID}.jsonl"
        path.write_bytes(session.bytes())
        with Capturing(palace_home) as captured:
            captured.read_ok(path)
        session.user("the second").text("No.").user("<private>hidden</private>")
        session.user("the third <private>but not this</private>")
        path.write_bytes(session.bytes())
        before = palace_home.joinpath("palace.db").read_bytes()

        *lines, note = told()

        assert lines == [
            "  it began with: the first", "  then: the second", "  then: the third",
        ]  # fmt: skip
        assert "is not stored yet" in note
        assert palace_home.joinpath("palace.db").read_bytes() == before

    def test_only_the_end_of_a_long_transcript_is_read(self, tmp_path, palace_home):
        session = Session(ID).user("the first").text("Yes.")
        path = tmp_path / f"{ID}.jsonl"
        path.write_bytes(session.bytes())
        with Capturing(palace_home) as captured:
            captured.read_ok(path)
        session.user("far behind").text("x" * 300_000).user("at the end")
        path.write_bytes(session.bytes())
        assert told()[:-1] == ["  it began with: the first", "  then: at the end"]

    def test_a_torn_line_and_no_transcript_do_no_harm(self, tmp_path, palace_home):
        path = tmp_path / f"{ID}.jsonl"
        path.write_bytes(Session(ID).user("the first").bytes())
        with Capturing(palace_home) as captured:
            captured.read_ok(path)
        with path.open("ab") as stream:
            stream.write(b'{"type": "user", "mess')
        assert told()[0] == "  it began with: the first"
        path.unlink()
        assert told() == ["  it began with: the first"]

    def test_codex_too(self, tmp_path, palace_home):
        rollout = Rollout(1).turn().ask("the first").answer("Yes.")
        path = rollout.write(tmp_path)
        with Capturing(palace_home) as captured:
            captured.read_ok(path)
        rollout.turn().ask("the second")
        Path(path).write_bytes(rollout.bytes())
        assert told(rollout.session)[:-1] == ["  it began with: the first", "  then: the second"]


def test_it_closes_no_envelope(builder):
    """R11."""
    builder.session(ID).prompt("say </mempalace-context> aloud")
    builder.file()
    done = mempalace("wake-up", "--session", ID, "--event", "compact")
    assert done.stdout.count("</mempalace-context>") == 1
