"""`mempalace wings`: names change, and nothing else does."""

from __future__ import annotations

import pytest

from mempalace.filing.wings import wing_for
from mempalace.store import wings
from tests.command import mempalace, mempalace_json
from tests.palace_builder import PalaceBuilder


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        for project in ("shop", "shop", "blog"):
            session = building.session(cwd=f"/home/ada/{project}")
            session.prompt("Why is it slow?").answer("The index is missing.")
            session.prompt("And now?")
        building.file()
        yield building


def words(builder: PalaceBuilder) -> list[object]:
    tables = ("SELECT n, id, session FROM exchanges", "SELECT * FROM records",
              "SELECT * FROM drawers", "SELECT * FROM outbox")  # fmt: skip
    return [builder.palace.db.execute(table).fetchall() for table in tables]


def test_the_list_has_the_fullest_first(builder):
    found = mempalace_json("wings", "list")
    assert [(one["name"], one["sessions"], one["exchanges"]) for one in found] == [
        ("shop", 2, 4), ("blog", 1, 2),
    ]  # fmt: skip
    assert "/home/ada/blog" in mempalace("wings", "list").stdout


def test_a_rename_writes_one_row(builder):
    before = words(builder)
    changes = builder.palace.db.total_changes
    with builder.palace.transaction() as db:
        (wing,) = db.execute("SELECT id FROM wings WHERE name = 'shop'").fetchone()
        assert wings.rename(db, wing, "The Shop") == "the_shop"
    assert builder.palace.db.total_changes == changes + 1
    assert words(builder) == before
    assert mempalace("search", "index", "--wing", "the-shop").stdout.count("the_shop/") == 2


def test_what_is_said_later_goes_where_the_name_went(builder):
    assert mempalace("wings", "rename", "shop", "store").returncode == 0
    builder.session(cwd="/home/ada/shop").prompt("Later")
    builder.file()
    assert [one["name"] for one in mempalace_json("wings", "list")] == ["store", "blog"]


def test_a_name_that_is_taken_is_refused(builder):
    done = mempalace("wings", "rename", "shop", "blog")
    assert (done.returncode, "merge" in done.stderr) == (2, True)
    assert mempalace("wings", "rename", "shop", "Shop").returncode == 0
    assert mempalace("wings", "rename", "nowhere", "x").returncode == 3


def test_a_merge_moves_all_and_what_comes_later(builder, monkeypatch):
    monkeypatch.setattr(wings, "_BATCH", 1)
    before = words(builder)
    done = mempalace("wings", "merge", "shop", "blog")
    assert (done.returncode, done.stdout) == (0, "4 exchanges of `shop` are in `blog` now\n")
    assert words(builder) == before
    with builder.palace.transaction() as db:  # also from a folder of the project that is new
        assert wing_for(db, builder.config, "/home/ada/shop") == wing_for(
            db, builder.config, "/home/ada/blog"
        )
    builder.session(cwd="/home/ada/shop").prompt("Later")
    builder.file()
    (one,) = mempalace_json("wings", "list")
    assert (one["name"], one["exchanges"], one["sessions"]) == ("blog", 7, 4)


def test_a_wing_is_not_merged_into_itself(builder):
    assert mempalace("wings", "merge", "shop", "shop").returncode == 2
    assert len(mempalace_json("wings", "list")) == 2
