"""What is found for a question, in which order, and what is not."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mempalace.errors import NotThereYet, WrongUsage
from mempalace.search import Answer, Hit, ask, find
from mempalace.search.keywords import Keywords, words_of
from mempalace.search.meaning import OFF
from mempalace.store.palace import Palace
from tests.palace_builder import PalaceBuilder, moment


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


def answer_to(builder: PalaceBuilder, text: str, **filters) -> Answer:
    builder.file()
    with Palace.reader(builder.config.home) as palace:
        return find(palace, ask(text, **filters))


def hits(builder: PalaceBuilder, text: str, **filters) -> tuple[Hit, ...]:
    return answer_to(builder, text, **filters).results


def prompts(found: tuple[Hit, ...]) -> list[str]:
    return [hit.text.split("\n")[0] for hit in found]


class TestWords:
    """One question, all scripts: each is found in what was said."""

    @pytest.mark.parametrize(
        ("question", "text"),
        [
            ("basket", "Why is the basket empty?"),
            ("BASKETS", "Why is the basket empty?"),
            ("expiring", "it will expire"),
            ("数据库", "今天数据库连接失败了"),
            ("库", "今天数据库"),
            ("据库连", "今天数据库连接失败了"),
            ("データベース", "接続したデータベースが遅い"),
            ("корзина", "Почему корзина пуста?"),
            ("ÜBERGRÖSSE", "die Übergrösse passt"),
            ("ubergrosse", "die Übergrösse passt"),
            ("cafe\u0301", "ein café dort"),
            ("max_tool_chars", "set max_tool_chars to 10"),
            ("src/app.py", "see src/app.py:12"),
            ("std::vector", "a std::vector<int> of them"),
            ("user.name@example.com", "ask user.name@example.com"),
            ("don't", "please don't"),
            ("v2.1", "since v2.1 it works"),
        ],
    )
    def test_it_is_found(self, builder, question, text):
        session = builder.session()
        session.prompt("something else entirely")
        session.prompt(text)
        assert prompts(hits(builder, question)) == [text]

    def test_words_of_an_identifier_out_of_order_are_not_that_identifier(self, builder):
        builder.session().prompt("the chars of each tool, max")
        assert hits(builder, "max_tool_chars") == ()

    def test_a_compound_is_marked_whole_and_a_word_in_any_of_its_forms(self, builder):
        builder.session().prompt("Cookies expire in src/app.py. 数据库 and cookie.")
        (hit,) = hits(builder, "src/app.py cookie 数据库")
        marked = [hit.text[begin:end] for begin, end in hit.marks]
        assert marked == ["Cookies", "src/app.py", "数据库", "cookie"]

    def test_a_text_with_nul_characters_is_found_and_whole(self, builder):
        builder.session().prompt("before\0basket\0after")
        (hit,) = hits(builder, "basket")
        assert hit.text == "before\0basket\0after"
        assert all(0 <= begin < end <= len(hit.text) for begin, end in hit.marks)


class TestStopWords:
    def test_they_do_not_decide(self, builder):
        builder.session().prompt("what did we do about it and why")
        builder.session().prompt("the basket")
        assert prompts(hits(builder, "what did we do about the basket")) == ["the basket"]

    def test_they_are_asked_for_where_there_is_nothing_else(self, builder):
        builder.session().prompt("to be or not to be")
        assert prompts(hits(builder, "to be")) == ["to be or not to be"]

    def test_a_contraction_is_one(self):
        assert words_of("why doesn't the basket fill") == ['"basket"', '"fill"']

    def test_a_word_counts_once_in_any_case(self):
        assert words_of("Basket basket BASKET") == ['"BASKET"']


class TestAllBeforeAny:
    """AND of everything first; OR of the rarest six where that fills less than was asked for."""

    def test_what_holds_all_words_comes_first(self, builder):
        builder.session().prompt("cookie cookie cookie cookie")
        builder.session().prompt("the cookie of the basket expired")
        assert prompts(hits(builder, "cookie basket expired"))[0].startswith("the cookie of")

    def test_what_holds_some_follows(self, builder):
        builder.session().prompt("basket and cookie")
        builder.session().prompt("only a cookie")
        builder.session().prompt("neither")
        assert prompts(hits(builder, "basket cookie")) == ["basket and cookie", "only a cookie"]

    def test_any_is_not_asked_for_where_all_gives_enough(self, builder):
        for number in range(3):
            builder.session().prompt(f"basket and cookie {number}")
        builder.session().prompt("only a cookie")
        found = prompts(hits(builder, "basket cookie", limit=3))
        assert len(found) == 3
        assert all(text.startswith("basket") for text in found)

    def test_a_word_that_is_nowhere_does_not_hide_the_others(self, builder):
        builder.session().prompt("the basket")
        assert prompts(hits(builder, "basket zzzzzz")) == ["the basket"]

    def test_the_rarest_six_are_asked_for(self, builder):
        for number in range(4):
            builder.session().prompt(f"alpha beta gamma delta epsilon zeta eta {number}")
        builder.session().prompt("only alpha")
        builder.session().prompt("only omega")
        found = hits(builder, "alpha beta gamma delta epsilon zeta eta omega", limit=10)
        assert "only omega" in prompts(found)


class TestScore:
    """How much of the question a drawer explains: 0 to 1, whatever else was found."""

    def test_scores_are_between_0_and_1_and_fall(self, builder):
        for number in range(9):
            builder.session().prompt("basket " * (number + 1) + "cookie " * (number % 3))
        scores = [hit.score for hit in hits(builder, "basket cookie", limit=9)]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        assert scores[0] > 0

    def test_half_a_question_explains_less_than_the_whole(self, builder):
        for number in range(20):
            builder.session().prompt(f"filler number {number}")
        builder.session().prompt("basket")
        (whole,) = hits(builder, "basket")
        (half,) = hits(builder, "basket zzzzzz")
        assert half.score < whole.score / 1.5

    def test_equal_scores_are_ordered_by_when_it_was_said_the_latest_first(self, builder):
        days = ["2026-01-02", "2026-01-04", "2026-01-01", "2026-01-03"]
        for day in days:
            builder.session(at=f"{day}T00:00:00Z").prompt("the very same basket")
        found = hits(builder, "basket", limit=2)
        assert [hit.said_at for hit in found] == [
            moment("2026-01-04T00:00:00Z"),
            moment("2026-01-03T00:00:00Z"),
        ]


class TestGrouping:
    def test_an_exchange_is_one_hit_its_best_drawer(self, builder):
        session = builder.session()
        session.prompt("a question " + "filler " * 120)
        session.answer("answer " * 130 + "\n\nbasket basket basket")
        session.prompt("the basket once more, " + "words " * 30)
        found = hits(builder, "basket")
        assert len(found) == 2
        assert found[0].drawer_id == f"{found[0].exchange_id}-talk-2"
        assert "basket basket basket" in found[0].text

    def test_a_hit_says_when_its_own_words_were_said(self, builder):
        session = builder.session()
        session.prompt("question " * 100, at="2026-01-10T09:00:00Z")
        session.answer("filler " * 200 + "basket", at="2026-01-10T17:00:00Z")
        (hit,) = hits(builder, "basket")
        assert hit.said_at == moment("2026-01-10T17:00:00Z")

    def test_limit_counts_exchanges(self, builder):
        session = builder.session()
        for _ in range(3):
            session.prompt("basket").answer("basket " * 400)
        assert len(hits(builder, "basket", limit=2)) == 2


class TestWhatIsLeftOut:
    def test_retired_exchanges_never_appear(self, builder):
        """R5: kept, but out of search."""
        builder.session().prompt("the basket").retract()
        builder.session().prompt("another basket")
        assert prompts(hits(builder, "basket")) == ["another basket"]

    def test_headless_ones_may(self, builder):
        builder.session().answer("the basket")
        assert prompts(hits(builder, "basket")) == ["the basket"]

    def test_tools_are_searched_only_when_asked_for(self, builder):
        session = builder.session()
        session.prompt("look at it").call("Read", 'Read {"path":"basket.py"}').result("cookie")
        assert hits(builder, "cookie") == ()
        (hit,) = hits(builder, "cookie", kind="tools")
        assert hit.drawer_id == f"{hit.exchange_id}-tools-0"
        assert hits(builder, "look", kind="tools") == ()


class TestFilters:
    @pytest.fixture(autouse=True)
    def two_projects(self, builder):
        shop = builder.session(cwd="/home/ada/my-app", at="2026-01-10T09:00:00Z")
        shop.prompt("basket in my app")
        late = builder.session(cwd="/home/ada/other", at="2026-02-10T09:00:00Z", source="codex")
        late.prompt("basket elsewhere")
        builder.session(cwd="/home/ada/my-app", at=None).prompt("basket without a time")

    @pytest.mark.parametrize("name", ["my_app", "my-app", "My App", " MY-APP "])
    def test_a_wing_is_found_in_any_spelling(self, builder, name):
        found = hits(builder, "basket", wing=name)
        assert {hit.wing for hit in found} == {"my_app"}
        assert len(found) == 2

    def test_an_unknown_wing_is_an_error_that_names_the_known(self, builder):
        with pytest.raises(NotThereYet) as caught:
            hits(builder, "basket", wing="shop")
        assert "my_app, other" in caught.value.hint

    def test_a_room(self, builder):
        builder.file()
        builder.execute("UPDATE exchanges SET room = 'front_end' WHERE cwd = '/home/ada/other'")
        assert prompts(hits(builder, "basket", room="Front-End")) == ["basket elsewhere"]

    def test_a_source(self, builder):
        assert prompts(hits(builder, "basket", source="codex")) == ["basket elsewhere"]
        with pytest.raises(NotThereYet, match="source"):
            hits(builder, "basket", source="slack")

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({"since": "2026-02-01"}, ["basket elsewhere"]),
            ({"until": "2026-01-10"}, ["basket in my app"]),
            ({"until": "2026-01-09"}, []),
            ({"since": "2026-01-10", "until": "2026-01-10"}, ["basket in my app"]),
            ({"since": "2026-01-10T09:00:00Z", "until": "2026-01-10T09:00"}, None),
            ({"since": "2026-01-10T09:00:01Z", "until": "2026-02-10T09:00:00Z"}, []),
        ],
    )
    def test_times_are_those_of_what_was_said(self, builder, filters, expected):
        if expected is None:
            with pytest.raises(WrongUsage):
                hits(builder, "basket", **filters)
            return
        assert prompts(hits(builder, "basket", **filters)) == expected

    def test_an_exchange_that_lasts_is_judged_by_the_words_found(self, builder):
        long = builder.session(cwd="/home/ada/other")
        long.prompt("umbrella " * 10 + "filler " * 110, at="2026-01-01T00:00:00Z")
        long.answer("filler " * 120 + "parasol", at="2026-01-05T00:00:00Z")
        assert len(hits(builder, "parasol", since="2026-01-04")) == 1
        assert hits(builder, "umbrella", since="2026-01-04") == ()
        assert hits(builder, "parasol", until="2026-01-04") == ()

    def test_a_filter_reaches_behind_better_hits_of_others(self, builder):
        crowd = builder.session(cwd="/home/ada/crowd")
        for _ in range(400):
            crowd.prompt("basket basket basket")
        assert prompts(hits(builder, "basket", wing="other")) == ["basket elsewhere"]


class TestWhereItCameFrom:
    def test_a_hit_carries_everything_that_leads_back(self, builder):
        session = builder.session(cwd="/home/ada/shop", at="2026-01-10T09:00:00.5Z")
        session.prompt("the basket")
        answer = answer_to(builder, "basket")
        (hit,) = answer.results
        assert answer.degraded == (OFF,)
        assert hit.session_id == session.id
        assert (hit.wing, hit.room, hit.source) == ("shop", "general", "claude-code")
        assert (hit.path, hit.cwd) == (session.path, "/home/ada/shop")
        assert hit.said_at == moment("2026-01-10T09:00:00.5Z")
        assert hit.matched_via == ("keyword",)
        assert hit.text == "the basket"

    def test_the_name_of_an_excluded_file_is_not_shown(self, builder):
        """R10: it is known by a digest, which leads nowhere."""
        builder.session(path="excluded:0123").prompt("the basket")
        assert hits(builder, "basket")[0].path is None


@pytest.fixture(scope="module")
def palace(tmp_path_factory):
    home = tmp_path_factory.mktemp("fuzz") / "palace"
    with PalaceBuilder(home) as building:
        session = building.session()
        session.prompt("AND OR NOT NEAR text segments rowid rank talk tools 数据库 a b c")
        session.answer("quotes \" and ' and `ticks` * ^ : - + ( ) { } x")
    with Palace.reader(home) as opened:
        yield opened


class TestAnyQuestion:
    """Nothing that a user types reaches FTS5 unquoted."""

    @pytest.mark.parametrize("question", ["", " ", "?!", '"', "*", "::", "🎉", "\0", "_", "\ud83d"])
    def test_a_question_without_a_word_is_wrong_usage_with_a_hint(self, builder, question):
        builder.session().prompt("the basket")
        with pytest.raises(WrongUsage) as caught:
            hits(builder, question)
        assert "mempalace search" in caught.value.hint

    @settings(
        max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        st.one_of(
            st.text(),
            st.text(alphabet="\"*^:-+(){}, ANDORTEXT数据\0'x"),
            st.text("ab ", min_size=1),
        )
    )
    @example('text : "x" OR talk')
    @example('NEAR("a b", 5)')
    @example("a" * 50_000)
    @example("a/" * 5_000)
    @example(" ".join(f"word{number}" for number in range(5_000)))
    @example("数" * 5_000)
    @example("x\0y")
    @example("{text segments} : x")
    @example("' OR 1=1; DROP TABLE drawers; --")
    def test_any_text_is_answered_or_wrong_usage(self, palace, question):
        for kind in ("talk", "tools"):
            try:
                answer = find(palace, ask(question, kind=kind))
            except WrongUsage:
                continue
            for hit in answer.results:
                assert 0 <= hit.score <= 1

    @pytest.mark.parametrize(
        "question", ["OR", "AND", "NOT", "NEAR", "segments", '"text" : rowid', "x*", "^x", "-x"]
    )
    def test_words_of_the_query_language_are_words(self, palace, question):
        assert len(find(palace, ask(question)).results) == 1


class TestCounting:
    """Hits of a term are counted up to a point, then estimated."""

    def test_a_common_word_is_estimated_near_its_number(self, builder, monkeypatch):
        monkeypatch.setattr("mempalace.search.keywords._COUNTED", 50)
        session = builder.session()
        for number in range(1_000):
            session.prompt("basket" if number % 2 else "cookie")
        builder.file()
        with Palace.reader(builder.config.home) as palace:
            (term,) = Keywords(palace.db, "basket", 0).terms  # type: ignore[arg-type]
        assert 400 <= term.hits <= 600

    def test_words_too_common_are_not_asked_for_with_or(self, builder, monkeypatch):
        monkeypatch.setattr("mempalace.search.keywords._MOST_HITS", 5)
        for number in range(8):
            builder.session().prompt(f"cookie {number}")
        builder.session().prompt("basket")
        assert prompts(hits(builder, "cookie basket")) == ["basket"]
