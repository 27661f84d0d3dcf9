"""AAAK: what a card says, that it reads back, and that its ratio is measured."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mempalace.cli.compress import compress
from mempalace.dialect import Arc, Dialect, Header, NotAAAK, Page, Ratio, Tunnel, Zettel
from mempalace.dialect.words import DECISION_MARKERS, EMOTIONS, FLAGS, STOP_WORDS
from mempalace.errors import BadConfig, MemPalaceError, NotThereYet
from tests.palace_builder import PalaceBuilder

# REFERENCE.md §6; its last sentence is the seeds' "…".
EXAMPLE = (
    "We decided to use GraphQL instead of REST because the frontend team needs flexible queries. "
    "Kai recommended it after researching both options. The team was excited about the "
    "schema-first approach."
)
EXAMPLE_CARD = (
    '0:KAI|graphql_rest_decided|"decided to use GraphQL instead of REST"|determ+excite'
    "|DECISION+TECHNICAL"
)

ids = st.from_regex(r"[\w.-]+", fullmatch=True)
free = st.text(st.one_of(st.characters(), st.sampled_from('|"\\\n\r→ 🎉_+:pn')), max_size=40)
codes = st.one_of(st.just("???"), st.from_regex(r"[A-Z]{3}", fullmatch=True))
topics = st.one_of(st.just("misc"), st.from_regex(r'[^\s|_"\\]+', fullmatch=True))
feelings = st.lists(st.sampled_from(sorted(EMOTIONS)), max_size=3).map(tuple)
flags = st.lists(st.sampled_from(sorted(FLAGS)), max_size=3).map(tuple)
zettels = st.builds(
    Zettel,
    id=ids,
    entities=st.lists(codes, min_size=1, max_size=4).map(tuple),
    topics=st.lists(topics, min_size=1, max_size=4).map(tuple),
    quote=free,
    weight=st.none() | st.floats(0, 1),
    emotions=feelings,
    flags=flags,
)
arcs = st.lists(st.sampled_from(sorted(EMOTIONS)), min_size=1, max_size=5).map(tuple)
pages = st.builds(
    Page,
    header=st.none() | st.builds(Header, free, free, free, free),
    zettels=st.lists(zettels, max_size=4).map(tuple),
    tunnels=st.lists(st.builds(Tunnel, ids, ids, free), max_size=3).map(tuple),
    arcs=st.lists(st.builds(Arc, arcs), max_size=2).map(tuple),
)


class TestAPage:
    @given(pages)
    def test_what_is_encoded_parses_back(self, page):
        assert Dialect.parse(Dialect.encode(page)) == page

    @given(pages)
    def test_a_line_can_be_split_at_its_bars(self, page):
        lines = Dialect.encode(page).split("\n")
        kinds = [line.count("|") for line in lines if line]
        expected = [3] if page.header else []
        expected += [4 if zettel.weight is None else 5 for zettel in page.zettels]
        assert kinds == expected + [1] * len(page.tunnels) + [0] * len(page.arcs)

    def test_a_whole_page_as_it_is_written(self):
        page = Page(
            Header("shop", "decisions", "2026-01-31", "a|b\\c"),
            (
                Zettel("0", ("ALC", "KAI"), ("basket", "cookie"), 'he said "no"\n🎉', 0.85),
                Zettel("1", emotions=("joy",), flags=("CORE",)),
            ),
            (Tunnel("0", "1", "same bug"),),
            (Arc(("fear", "relief", "joy")),),
        )
        text = (
            "shop|decisions|2026-01-31|a\\pb\\\\c\n"
            '0:ALC+KAI|basket_cookie|"he said "no"\\n🎉"|0.85||\n'
            '1:???|misc|""|joy|CORE\n'
            "T:0<->1|same bug\n"
            "ARC:fear->relief->joy"
        )
        assert Dialect.encode(page) == text
        assert Dialect.parse(text) == page

    def test_lines_may_end_as_on_windows_and_some_may_be_empty(self):
        assert Dialect.parse("\r\nARC:joy->hope\r\n\n") == Page(arcs=(Arc(("joy", "hope")),))

    @pytest.mark.parametrize(
        ("text", "line", "reason"),
        [
            ("a|b|c", 1, "3 fields"),
            ('ARC:joy\n0:KAI|a|"q"|joy|CORE|x|y', 2, "7 fields"),
            ('0:KAI|a|"q"||\na|b|c|d', 2, "header that is not the first"),
            ("0:KAI|a|q||", 1, "quotes"),
            ('0:Kai|a|"q"||', 1, "three capital letters"),
            ('KAI|a|"q"||', 1, "`:`"),
            (':KAI|a|"q"||', 1, "zettel id"),
            ('0:KAI|a__b|"q"||', 1, "topic"),
            ('0:KAI|a|"q"|2|joy|', 1, "0 to 1"),
            ('0:KAI|a|"q"|nan|joy|', 1, "0 to 1"),
            ('0:KAI|a|"q"|much|joy|', 1, "no number"),
            ('0:KAI|a|"q"|glee|', 1, "unknown emotion"),
            ('0:KAI|a|"q"||BEST', 1, "unknown flag"),
            ('0:KAI|a|"q"|joy+joy+joy+joy|', 1, "more than 3"),
            ('0:KAI|a|"\\x"||', 1, "backslash"),
            ('0:KAI|a|"\\"||', 1, "backslash"),
            ("T:0-1|x", 1, "<->"),
            ("0<->1|x", 1, "T:"),
            ("ARC:", 1, "unknown emotion"),
            ("hello", 1, "ARC:"),
        ],
    )
    def test_what_is_no_page_is_refused_with_line_and_reason(self, text, line, reason):
        with pytest.raises(NotAAAK) as refused:
            Dialect.parse(text)
        assert f"line {line}:" in refused.value.what
        assert reason in refused.value.what
        assert refused.value.hint

    @pytest.mark.parametrize(
        "wrong",
        [
            {"entities": ()}, {"entities": ("Kai",)}, {"topics": ("a b",)}, {"topics": ()},
            {"weight": 1.5}, {"emotions": ("glee",)}, {"flags": ("CORE",) * 4}, {"id": "a:b"},
        ],
    )  # fmt: skip
    def test_an_illegal_structure_cannot_be_built(self, wrong):
        with pytest.raises(ValueError, match=r"zettel|entity|topic|weight|emotion|flag"):
            Zettel(**{"id": "0", **wrong})


class TestTables:
    def test_they_have_the_sizes_of_the_reference(self):
        assert len(EMOTIONS) == 29
        assert len(FLAGS) == 7
        assert len(STOP_WORDS) > 100
        assert len(DECISION_MARKERS) > 20

    def test_a_feeling_word_calls_for_one_code(self):
        named = [word for words in EMOTIONS.values() for word in words]
        assert len(named) == len(set(named))

    @pytest.mark.parametrize("code", sorted(EMOTIONS))
    def test_every_emotion_can_be_found(self, code):
        for word in EMOTIONS[code]:
            card = Dialect.parse(Dialect().compress(f"It was {word} there."))
            assert card.zettels[0].emotions == (code,)

    @pytest.mark.parametrize("flag", sorted(FLAGS))
    def test_every_flag_can_be_found(self, flag):
        for word in FLAGS[flag]:
            card = Dialect.parse(Dialect().compress(f"It was {word} there."))
            assert flag in card.zettels[0].flags


class TestCompress:
    @pytest.mark.parametrize("dialect", [Dialect(), Dialect(entities={"Kai": "KAI"})])
    def test_the_worked_example(self, dialect):
        assert dialect.compress(EXAMPLE) == EXAMPLE_CARD

    def test_metadata_becomes_the_header(self):
        card = Dialect().compress(
            EXAMPLE,
            metadata={"wing": "shop", "room": "a|b", "date": "2026-01-31", "source": "codex"},
        )
        assert card == f"shop|a\\pb|2026-01-31|codex\n{EXAMPLE_CARD}"
        assert Dialect().compress(EXAMPLE, metadata={"wing": "shop"}).startswith("shop|||\n")

    def test_tunnels_and_arcs_are_written_where_they_are_given(self):
        card = Dialect().compress(EXAMPLE, tunnels=[Tunnel("0", "7", "api")], arcs=[Arc(("joy",))])
        assert card == f"{EXAMPLE_CARD}\nT:0<->7|api\nARC:joy"

    def test_nothing_known_is_said_to_be_unknown(self):
        assert Dialect().compress("ok") == '0:???|misc|""||'
        assert Dialect().compress(" \n ") == ""

    @given(
        free, st.lists(st.sampled_from([EXAMPLE, "东京 データベース", "x" * 3_000, "|", "\n\n"]))
    )
    def test_every_text_has_a_card_that_parses(self, text, more):
        text = text.join(more)
        page = Dialect.parse(Dialect().compress(text, {"wing": text}))
        for zettel in page.zettels:
            assert len(zettel.quote) < 80
            assert zettel.quote in text

    def test_a_long_text_has_several_zettels(self):
        paragraph = "The basket lost its cookie again. " * 20 + "\n\n"
        page = Dialect.parse(Dialect().compress(paragraph * 12))
        assert [zettel.id for zettel in page.zettels] == [str(n) for n in range(6)]

    def test_topics_are_frequent_words_technical_ones_and_no_stop_words(self):
        text = "The basket is empty. The basket, with user_id, was there. There was much of that."
        (zettel,) = Dialect.parse(Dialect().compress(text)).zettels
        assert zettel.topics == ("user-id", "basket", "empty")

    def test_the_quote_is_the_most_decision_like_and_no_question(self):
        text = (
            "Should we use Redis instead of Postgres? I like both.\n- We went with Postgres.\nFine."
        )
        (zettel,) = Dialect.parse(Dialect().compress(text)).zettels
        assert zettel.quote == "went with Postgres"

    def test_code_is_not_quoted(self):
        text = (
            "```\nwe decided to write code here\n```\nif x: return y(1) because {z}\nThe cat sat."
        )
        (zettel,) = Dialect.parse(Dialect().compress(text)).zettels
        assert zettel.quote == "The cat sat"


class TestEntities:
    def test_given_names_are_whole_words_as_they_are_spelled(self):
        dialect = Dialect(entities={"Alice": "ALC", "Al": "ALX", "Mark": "MRK"})
        (zettel,) = Dialect.parse(dialect.compress("so mark this: Alice met Also Al.")).zettels
        assert zettel.entities == ("ALC", "ALX")

    @pytest.mark.parametrize(
        ("name", "code"),
        [("Alice", "ALC"), ("Kai", "KAI"), ("Bo", "BOX"), ("Юлия", "ЮЛИ"), ("!", "???")],
    )
    def test_other_names_get_a_code_by_rule(self, name, code):
        assert Dialect().code(name) == code

    def test_a_code_that_somebody_has_goes_to_nobody_else(self):
        assert Dialect(entities={"Alice": "ALC"}).code("Alcott") == "???"

    def test_names_inside_sentences_are_guessed_but_days_and_stop_words_are_nobody(self):
        text = "On Monday we met Nora. The Code said No. Tests pass. Ben said so."
        (zettel,) = Dialect.parse(Dialect().compress(text)).zettels
        assert set(zettel.entities) == {"NOR", "BEN", "COD"}
        skipping = Dialect(skip_names=["Code"])
        (zettel,) = Dialect.parse(skipping.compress(text)).zettels
        assert set(zettel.entities) == {"NOR", "BEN"}

    @pytest.mark.parametrize(
        "value",
        [
            {"Alice": "ALC"},
            {"entities": {"Alice": "ALC"}},
            {"entities": {"Alice": "ALC"}, "skip_names": ["Sherlock"]},
        ],
    )
    def test_they_can_be_read_from_a_file(self, tmp_path, value):
        path = tmp_path / "entities.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        assert Dialect.from_config(str(path)).compress("Alice").startswith("0:ALC|")

    def test_an_empty_file_of_codes_names_nobody(self, tmp_path):
        path = tmp_path / "entities.json"
        path.write_text("{}", encoding="utf-8")
        assert Dialect.from_config(path).compress("ok") == '0:???|misc|""||'

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"entities: {}", "not valid JSON"),
            (b'{"Alice": "ALC",\n}', "line 2: not valid JSON"),
            (b"", "not valid JSON"),
            (b"[" * 100_000, "not valid JSON"),
            (b"\xff\xfe", "not UTF-8"),
            (b"[]", "not an object"),
            (b'{"entities": []}', "`entities` is not an object"),
            (b'{"entities": {"Alice": 3}}', "code of `Alice`"),
            (b'{"Alice": "Alice"}', "code of `Alice`"),
            (b'{"": "ALC"}', "without a name"),
            (b'{"people": ["Alice"]}', "`people`"),
            (b'{"entities": {}, "skip_names": "Bo"}', "`skip_names`"),
        ],
    )
    def test_a_file_that_is_none_is_refused_by_name(self, tmp_path, content, reason):
        path = tmp_path / "entities.json"
        path.write_bytes(content)
        with pytest.raises(BadConfig) as refused:
            Dialect.from_config(path)
        assert reason in refused.value.what
        assert str(path) in refused.value.what
        assert "ALC" in refused.value.hint

    def test_a_file_that_is_not_there_is_refused(self, tmp_path):
        with pytest.raises(MemPalaceError, match="cannot be read"):
            Dialect.from_config(tmp_path / "none.json")


class TestMeasure:
    def test_tokens_are_characters_by_four_rounded_up(self):
        measured = Dialect.measure("x" * 401, "y" * 40)
        assert measured == Ratio(101, 10)
        assert measured.ratio == 10.1
        assert str(measured) == "101 → 10 tokens, 10.1:1"

    def test_a_card_that_is_longer_than_its_text_is_said_to_be(self):
        assert Dialect.measure("ok", Dialect().compress("ok")).ratio < 1

    def test_nothing_has_no_ratio(self):
        assert str(Ratio(0, 0)) == "0 → 0 tokens, nothing to compress"


class TestTheCommand:
    @pytest.fixture
    def builder(self, palace_home):
        with PalaceBuilder(palace_home) as building:
            session = building.session(cwd="/home/ada/shop", at="2026-01-10T09:00:00Z")
            session.prompt("Why is the basket empty?").answer(EXAMPLE).call("Read", "a.py")
            session.prompt("Use GraphQL, Alice wants it.").answer("Done.")
            building.session(cwd="/home/ada/blog").prompt("Write about cheese.")
            building.file()
            yield building

    def test_it_prints_cards_that_parse_and_the_measured_ratio(self, builder):
        done = CliRunner().invoke(compress, ["--wing", "shop"], catch_exceptions=False)
        *cards, last = done.stdout.strip().split("\n\n")
        parsed = [Dialect.parse(card) for card in cards]
        assert [page.header.date for page in parsed if page.header] == ["2026-01-10"] * 2
        assert parsed[0].zettels[0].quote == "decided to use GraphQL instead of REST"
        assert last.startswith("2 exchanges: ")
        assert "cheese" not in done.stdout

    def test_a_dry_run_prints_the_same_ratio_and_no_card(self, builder):
        done = CliRunner().invoke(compress, ["--wing", "shop"])
        dry = CliRunner().invoke(compress, ["--wing", "shop", "--dry-run"])
        assert dry.stdout.splitlines() == done.stdout.splitlines()[-1:]

    def test_it_takes_codes_from_a_file(self, builder, tmp_path):
        path = tmp_path / "entities.json"
        path.write_text('{"Alice": "QQQ"}', encoding="utf-8")
        done = CliRunner().invoke(compress, ["--wing", "shop", "--config", str(path)])
        assert "QQQ" in done.stdout

    def test_it_writes_nothing_into_the_palace(self, builder, palace_home):
        before = {path: path.read_bytes() for path in palace_home.glob("palace.db*")}
        CliRunner().invoke(compress, ["--wing", "shop"])
        after = {path: path.read_bytes() for path in palace_home.glob("palace.db")}
        assert all(before[path] == content for path, content in after.items())

    def test_an_unknown_wing_and_a_bad_file_are_errors(self, builder, tmp_path):
        unknown = CliRunner().invoke(compress, ["--wing", "nowhere"])
        assert isinstance(unknown.exception, NotThereYet)
        path = tmp_path / "entities.json"
        path.write_text("no", encoding="utf-8")
        bad = CliRunner().invoke(compress, ["--wing", "shop", "--config", str(path)])
        assert isinstance(bad.exception, BadConfig)
