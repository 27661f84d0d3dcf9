"""What explains more of a question comes first, however short the rest is."""

import pytest

from mempalace.search import Hit, ask, find
from mempalace.store.palace import Palace
from tests.palace_builder import PalaceBuilder

QUESTION = "basket cookie session"
PADDING = " ".join(f"filler{number}" for number in range(80))


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        noise = building.session()
        for number in range(300):
            noise.prompt(f"noise number {number} about nothing")
        yield building


def hits(builder: PalaceBuilder, question: str, **filters) -> tuple[Hit, ...]:
    builder.file()
    with Palace.reader(builder.config.home) as palace:
        return find(palace, ask(question, **filters)).results


def add_pairs(builder: PalaceBuilder) -> None:
    pairs = ["basket cookie", "cookie session", "basket session"]
    for number in range(30):
        builder.session().prompt(pairs[number % 3])


def test_the_only_exchange_with_every_word_comes_first(builder):
    builder.session().prompt("why?").answer(f"basket {PADDING} cookie {PADDING[:300]}")
    builder.session().prompt("and now?").answer(f"basket {PADDING[:300]} cookie session")
    add_pairs(builder)
    found = hits(builder, QUESTION)
    assert found[0].text.startswith("and now?")
    assert found[0].score >= 0.5 > found[1].score


def test_so_does_one_whose_words_stand_in_different_drawers(builder):
    builder.session().prompt(f"the basket {PADDING}").answer(f"{PADDING} a cookie of this session")
    add_pairs(builder)
    found = hits(builder, QUESTION)
    assert "a cookie of this session" in found[0].text
    assert found[0].score >= 0.5 > found[1].score


def test_more_words_come_before_fewer_in_a_short_drawer(builder):
    builder.session().prompt(f"basket {PADDING[:500]} cookie session")
    for word in ("basket", "cookie", "session"):
        for _ in range(5):
            builder.session().prompt(word)
    found = hits(builder, QUESTION + " nowhere", limit=10)
    assert found[0].text.startswith("basket filler0")
    assert len(found) == 10


def test_scores_fall_in_the_order_shown(builder):
    builder.session().prompt(f"basket {PADDING[:500]} cookie session")
    add_pairs(builder)
    builder.session().prompt("cookie")
    scores = [hit.score for hit in hits(builder, QUESTION, limit=40)]
    assert len(scores) == 32
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[-1] < scores[0] <= 1


def test_words_too_common_to_rank_are_ranked_slice_by_slice_the_newest_first(builder, monkeypatch):
    monkeypatch.setattr("mempalace.search.keywords._MOST_HITS", 50)
    monkeypatch.setattr("mempalace.search.keywords._SLICE", 20)
    other = builder.session(cwd="/home/ada/first")
    for number in range(100):
        builder.session().prompt(f"noise about it {number}")
    other.prompt("late")
    found = hits(builder, "about", limit=5)
    assert all(hit.text.startswith("noise about it") for hit in found)
    assert len(hits(builder, "about", limit=400)) == 400
    assert hits(builder, "noise about", wing="first") == ()
