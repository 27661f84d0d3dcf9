"""Closets: lines that parse, pointers that hold, and old ones that growth leaves alone."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempalace.dialect import Dialect
from mempalace.mining import chunk
from mempalace.mining.closets import (
    CLOSET,
    DRAWERS_A_WINDOW,
    Closet,
    Drawer,
    Line,
    NotALine,
    closet_header,
    closets_of,
    pack,
    parse_line,
    window_lines,
    window_of,
)

EXCHANGE = "0123456789abcdef" * 2

prose = st.sampled_from([
    "We decided to use Postgres instead of SQLite because of writers.", "The fix is in auth.py.",
    "Kai said the basket cookie expired.", "basket cookie ", "\n\n", "\n", " ", "- a | b ; c → d\n",
    "```python\ndef a(): return 1\n```\n", 'He said "never" again. ', "我们决定使用数据库。",
    "データベースを使う",
    "İstanbul ΟΔΟΣ.ΑΣ ß ", "x" * 900, "é", "\0", "🎉 ", "Should we always do it?", "word " * 60,
    "user_id https://a.b/c?d=e ", "Nora;Jones a\rb ",
])  # fmt: skip
texts = st.lists(prose, max_size=150).map("".join)


def drawers_of(text: str) -> list[Drawer]:
    return [
        Drawer(f"{EXCHANGE}-talk-{position}", start, window)
        for position, (start, window) in enumerate(chunk.windows(text))
    ]


def nobody(text: str) -> list[str]:
    return []


def capitalised(text: str) -> list[str]:
    """Any word with a capital, and some that would break a line."""
    return [*dict.fromkeys(re.findall(r"[A-Z]\w+", text)), "a;b", "a|b", "→", "", 'x"', "E" * 80]


def holds(drawer: Drawer, words: str) -> bool:
    return words.lower() in drawer.text.lower()


class TestEveryClosetHolds:
    @given(texts)
    def test_every_line_parses_and_none_is_split(self, text):
        for closet in closets_of(drawers_of(text), capitalised):
            assert tuple(map(parse_line, closet.text.split("\n"))) == closet.lines

    @given(texts)
    def test_every_pointer_names_a_drawer_that_holds_the_words_and_one_its_entities(self, text):
        known = {drawer.id: drawer for drawer in drawers_of(text)}
        for closet in closets_of(list(known.values()), capitalised):
            for line in closet.lines:
                pointed = [known[drawer_id] for drawer_id in line.drawers]
                assert all(holds(drawer, line.words) for drawer in pointed)
                assert all(any(holds(drawer, e) for drawer in pointed) for e in line.entities)

    @given(texts)
    def test_the_limits_hold(self, text):
        closets = closets_of(drawers_of(text), capitalised)
        assert all(0 < len(closet.text) <= CLOSET for closet in closets)
        for window in {closet.window for closet in closets}:
            lines = [line for c in closets if c.window == window for line in c.lines]
            assert sum(not line.is_quote for line in lines) <= 12
            assert sum(line.is_quote for line in lines) <= 3
            assert all(len(line.entities) <= 5 for line in lines)
            assert all(0 < len(line.drawers) <= 3 for line in lines)
            assert len({str(line) for line in lines}) == len(lines)

    @given(texts)
    def test_a_window_is_5000_characters_at_most(self, text):
        drawers = drawers_of(text)
        for begin in range(0, len(drawers), DRAWERS_A_WINDOW):
            held = drawers[begin : begin + DRAWERS_A_WINDOW]
            assert held[-1].start + len(held[-1].text) - held[0].start <= 5_000

    @given(texts)
    def test_the_same_text_has_the_same_closets(self, text):
        drawers = drawers_of(text)
        assert closets_of(drawers, capitalised) == closets_of(drawers, capitalised)


class TestGrowth:
    @given(texts, texts)
    def test_growth_leaves_the_closets_of_earlier_windows_alone(self, text, more):
        before = closets_of(drawers_of(text), capitalised)
        after = closets_of(drawers_of(text + more), capitalised)
        last = window_of(max(len(drawers_of(text)) - 1, 0))
        old = [closet for closet in before if closet.window < last]
        assert [closet for closet in after if closet.window < last] == old

    @given(texts, texts)
    def test_the_last_window_and_six_drawers_before_it_are_enough(self, text, more):
        before, drawers = closets_of(drawers_of(text), capitalised), drawers_of(text + more)
        last = window_of(max(len(drawers_of(text)) - 1, 0))
        first = last * DRAWERS_A_WINDOW
        rebuilt = closets_of(
            drawers[first:], capitalised, window=last, before=drawers[max(0, first - 6) : first]
        )
        old = [closet for closet in before if closet.window < last]
        assert old + rebuilt == closets_of(drawers, capitalised)


COMMON = "server client module request answer branch commit button window record cookie basket"
FILLERS = {
    "few words again and again": lambda chance: chance.choice(COMMON.split()),
    "many words": lambda chance: f"word{chr(97 + chance.randrange(26))}{chance.randrange(400)}",
    "names everywhere": lambda chance: chance.choice(COMMON.split()).title(),
    "made-up words": lambda chance: "".join(chance.choices("bcdfgklmnoprstaeiou", k=7)),
}


class TestTheEndOfALongTalk:
    @settings(max_examples=12, deadline=None)
    @given(
        st.integers(0, 10_000),
        st.sampled_from(sorted(FILLERS)),
        st.sampled_from(["Zorvathia", "quillonaut", "K9-Blorp"]),
        st.sampled_from([199_999, 200_000, 200_700, 203_500]),
        st.lists(st.integers(1, 950), min_size=3, max_size=3, unique=True),
    )
    def test_a_name_said_three_times_there_has_a_line(self, seed, filler, name, size, places):
        chance = random.Random(seed)
        say = FILLERS[filler]
        text = " ".join(say(chance) for _ in range(size // 5))[: size - 100]
        for place in sorted(places):
            at = text.find(" ", len(text) - place)
            at = len(text) if at < 0 else at
            text = f"{text[:at]} {name} {text[at:]}"
        closets = closets_of(drawers_of(text), nobody)
        lines = [line for closet in closets for line in closet.lines]
        assert any(name in line.words for line in lines)


class TestLines:
    def lines(self, text: str, entities_in=nobody) -> list[str]:
        lines = window_lines(drawers_of(text), entities_in)
        return [str(line).replace(f"{EXCHANGE}-", "") for line in lines]

    def test_a_topic_its_entities_and_its_drawer(self):
        text = "Kai likes GraphQL. GraphQL queries are flexible."
        assert self.lines(text, lambda _: ["Kai"])[0] == "GraphQL|Kai|→talk-0"

    def test_a_pointer_names_the_drawers_that_hold_the_topic_and_no_others(self):
        text = "Postgres. " + "filler words stand here. " * 60 + "Postgres Postgres. " + "x " * 400
        drawers = drawers_of(text)
        line = next(line for line in window_lines(drawers, nobody) if line.words == "Postgres")
        assert len(drawers) > 3
        assert line.drawers == (f"{EXCHANGE}-talk-2", f"{EXCHANGE}-talk-0")

    def test_a_part_of_a_word_is_no_mention(self):
        text = "The latest attestation. " + "Filler stands here now. " * 50 + "One quest: contest."
        assert not any(line.startswith("test|") for line in self.lines(text))

    def test_an_entity_is_named_by_whole_words_and_not_beside_itself(self):
        text = "The client also saw Project Troy. Project Troy waits."
        names = ["CLI", "Al", "Troy", "saw"]
        assert self.lines(text, lambda _: names)[0] == "Project Troy|saw|→talk-0"

    def test_two_words_that_stand_together_are_one_topic(self):
        text = "The basket cookie expired. Why did the basket cookie expire?"
        assert self.lines(text)[0] == "basket cookie||→talk-0"

    def test_decisions_are_quoted_verbatim_with_one_entity(self):
        text = "Hello. We decided to use Postgres, says Kai. Should we use Redis instead of it?"
        assert '"We decided to use Postgres, says Kai"|Kai|→talk-0' in self.lines(
            text, lambda _: ["Nora", "Kai"]
        )

    def test_a_long_decision_is_quoted_by_its_clause(self):
        text = "We decided to use Postgres because " + "of many other things that matter " * 6 + "."
        assert '"We decided to use Postgres"||→talk-0' in self.lines(text)

    def test_unsegmented_scripts_have_topics(self):
        lines = self.lines("我们决定使用数据库。数据库很快。")
        assert any("数据库" in line for line in lines)

    def test_nothing_said_is_nothing_to_say(self):
        assert self.lines("") == []
        assert self.lines("yes, do it") == []

    def test_a_short_text_has_few_topics(self):
        text = "alpha beta gamma delta epsilon zeta"
        assert len(self.lines(text)) == 3

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("a|b;c|→d-0,d-1", Line("a", ("b", "c"), ("d-0", "d-1"))),
            ('"a b"||→d-0', Line("a b", (), ("d-0",), is_quote=True)),
        ],
    )
    def test_a_line_parses_and_prints(self, text, line):
        assert parse_line(text) == line
        assert str(line) == text

    @pytest.mark.parametrize(
        "text", ["", "a", "a|b", "a|b|c", "|b|→c", "a||→", "a||→b,", "a|b|c|→d"]
    )
    def test_what_is_no_line_is_refused(self, text):
        with pytest.raises(NotALine):
            parse_line(text)


class TestPacking:
    def test_closets_are_filled_from_the_front_to_the_last_character(self):
        def sizes(*lengths: int) -> list[int]:
            lines = [Line("x" * (length - 4), (), ("d",)) for length in lengths]  # 4: ||→d
            return [len("\n".join(map(str, closet))) for closet in pack(lines)]

        assert sizes(500, 500, 498) == [1_500]
        assert sizes(500, 500, 499) == [1_001, 499]
        assert sizes(1_500, 1_499, 100) == [1_500, 1_499, 100]
        assert sizes() == []

    def test_more_lines_change_the_last_closet_only(self):
        lines = [Line(f"{n}" * 90, (), ("d",)) for n in range(10, 99)]
        assert list(pack(lines))[:2] == list(pack(lines[:50]))[:2]

    def test_no_closet_has_lines_of_two_windows(self):
        closets = closets_of(drawers_of("The basket cookie expired. " * 800), nobody)
        assert [closet.window for closet in closets] == sorted(c.window for c in closets)
        assert {closet.window for closet in closets} == set(range(closets[-1].window + 1))


class TestHeader:
    def test_it_says_at_a_glance_who_when_and_what(self):
        closet = Closet(
            0,
            (
                Line("GraphQL", ("Kai", "Nora"), ("d",)),
                Line("REST|x", ("Kai",), ("d",)),
                Line("We go with it", ("Nora",), ("d",), is_quote=True),
            ),
        )
        header = closet_header(closet, 3, "2026-01-31", Dialect())
        assert header == "3|KAI|2026-01-31|GraphQL, REST\\px"
        assert closet_header(closet, 3, "", Dialect({"Kai": "QQQ"})).startswith("3|QQQ||")

    def test_quotes_alone_and_nobody_are_enough(self):
        closet = Closet(0, (Line("We go\nwith it", (), ("d",), is_quote=True),))
        assert closet_header(closet, 0, "2026-01-31", Dialect()) == (
            "0|???|2026-01-31|We go\\nwith it"
        )
