"""Rooms of project files, and the words and forms that the derivation of an exchange hears."""

from __future__ import annotations

import pytest

from mempalace.mining.derive import derive
from mempalace.mining.reading import read
from mempalace.mining.rooms import FOLDERS, detect_rooms, room_of_file, room_of_folder
from mempalace.mining.signals import features, hear
from mempalace.mining.vocabulary import FILLER, NEGATABLE, REPORTS, SIGNALS, STARTS

ROOMS = dict(FOLDERS)


def hits(text: str) -> dict[str, str]:
    """Signal → words, for a text of one sentence."""
    [sentence] = read(text, []).sentences
    return hear(sentence).signs


# list → sentences that have a word of it | sentences that only look like it
GOLDEN: dict[str, tuple[list[str], list[str]]] = {
    "failure": (
        ["The build is broken.", "I get an error here", "it doesn't work on my phone"],
        ["He is a debugger fan", "There was no error.", "a terrorist film", "the crashpad layout"],
    ),
    "code": (
        ["this function is long", "the API is down", "deploy it"],
        ["a functional style", "rapid progress", "he was employed", "see `code.py`"],
    ),
    "test": (
        ["run the tests", "the linter is red", "coverage fell"],
        ["the latest build", "a contest", "see tests/test_a.py", "attestation"],
    ),
    "structure": (
        ["the data model is odd", "which layer owns it", "a new interface"],
        ["the player", "designated drivers", "an infrastructural job"],
    ),
    "planning": (
        ["the plan for May", "in the backlog", "phase two"],
        ["an explanation", "airplanes", "a telescope", "phased array"],
    ),
    "alternatives": (
        ["which option", "instead of that", "a trade-off"],
        ["an optional field", "instead he left", "adoption"],
    ),
    "chore": (
        ["It is pushed.", "rebased on main", "no conflicts"],
        ["a push notification", "the committee", "emergency"],
    ),
    "review": (
        ["a nit from Kim", "the reviewer said", "please consider this"],
        ["a preview", "inconsiderate", "the unit"],
    ),
    "settles": (
        ["let's use Redis", "drop it", "we decided that"],
        ["a droplet", "undecided voters", "It was not decided.", "let's see"],
    ),
    "wishes": (
        ["I want a button", "can we sort it", "it should be blue"],
        ["unwanted noise", "can week two do", "should bees"],
    ),
    "wonders": (
        ["maybe later", "what do you think", "I wonder"],
        ["wonderful", "thinking", "mighty"],
    ),
    "asks": (
        ["why is that", "how does it work", "explain it"],
        ["whatever", "showing", "explained", "somewhere"],
    ),
    "orders": (
        ["add a column", "please rename it", "fix it"],
        ["an address", "prefix", "removed", "cause"],
    ),
    "standing rule": (
        ["always use tabs", "from now on", "never mock it"],
        ["it always fails", "never mind", "the preferences", "we are using the latest code always"],
    ),
    "taste": (
        ["I like it", "too verbose", "I hate tabs"],
        ["unlike that", "liked", "whatever you like", "I did not say I like it"],
    ),
    "anger": (
        ["what the hell", "WTF", "this is useless"],
        ["a shell script", "dudes and ladies", "helpful", "It is not annoying"],
    ),
    "feeling": (
        ["I feel lost", "so proud", "we are afraid"],
        ["a glove", "missing file", "less worried about it", "unhappy path"],
    ),
    "joy": (
        ["It worked!", "perfect", "hooray"],
        ["imperfect", "it worked?", "greatly"],
    ),
    "thanks": (["thanks", "Thank you!", "cheers"], ["thankless", "cheerful", "a think tank"]),
    "assent": (["yes", "ok then", "go ahead"], ["yesterday", "token", "surely", "book"]),
    "trial": (
        ["I tried that", "I got this", "again"],
        ["retried", "against", "a keepsake"],
    ),
    "done": (
        ["Done.", "All tests pass.", "it is finished"],
        ["undone", "Is it done?", "It is not done.", "abandoned"],
    ),
    "made": (
        ["I added a flag", "it was implemented", "wrote a parser"],
        ["padded", "newest", "Have you added it?", "unwritten"],
    ),
    "reshaped": (
        ["renamed it", "extracted a helper", "cleaned up"],
        ["namedtuple", "unremoved", "Was it renamed?"],
    ),
    "repaired": (
        ["fixed the parser", "resolved", "no longer fails"],
        ["a prefix", "unresolved", "It isn't fixed.", "Is it fixed?"],
    ),
    "cause": (
        ["The root cause was a typo", "it turns out", "caused by DNS"],
        ["because", "the grass root", "turned out nice"],
    ),
    "agrees": (
        ["You're right.", "Good idea!", "makes sense"],
        ["your right hand", "good ideals", "it makes senseless noise"],
    ),
    "answers": (
        ["Good question.", "it depends", "for example"],
        ["it depended", "questions", "independent"],
    ),
    "offers": (
        ["Want me to go on?", "shall I", "let me know"],
        ["want mere talk", "marshall islands", "let me see"],
    ),
    "advises": (
        ["I'd recommend that", "best practice", "you could"],
        ["recommendations", "practices best", "worthless"],
    ),
    "sorry": (["Sorry!", "my mistake", "I apologize"], ["mistaken", "apologetics", "badly"]),
    "works on": (
        ["Let me look.", "I'll read it", "now I see"],
        ["outlet metal", "now it is", "I will"],
    ),
    "looks into": (
        ["Let me trace it", "dig into it", "figure out why"],
        ["let me write it", "digital", "figures"],
    ),
    "grave": (
        ["a security hole", "data loss", "production is down"],
        ["insecurity", "reproduction", "the secretary", "This is not critical"],
    ),
    "big": (
        ["a redesign", "from scratch", "it shipped"],
        ["shipment", "scratchpad", "an everyday thing"],
    ),
    "small": (["a typo", "whitespace only", "minor"], ["typography", "minority", "unite"]),
    "contrast": (["rather than that", "but no", "it doesn't"], ["butter", "notes", "rather big"]),
    "now": (["it works now", "now go", "Now!"], ["I know", "nowhere", "snow"]),
    "reason": (["because of it", "due to rain", "it means"], ["meaning", "due today", "sincere"]),
}
STARTING = {
    "order": (["Add a row", "fix it", "Rename it"], ["I add rows", "We fix it", "Address"]),
    "label": (
        ["Root cause: a typo", "The fix is small", "Result: 4"],
        ["We know the root cause", "Fixed", "No result"],
    ),
    "conclusion": (
        ["So it works", "This means rain", "Now it runs"],
        ["We think so", "Something", "Nowhere"],
    ),
    "at work": (
        ["Let me look", "I'll read it", "Next, tests"],
        ["You let me look", "Letters", "Nextcloud is up"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNALS)
def test_golden_lists(name):
    positives, misses = GOLDEN[name]
    assert len(positives) >= 3
    assert len(misses) >= 3
    for text in positives:
        assert name in hits(text), text
    for text in misses:
        assert name not in hits(text), text


@pytest.mark.parametrize("name", STARTS)
def test_golden_starts(name):
    positives, misses = STARTING[name]
    for text in positives:
        assert name in hits(text), text
    for text in misses:
        assert name not in hits(text), text


@pytest.mark.parametrize("name", SIGNALS)
def test_every_phrase_is_whole_words(name):
    for phrase in SIGNALS[name].split("|"):
        words = " ".join(phrase.split())
        for text in (words, f"{words.upper()}, today", f"Well: {words}."):
            assert name in hits(text), text
        for text in (f"x{words}", f"{words}x", f"`{words}`"):
            assert hits(text).get(name) != words, text


def test_negation_and_questions():
    for name in NEGATABLE:
        word = next(p.strip() for p in SIGNALS[name].split("|") if " " not in p.strip())
        assert name not in hits(f"There is no {word}"), name
    for name in REPORTS:
        word = next(p.strip() for p in SIGNALS[name].split("|") if " " not in p.strip())
        assert name not in hits(f"Is it {word}?"), name


def test_filler_says_nothing():
    def is_filler(text: str) -> bool:
        return hear(read(text, []).sentences[0]).is_filler

    assert FILLER
    assert all(map(is_filler, ["Done.", "All 12 tests pass.", "Here's a summary of the changes:"]))
    assert not any(map(is_filler, ["Done with Redis.", "All rows pass through.", "The parser"]))


@pytest.mark.parametrize(
    ("prompt", "answers", "form"),
    [
        ("commit and push", ["Pushed."], "prompt: asks a chore"),
        ("ok, then please merge main", ["Merged."], "prompt: asks a chore"),
        ("why?", ["Because."], "prompt: question"),
        ("why?", ["Because."], "prompt: starts with question"),
        ("option b", ["Then b."], "prompt: picks by number"),
        ("Implement the following plan:\n\n# A", ["Done."], "prompt: plan to carry out"),
        ("NO WAY you did that!!", ["Sorry."], "prompt: shouts"),
        ("see\n```\na\nb\n```", ["Yes."], "prompt: pasted"),
        ("go", ["Done. Want me to go on?"], "answers: asks back"),
        ("go", ["Let me look:"], "answers: breaks off"),
        ("go", ["## What\n\nA thing."], "answers: headings"),
        ("go", ["a", "b", "c", "d", "e"], "answers: five or more"),
    ],
)
def test_forms(prompt, answers, form):
    reading = read(prompt, answers)
    assert form in features(reading, [hear(one) for one in reading.sentences])


@pytest.mark.parametrize(
    ("prompt", "answers", "form"),
    [
        ("the push notification is late", ["Fixed."], "prompt: asks a chore"),
        ("a committee", ["Yes."], "prompt: asks a chore"),
        ("tell me why", ["Because."], "prompt: question"),
        ("2026 was good", ["Yes."], "prompt: picks by number"),
        ("use the HTTP API", ["Done."], "prompt: shouts"),
        ("go", ["Is it done? Yes."], "answers: asks back"),
    ],
)
def test_forms_that_are_not(prompt, answers, form):
    reading = read(prompt, answers)
    assert form not in features(reading, [hear(one) for one in reading.sentences])


@pytest.mark.parametrize(
    ("path", "text", "room"),
    [
        ("front-end/app.js", "", "frontend"),
        ("src/Front_End/x.txt", "database", "frontend"),
        ("src/budget.csv", "", "costs"),
        ("src/2024-meeting-notes.md", "", "meetings"),
        ("src/a.txt", "the roadmap and the specs, and a database", "planning"),
        ("src/a.txt", "nothing", "general"),
        ("latest/attestation.txt", "the latest", "general"),
        ("explanations/planet.txt", "", "general"),
        ("uix/apidocs.txt", "", "general"),
        ("", "", "general"),
    ],
)
def test_room_of_file(path, text, room):
    assert room_of_file(path, text, ROOMS) == room


@pytest.mark.parametrize("room", FOLDERS)
def test_every_folder_name(room):
    for name in FOLDERS[room]:
        assert room_of_folder(name) == room
        assert room_of_folder(name.upper().replace("_", "-")) == room
        assert room_of_file(f"{name}/x.bin", "", ROOMS) == room
        for miss in (f"{name}x", f"x{name}", f"{name}-{name}-1"):
            assert room_of_file(f"{miss}/0.bin", "", ROOMS) == "general"


def test_other_folders_become_rooms_of_their_own():
    assert room_of_folder("Payments-Core") == "payments_core"
    assert room_of_folder("ab") is None
    assert room_of_folder(".github") is None
    rooms = detect_rooms(["docs", "Payments", "x", "api", "server"])
    assert set(rooms) == {"documentation", "payments", "backend"}
    assert room_of_file("Payments/a.py", "", rooms) == "payments"


def test_why_names_what_decided():
    derived = derive("The login is broken, I get an error", ["Fixed. The root cause was a typo."])
    assert derived.room == "problems"
    assert derived.why[0].startswith("room problems:")
    assert "broken" in derived.why[0]
    assert len(derived.why) == 5
