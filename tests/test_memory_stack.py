"""MemoryStack: the four layers for who uses the library."""

import re

import pytest

from mempalace.errors import NotThereYet
from mempalace.layers import MemoryStack
from mempalace.store.palace import Palace
from tests.palace_builder import PalaceBuilder


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


class TestMemoryStack:
    """The library's way in: `from mempalace import MemoryStack`."""

    def test_it_is_exported(self):
        import mempalace

        assert mempalace.MemoryStack is MemoryStack
        assert mempalace.Palace is Palace

    def test_wake_up_of_all_or_of_one_wing(self, builder):
        builder.session(cwd="/home/ada/shop").prompt("A question about the shop")
        builder.session(cwd="/home/ada/other").prompt("A question about the other")
        builder.file()
        stack = MemoryStack(builder.config.home)
        assert stack.wake_up().count("A question about") == 2
        assert stack.wake_up(wing="shop").count("A question about") == 1
        with pytest.raises(NotThereYet):
            stack.wake_up(wing="nope")

    def test_recall_gives_ten_drawers_the_latest_first(self, builder):
        for number in range(12):
            builder.session(cwd="/home/ada/shop", at=f"2026-01-{number + 1:02}").prompt(
                f"prompt {number} " + "wordy " * 100
            )
        builder.file()
        lines = MemoryStack(builder.config.home).recall(wing="shop", room="technical").splitlines()
        assert lines[0] == "## L2 — ON-DEMAND (10 drawers)"
        assert [line.split()[2] for line in lines[1:]] == [str(n) for n in range(11, 1, -1)]
        assert all(line.startswith("  [technical] prompt ") for line in lines[1:])
        assert all(len(line) < 400 for line in lines)
        assert "2026-01-12)" in lines[1]

    def test_recall_of_nothing_says_so(self, builder):
        builder.session(cwd="/home/ada/shop").prompt("A question")
        builder.file()
        text = MemoryStack(builder.config.home).recall(room="problems")
        assert text.splitlines()[0] == "## L2 — ON-DEMAND (0 drawers)"

    def test_search_gives_five_with_wing_room_and_source(self, builder):
        for number in range(7):
            builder.session(cwd="/home/ada/shop").prompt(f"the basket {number} " + "wordy " * 100)
        builder.file()
        lines = MemoryStack(builder.config.home).search('the "basket"').splitlines()
        assert lines[0] == '## L3 — SEARCH RESULTS for "the "basket""'
        heads = [line for line in lines if line.startswith("  [")]
        assert len(heads) == 5
        assert re.fullmatch(r"  \[1\] shop/technical \(sim=\d\.\d{3}\)", heads[0])
        assert sum(line.startswith("      src: 0000000") for line in lines) == 5

    def test_status_is_that_of_its_own_home(self, builder):
        builder.session(cwd="/home/ada/shop").prompt("A question")
        builder.file()
        home = builder.config.home
        assert MemoryStack(home).status()["home"] == str(home)

    def test_every_call_says_where_there_is_no_palace(self, tmp_path):
        stack = MemoryStack(tmp_path / "nowhere")
        for call in (stack.wake_up, stack.recall, lambda: stack.search("x"), stack.status):
            with pytest.raises(NotThereYet):
                call()
