"""What wake-up shows of what was said, and where it sends for more."""

from pathlib import Path

import pytest

from tests.palace_builder import PalaceBuilder
from tests.waking import moments, woken


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


def test_a_moment_carries_no_control_characters(builder):
    builder.session().prompt("Why is \x1b[31mred\x07 shown\x00 in \x9bthe\x7f basket?")
    (text,) = moments(woken(builder))
    assert text == "Why is \ufffd[31mred\ufffd shown\ufffd in \ufffdthe\ufffd basket?"


def test_more_is_searched_in_the_wing_that_was_chosen(builder):
    builder.session(cwd="/home/ada/shop").prompt("A question about the shop")
    assert '`mempalace search --wing shop "…"`' in woken(builder, "--wing", "Shop")[-2]
    assert '`mempalace search "…"`' in woken(builder, cwd=Path("/"))[-2]
