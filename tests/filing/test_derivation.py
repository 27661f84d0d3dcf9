"""What an exchange means follows its words, and never touches them."""

from __future__ import annotations

import pytest

from mempalace.filing import forget as forgetting
from mempalace.filing.derivation import judge_stale
from mempalace.mining.derive import VERSION
from mempalace.store import derived
from mempalace.store.palace import Palace
from tests.command import mempalace, mempalace_json
from tests.palace_builder import PalaceBuilder


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


def judged(builder: PalaceBuilder) -> list[tuple[str, str | None, str | None, int, str]]:
    builder.file()
    rows = builder.palace.db.execute(
        "SELECT room, memory_type, hall, importance, key_sentence FROM exchanges ORDER BY n"
    )
    return rows.fetchall()


def words(builder: PalaceBuilder) -> list[object]:
    """All that must not change: ids, records, drawers, and what the index was told."""
    tables = ("SELECT id FROM exchanges", "SELECT * FROM records", "SELECT * FROM drawers",
              "SELECT * FROM outbox", "SELECT * FROM vectors")  # fmt: skip
    return [builder.palace.db.execute(table).fetchall() for table in tables]


def test_a_failure_that_was_repaired_is_judged_as_one(builder):
    asked = "The login crashes with a KeyError when the cookie is missing"
    answered = "Fixed: session.py read the cookie before it checked that there was one."
    builder.session().prompt(asked).answer(answered)
    ((room, memory_type, hall, importance, sentence),) = judged(builder)
    assert (room, memory_type, hall) == ("problems", "milestone", "events")
    assert importance >= 2
    assert sentence in (asked, answered)


def test_small_talk_is_nothing(builder):
    builder.session().prompt("ok").answer("Sure.")
    ((room, memory_type, _, importance, _),) = judged(builder)
    assert (room, memory_type, importance) == ("general", None, 1)


def test_it_follows_an_exchange_that_grows(builder):
    session = builder.session().prompt("Can you look at the login?")
    before = judged(builder)
    session.answer("It is broken: the login crashes with a KeyError. The root cause is the cookie.")
    assert judged(builder) != before
    assert judged(builder)[0][0] == "problems"


def test_a_command_is_never_important(builder):
    builder.session().prompt(
        "/deploy We decided to switch everything to PostgreSQL", kind="command"
    ).answer("Done: we migrated the whole platform, everything works now.")
    assert judged(builder)[0][3] <= 2


def test_what_it_names_is_kept_and_goes_with_it(builder):
    builder.session("a").prompt("Move session.py to PostgreSQL, Alice said").answer("Moved.")
    builder.file()
    db = builder.palace.db
    names = {name for _, name in derived.entities_of(db, 1)}
    assert {"session.py", "PostgreSQL"} <= names
    choose = forgetting.whole_session("claude-code", "a")
    for _ in forgetting.forget(builder.palace, choose, whole=True):
        pass
    assert db.execute("SELECT COUNT(*) FROM entities").fetchone() == (0,)


def test_what_an_older_version_judged_is_judged_anew_without_touching_a_word(builder):
    for number in range(120):
        builder.session().prompt(f"The build {number} fails, please fix it").answer("Fixed.")
    before = judged(builder)
    kept = words(builder)
    builder.execute("UPDATE exchanges SET derived = 0, room = 'x', importance = 9")
    builder.execute("DELETE FROM entities")
    rounds = 0
    while judge_stale(builder.palace):
        rounds += 1
    assert rounds == 3
    assert judged(builder) == before
    assert words(builder) == kept


def test_remine_does_it_for_a_wing(builder):
    builder.session(cwd="/home/ada/shop").prompt("The build fails").answer("Fixed.")
    builder.session(cwd="/home/ada/blog").prompt("The build fails").answer("Fixed.")
    before = judged(builder)
    builder.execute("UPDATE exchanges SET room = 'x'")
    done = mempalace("remine", "--wing", "shop")
    assert (done.returncode, done.stdout) == (0, "1 exchange judged anew\n")
    assert [row[0] for row in judged(builder)] == [before[0][0], "x"]
    assert mempalace("remine").stdout == "2 exchanges judged anew\n"
    assert judged(builder) == before
    assert mempalace("remine", "--wing", "nowhere").returncode == 3


def test_the_watcher_does_it_in_idle_time(builder, palace_home):
    builder.session().prompt("The build fails").answer("Fixed.")
    before = judged(builder)
    builder.execute("UPDATE exchanges SET derived = 0, room = 'x'")
    assert mempalace("watch", "--once").returncode == 0
    with Palace.reader(palace_home) as palace:
        rows = palace.db.execute("SELECT room, derived FROM exchanges").fetchall()
    assert rows == [(before[0][0], VERSION)]


def test_show_says_what_decided(builder):
    builder.session().prompt("The build fails").answer("Fixed.")
    builder.file()
    (row,) = builder.palace.db.execute("SELECT id FROM exchanges").fetchall()
    out = mempalace("show", row[0], "--why").stdout
    assert "why      room problems: " in out
    assert "judged   " in out
    values = mempalace_json("show", row[0], "--why")
    assert len(values["why"]) == 5
    assert values["room"] == "problems"
    assert "why" not in mempalace_json("show", row[0])
