"""Who and what a text names."""

from __future__ import annotations

import time

import pytest

from mempalace.mining.entities import count, entities_of, most_telling
from mempalace.mining.names import NOBODY


def kinds(text: str, kind: str) -> set[str]:
    return {name for found, name in count([text]) if found == kind}


GOLDEN = {
    "person": (
        [("I asked Mira about it", "Mira"), ("we met with Tolkan Ek", "Tolkan Ek"),
         ("Then Zorbas said no", "Zorbas"), ("ping @kim-l please", "kim-l")],
        ["The Code of System is here", "with The API", "from Monday on", "Ask about it"],
    ),
    "project": (
        [("we run Kestrel now", "Kestrel"), ("the Blue Heron release", "Blue Heron"),
         ("inside Quillpad", "Quillpad")],
        ["Kestrels fly.", "# Big Heading Words", "a **Bold Label** here", "- Item one"],
    ),
    "tool": (
        [("use docker", "Docker"), ("PostgreSQL is up", "PostgreSQL"), ("on GitHub", "GitHub")],
        ["a dockerfile-ish thing", "reaction", "gitter", "the railsx"],
    ),
    "file": (
        [("see src/app/main.py:12", "src/app/main.py"), ("README.md", "README.md"),
         ("in /etc/hosts", "/etc/hosts"), ("~/.zshrc", "~/.zshrc")],
        ["and/or", "feat/login", "good/bad/ugly", "https://a.b/c/d.py", "version 1.2", "e.g. this"],
    ),
    "identifier": (
        [("call getPathType", "getPathType"), ("snake_case_name", "snake_case_name"),
         ("SessionState", "SessionState"), ("os.path.join", "os.path.join")],
        ["Word", "HTTP", "example.com", "well-known", "a.b"],
    ),
    "package": (
        [("pip install requests", "requests"), ("lodash@4.17.1", "lodash"),
         ("@acme/ui", "@acme/ui"), ("npm i left-pad", "left-pad")],
        ["install it", "pip is old", "add requests", "me@home"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", GOLDEN)
def test_golden(kind):
    positives, misses = GOLDEN[kind]
    for text, name in positives:
        assert name in kinds(text, kind), text
    for text in misses:
        assert not kinds(text, kind), text


def test_nobody_is_somebody():
    for word in NOBODY:
        text = f"we saw {word.capitalize()} there and with {word.capitalize()}"
        assert not kinds(text, "person") | kinds(text, "project"), word


def test_sentence_starts_count_only_with_a_name_elsewhere():
    assert not count(["Kestrel is fast. Quillpad too"])
    assert count(["We use Kestrel. Kestrel is fast."])["project", "Kestrel"] == 2


def test_given_names_stand_wherever_they_stand():
    found = count(["alice and Bob Ray met. ALICE left"], {"Alice": "ALC", "Bob Ray": "BOB"})
    assert found == {("person", "Alice"): 2, ("person", "Bob Ray"): 1}
    assert not count(["malice"], {"Alice": "ALC"})
    assert ("person", "Bob Ray") not in count(["Bob Rayleigh"], {"Bob Ray": "BOB"})


def test_code_blocks_name_nothing():
    assert not count(["```\nfooBar.baz()\n```"])


def test_most_telling_first():
    named = entities_of(["Mira broke src/a/b.py with docker", "docker docker"])
    assert named[0] == ("person", "Mira")
    assert named == entities_of(["Mira broke src/a/b.py with docker", "docker docker"])
    assert len(most_telling({("file", f"a{n}.py"): n for n in range(50)})) == 12


def test_data_costs_nothing():
    started = time.perf_counter()
    count(["A_/" * 100_000, "a" * 300_000, "Aa " * 50_000])
    assert time.perf_counter() - started < 5
