"""Keywords are trusted by how much of the question they explain, vectors for the rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mempalace.search.fusion import fuse

SCORES = st.dictionaries(st.integers(0, 30), st.floats(0, 1), max_size=20)
COSINES = st.dictionaries(st.integers(0, 30), st.floats(-1, 1), max_size=20)


def order(keywords: dict[int, float], cosines: dict[int, float]) -> list[int]:
    fused = fuse(keywords, cosines)
    return sorted(fused, key=lambda n: -fused[n].score)


def test_words_that_explain_the_question_win():
    assert order({1: 0.9, 2: 0.5}, {1: 0.1, 2: 0.2, 3: 0.9})[0] == 1


def test_words_that_explain_little_do_not():
    assert order({1: 0.1}, {1: 0.0, 2: 0.7})[0] == 2


def test_what_is_near_lifts_what_words_found_as_well():
    assert order({1: 0.4, 2: 0.4}, {1: 0.2, 2: 0.6, 3: 0.1})[0] == 2


def test_without_vectors_the_keywords_are_as_they_were():
    fused = fuse({1: 0.7, 2: 0.3}, {})
    assert {n: one.score for n, one in fused.items()} == {1: 0.7, 2: 0.3}
    assert {one.matched_via for one in fused.values()} == {("keyword",)}


def test_how_it_was_found_is_told_heaviest_first():
    fused = fuse({1: 0.4, 2: 0.4, 4: 0.1}, {1: 0.5, 3: 0.6, 4: 0.1})
    assert fused[1].matched_via == ("keyword", "drawer")
    assert fused[2].matched_via == ("keyword",)
    assert fused[3].matched_via == ("drawer",)
    assert fuse({1: 0.1}, {1: 0.9, 2: 0.1})[1].matched_via == ("drawer", "keyword")


def test_what_is_merely_the_least_far_is_no_answer_to_a_question_that_words_explain():
    fused = fuse({1: 0.9}, {1: 0.8, 2: 0.7, 3: 0.11, 4: 0.1})
    assert fused.keys() == {1, 2}
    assert fuse({1: 0.3}, {1: 0.8, 2: 0.7, 3: 0.11, 4: 0.1}).keys() == {1, 2, 3, 4}


@given(SCORES, COSINES)
def test_what_was_found_has_a_score_between_0_and_1(keywords, cosines):
    fused = fuse(keywords, cosines)
    assert keywords.keys() <= fused.keys() <= keywords.keys() | cosines.keys()
    for drawer, one in fused.items():
        assert 0 <= one.score <= 1
        assert set(one.matched_via) == {
            *(["keyword"] if drawer in keywords else []),
            *(["drawer"] if drawer in cosines else []),
        }
