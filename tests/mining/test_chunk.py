"""Windows: verbatim, bounded, and stable while a stream grows (R2)."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mempalace.mining.chunk import OVERLAP, WINDOW, is_full, join, windows

words = st.sampled_from(["word ", "\n", "\n\n", "longer-word", " ", "x" * 900, "東京", "é", "\0"])
streams = st.lists(words, max_size=400).map("".join)


@given(streams)
def test_windows_joined_without_their_overlaps_give_the_stream_back(text):
    assert join(windows(text)) == text


@given(streams)
def test_no_window_is_longer_than_800_characters(text):
    assert all(0 < len(window) <= WINDOW for _, window in windows(text))


@given(streams)
def test_each_window_begins_100_characters_before_the_end_of_the_one_before(text):
    cut = windows(text)
    for (start, window), (following, _) in pairwise(cut):
        assert following == start + len(window) - OVERLAP


@given(streams, streams)
def test_growth_changes_the_last_window_only(text, more):
    before, after = windows(text), windows(text + more)
    assert after[: max(0, len(before) - 1)] == before[:-1]


@given(streams, streams)
def test_a_stream_can_be_taken_up_from_its_last_window(text, more):
    whole = windows(text + more)
    before = windows(text)
    if not before:
        return
    start, last = before[-1]
    assert before[:-1] + windows(last + more, start) == whole


def test_a_window_ends_at_a_blank_line_where_it_can():
    text = "a" * 700 + "\n\n" + "b" * 300
    assert windows(text)[0][1] == "a" * 700 + "\n\n"


def test_only_a_window_that_holds_all_it_can_is_full():
    assert is_full("x" * WINDOW)
    assert not is_full("x" * (WINDOW - 1))
