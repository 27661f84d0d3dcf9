"""What may be asked, and how what may not is refused."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempalace.errors import WrongUsage
from mempalace.search.query import ask, since_moment, until_moment
from tests.palace_builder import moment

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()
DAY = 86_400_000_000


def now() -> float:
    return NOW


class TestTimes:
    """`--since` and `--until` take what people write."""

    @pytest.mark.parametrize(
        ("text", "iso"),
        [
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-01-31T14:30", "2026-01-31T14:30:00Z"),
            ("2026-01-31 14:30:15", "2026-01-31T14:30:15Z"),
            ("2026-01-31T14:30:00.123456Z", "2026-01-31T14:30:00.123456Z"),
            ("2026-01-31T14:30:00+01:00", "2026-01-31T13:30:00Z"),
            (" 2026-01-31 ", "2026-01-31T00:00:00Z"),
            ("7d", "2026-02-22T12:00:00Z"),
            ("24h", "2026-02-28T12:00:00Z"),
            ("90m", "2026-03-01T10:30:00Z"),
            ("2 W", "2026-02-15T12:00:00Z"),
        ],
    )
    def test_a_time_is_understood_as_utc(self, text, iso):
        assert since_moment(text, now=now) == moment(iso)

    def test_until_a_day_means_to_its_end(self):
        assert until_moment("2026-01-31", now=now) == moment("2026-02-01T00:00:00Z")

    def test_until_a_minute_means_up_to_it(self):
        assert until_moment("2026-01-31T14:30", now=now) == moment("2026-01-31T14:30:00Z")

    @pytest.mark.parametrize(
        "text", ["", "yesterday", "7", "d", "-1d", "1.5h", "2026-13-01", "2026-02-30", "31.1.2026"]
    )
    def test_what_is_no_time_is_refused_with_the_forms_that_are(self, text):
        with pytest.raises(WrongUsage) as caught:
            ask("x", since=text)
        assert "2026-01-31T14:30" in caught.value.hint
        assert "7d" in caught.value.hint

    @given(st.text())
    def test_any_text_is_a_time_or_wrong_usage(self, text):
        for understand in (since_moment, until_moment):
            try:
                assert isinstance(understand(text, now=now), int)
            except WrongUsage:
                pass

    def test_since_after_until_is_refused(self):
        with pytest.raises(WrongUsage):
            ask("x", since="2026-02-01", until="2026-01-01")

    def test_one_day_since_and_until_is_that_day(self):
        query = ask("x", since="2026-01-31", until="2026-01-31")
        assert query.since is not None
        assert query.until == query.since + DAY


class TestOtherFilters:
    def test_a_kind_that_is_not_there_yet_is_refused_with_those_that_are(self):
        for kind in ("diary", "files", "TALK", ""):
            with pytest.raises(WrongUsage, match="kind") as caught:
                ask("x", kind=kind)
            assert caught.value.hint == "the kinds are talk, tools"

    @pytest.mark.parametrize("limit", [0, -1, 1_001])
    def test_a_limit_that_makes_no_sense_is_refused(self, limit):
        with pytest.raises(WrongUsage, match="limit"):
            ask("x", limit=limit)
