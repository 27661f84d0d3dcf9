"""What is derived of whole exchanges and of notes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempalace.mining.derive import derive
from mempalace.mining.extract import extract_memories, markers
from mempalace.mining.markers import INSIGHTS, MARKERS, RESOLVED
from mempalace.mining.reading import read
from tests.mining.labels import figures

LABELLED = Path(__file__).parent / "labelled.jsonl"
# Measured when it was written; a change of words or weights that loses more than a few rows shows.
FLOORS = {
    "room, exact": 0.55, "room, acceptable": 0.72, "memory type, macro-F1": 0.65,
    "hall, exact": 0.68, "key sentence, with the phrase": 0.66,
    "key sentence, phrase beyond 200": 0.33, "importance, rank correlation": 0.60,
}  # fmt: skip

GOLDEN = {
    "decision": (
        ["Let's use Redis.", "We decided on it", "the trade-off"],
        ["let's user-test", "undecided", "traded off"],
    ),
    "preference": (
        ["I prefer tabs", "use dicts instead of lists", "Please always ask"],
        ["I preferred", "stabs", "use it"],
    ),
    "milestone": (
        ["It works!", "4x faster", "20% less", "version 2.1 is out"],
        ["it worked out", "fix faster", "less", "conversion 2"],
    ),
    "problem": (
        ["a bug", "it keeps failing", "root cause"],
        ["debugging", "failsafe", "the roots cause"],
    ),
    "emotional": (
        ["I feel fine", "so proud", "I wish"],
        ["gloves", "a feeling", "dismissed", "wishes"],
    ),
}


@pytest.mark.parametrize("kind", MARKERS)
def test_golden_markers(kind):
    positives, misses = GOLDEN[kind]
    for text in positives:
        assert markers(kind, text), text
    for text in misses:
        assert not markers(kind, text), text


@pytest.mark.parametrize("kind", MARKERS)
def test_every_marker_is_whole_words(kind):
    for marker in MARKERS[kind].split("|"):
        words = " ".join(marker.split())
        for sign, example in (("…", "any thing"), ("#x", "3x"), ("#%", "9%"), ("#", "2.0")):
            words = words.replace(sign, example)
        for text in (words, f"Yes, {words.upper()}!", f"({words})"):
            assert words in markers(kind, text), text
        for text in (f"x{words}", f"{words}x", f"{words}-x"):
            assert words not in markers(kind, text), text


def test_as_many_markers_as_the_reference_says():
    counts = {kind: len(phrases.split("|")) for kind, phrases in MARKERS.items()}
    assert counts == {
        "decision": 20, "preference": 16, "milestone": 33, "problem": 18, "emotional": 29,
    }  # fmt: skip
    assert all(insight in MARKERS["milestone"] for insight in INSIGHTS)
    assert "solved" in RESOLVED


@pytest.mark.parametrize(
    ("text", "kind", "hall"),
    [
        ("We decided to go: let's use Postgres, because it is there.", "decision", "facts"),
        ("I prefer tabs. Always use them.", "preference", "preferences"),
        ("Finally! We shipped it and it works.", "milestone", "events"),
        ("It turns out the cache was cold; finally figured out.", "milestone", "discoveries"),
        ("The bug is a crash, it keeps failing and fails.", "problem", "events"),
        ("The bug made it crash. Fixed, it works great now, no error.", "milestone", "events"),
        ("I feel so proud and happy today.", "emotional", "events"),
    ],
)
def test_notes(text, kind, hall):
    [memory] = extract_memories(text)
    assert (memory.memory_type, memory.hall, memory.text) == (kind, hall, text)
    assert 0.3 <= memory.confidence <= 1


def test_code_lines_and_quotations_are_no_memory():
    assert not extract_memories("```\nwe decided because the trade-off\n```")
    assert not extract_memories("> we decided because the trade-off")
    assert not extract_memories("nothing to see\n\nhere")
    [memory] = extract_memories("We decided it\n    x = bug(error);\nbecause of the approach.")
    assert memory.text == "We decided it\nbecause of the approach."


def test_floors_on_the_set_of_this_repository():
    rows = [json.loads(line) for line in LABELLED.read_text().splitlines()]
    assert len(rows) == 100
    measured = figures(rows)
    assert {name: value for name, value in measured.items() if value < FLOORS[name]} == {}


def quotable(prompt: str | None, answers: list[str], quote: str) -> bool:
    sources = [prompt or "", *answers]
    return not quote or any(quote in text for text in sources)


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(st.none(), st.text(max_size=300)),
    st.lists(st.text(alphabet="aB .!?\n>`*#-|:_/'0x", max_size=400), max_size=4),
)
def test_any_text_derives(prompt, answers):
    derived = derive(prompt, answers)
    assert derived == derive(prompt, list(answers))
    assert 1 <= derived.importance <= 5
    assert 0 <= derived.confidence <= 1
    assert len(derived.key_sentence) <= 200
    assert not derived.key_sentence.startswith(">")
    assert quotable(prompt, answers, derived.key_sentence)


def test_a_quote_never_ends_inside_a_word():
    words = "Interpretation of measurements " * 200
    for prompt, answers in ((words, []), (None, [words]), ("ok", [words, words, words])):
        quote = derive(prompt, answers).key_sentence
        assert quote
        assert set(quote.split()) == set(words.split())
    assert derive("x" * 5_000, []).key_sentence == ""


def test_code_is_not_quoted():
    code = "```\nraise CriticalError('we decided to fix the bug')\n```"
    assert derive(None, [code]).key_sentence == ""
    derived = derive("$ git push\nerror: failed", [f"> we decided\n{code}\nIt is a stale token."])
    assert derived.key_sentence == "It is a stale token."
    tail = "Some words here.\n```\n" + "x = 1\n" * 800 + "```\nThe end is reached now."
    assert all("x = 1" not in one.text for one in read(None, [tail]).sentences)


@pytest.mark.parametrize(
    "line",
    [
        "import os", "from a import b", "def f(x):", "class A:", "const a = 1", "x := f(1)",
        "if (a) {", "}", '"key": 1,', "f(x)", "// why", "$ ls", "git push -f", "brew tap a/b",
        "go test ./...", "--- FAIL: TestA (0.1s)", "2026-01-01 10:00 INFO x", "panic: nil",
        "| a | b |", "> quoted", "return x;", "<div class='a'>", "at f (a.js:1)",
    ],
)  # fmt: skip
def test_code_lines(line):
    assert not read(line, []).sentences


@pytest.mark.parametrize(
    "line",
    [
        "import the data first", "from the logs it looks fine", "class is over", "let it be",
        "if this fails, stop", "for the release:", "try again (please)", "make sure it works",
        "go with option two", "git is slow today", "export the rows as well", "use parse()",
        "...and then it failed", "return early there", "at night it stops", "- an item",
        "package the app", "type it by hand", "match the names", "FAILURE is an option",
    ],
)  # fmt: skip
def test_lines_that_are_no_code(line):
    assert read(line, []).sentences


def test_nothing_said():
    derived = derive(None, [])
    assert (derived.room, derived.memory_type, derived.importance) == ("general", None, 1)


def test_the_work_is_bounded():
    nasty = ["please ok yes and now " * 400, "if " + "( = " * 2_000, "- " * 5_000, "A.b" * 9_000]
    started = time.perf_counter()
    for text in nasty:
        derive(text, [text, text])
        extract_memories(text)
    assert time.perf_counter() - started < 10
