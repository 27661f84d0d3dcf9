"""What must not be kept is taken out before anything else sees it (R10, R11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempalace.mining.private import is_own_tool, strip_echo, strip_private


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <private>x</private> b", "a  b"),
        ("a <private>x", "a "),
        ("<private>x</private>", ""),
        ("a <PRIVATE>x</Private> b", "a  b"),
        ("a <private>x <private>y</private> z</private> b", "a  b"),
        ("a <private>x</private> b <private>y</private> c", "a  b  c"),
        ("nothing here", "nothing here"),
        ("a </private> b", "a </private> b"),
        ("<private>x\ny</private>\nb", "\nb"),
    ],
)
def test_private_blocks_are_left_out_to_their_end_or_the_end(text, kept):
    assert strip_private(text) == kept


@given(st.lists(st.sampled_from(["<private>", "</private>", "secret", "open"]), max_size=12))
def test_nothing_inside_a_private_block_is_ever_kept(parts):
    depth, expected = 0, []
    for part in parts:
        if part == "<private>":
            depth += 1
        elif part == "</private>" and depth:
            depth -= 1
        elif not depth:
            expected.append(part)
    assert strip_private("".join(parts)) == "".join(expected)


def test_our_context_goes_where_it_opens_the_block_and_stays_in_prose():
    context = '<mempalace-context generated="now">\nwords\n</mempalace-context>\n'
    assert strip_echo(context + "mine") == "mine"
    assert strip_echo(context + context + "mine") == "mine"
    assert strip_echo("see <mempalace-context x> there") == "see <mempalace-context x> there"


@pytest.mark.parametrize("name", ["mempalace", "mempalace_search", "mcp__mempalace__search"])
def test_our_own_tools_are_known(name):
    assert is_own_tool(name)


@pytest.mark.parametrize("name", ["Bash", "mcp__memory__search", "my_mempalace"])
def test_other_tools_are_not_ours(name):
    assert not is_own_tool(name)
