"""Times: every form in which a transcript gives one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempalace.transcripts.base import instant, label, what_runs

NOON = 1_767_268_800_000_000  # 2026-01-01T12:00:00Z


class TestInstant:
    """Keys: equal instants are equal numbers, however they are written (R3)."""

    @pytest.mark.parametrize(
        "value",
        [
            "2026-01-01T12:00:00Z",
            "2026-01-01T12:00:00.000Z",
            "2026-01-01T14:00:00+02:00",
            "2026-01-01T06:30:00-05:30",
            "2026-01-01T12:00:00",
            "2026-01-01 12:00:00Z",
            1_767_268_800,
            1_767_268_800.0,
            1_767_268_800_000,
        ],
    )
    def test_every_form_of_one_instant_is_the_same_number(self, value):
        assert instant(value) == NOON

    def test_microseconds_are_kept(self):
        assert instant("2026-01-01T12:00:00.123456Z") == NOON + 123_456

    def test_a_time_before_1970_is_negative(self):
        assert instant("1969-12-31T23:59:59Z") == -1_000_000

    @pytest.mark.parametrize(
        "value",
        [
            None, True, False, "", "yesterday", "[trimmed]", [], {}, 10**400, -(10**400),
            float("nan"), float("inf"), "2026-13-01T00:00:00Z",
        ],
    )  # fmt: skip
    def test_what_is_no_time_is_none(self, value):
        assert instant(value) is None

    @given(
        st.one_of(
            st.text(), st.integers(), st.floats(), st.booleans(), st.none(),
            st.datetimes().map(lambda when: when.isoformat()),
            st.datetimes().map(lambda when: when.isoformat() + "+14:00"),
        )
    )  # fmt: skip
    def test_no_value_raises_or_leaves_the_64_bits_of_a_column(self, value):
        found = instant(value)
        assert found is None or abs(found) < 2**63


class TestWhatACallRuns:
    """R11: docs/formats/claude-code.md, "Echoes"."""

    @pytest.mark.parametrize(
        "command",
        [
            "mempalace search x",
            "mempalace",
            "cd /shop && mempalace status",
            "make; .venv/bin/mempalace wake-up",
            "uvx mempalace search x",
            "python -P -m mempalace export",
        ],
    )
    def test_a_command_of_ours_is_known_as_ours(self, command):
        assert what_runs("Bash", json.dumps({"command": command})) == "mempalace"

    @pytest.mark.parametrize(
        "command",
        ["ls mempalace", "grep -rn mempalace .", "cd mempalace && ls", "cat mempalace.md"],
    )
    def test_a_command_that_only_names_us_is_not(self, command):
        assert what_runs("Bash", json.dumps({"command": command})) == "Bash"


class TestLabels:
    """R6, R10: a name out of a transcript is counted and shown; a sentence or a tag is not kept."""

    @pytest.mark.parametrize("name", ["Bash", "mcp__a__b", "file-history-snapshot", "a.b:c/d"])
    def test_a_name_is_kept(self, name):
        assert label(name) == name

    @pytest.mark.parametrize("name", ["<private>x</private>", "two\nlines", "x" * 200, ""])
    def test_what_is_no_name_is_not(self, name):
        assert label(name) == "(no name)"
