"""The second spelling that makes words findable where unicode61 takes too much for one word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempalace.store.fulltext import segments, terms
from tests.palace_builder import PalaceBuilder

MIXED = "ab1 .\n_-数据のカ한글กбё\u0301éµ２Ａﬁ\ue0b0\u00a0\0"


class TestSegments:
    @pytest.mark.parametrize(
        "text", ["", "plain words, src/app.py", "a café — naïve… ’yes’", "Почему пуста?"]
    )
    def test_what_unicode61_reads_well_has_none(self, text):
        assert segments(text) is None

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("数据库", "数据 据库 库"),
            ("用Python写", "用 Python 写"),
            ("看src/app/main.ts文件 and/or", "看 src app main ts 文件 件"),
            ("数，foo.bar，数", "数 数"),
            ("fixБаг", "fix Баг"),
            ("жёлтый цвет", "желтый"),
            ("２０２６年", "2026 年"),
            ("\ue0b0main here", "main"),
        ],
    )
    def test_it_has_runs_in_pairs_and_the_words_that_touch(self, text, expected):
        assert segments(text) == expected


class TestTerms:
    def test_words_in_quotes_are_one_phrase(self):
        assert terms('how do "python decorators" work?') == [
            '"how"', '"do"', '"python decorators"', '"work"',
        ]  # fmt: skip
        assert terms("what are “python decorators”?")[-1] == '"python decorators"'

    def test_quotes_of_code_are_punctuation(self):
        assert terms('{"name":"value"} "x" a"b c"d') == ['"name value"', '"x"', '"a b"', '"c d"']


class TestIndex:
    @given(st.lists(st.text(MIXED, min_size=1, max_size=60), min_size=1, max_size=5))
    def test_it_holds_what_was_stored_whatever_was_said(self, tmp_path_factory, texts):
        with PalaceBuilder(tmp_path_factory.mktemp("p") / "palace") as building:
            for text in texts:
                building.session().prompt(text).answer(text + text)
            building.file()
            building.execute("INSERT INTO talk (talk, rank) VALUES ('integrity-check', 1)")
            building.execute("UPDATE drawers SET text = 'x', segments = NULL WHERE n = 1")
            building.execute("INSERT INTO talk (talk, rank) VALUES ('integrity-check', 1)")
