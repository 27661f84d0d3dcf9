"""The outbox becomes vectors: of the last text, once, newest first, and of nothing else."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mempalace.filing import forget as forgetting
from mempalace.index.drain import Drain
from mempalace.model import Stream
from mempalace.store import vectors
from tests.index.quick import Quick
from tests.palace_builder import PalaceBuilder


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


class Draining:
    """A drain over the builder's palace, with a clock that has passed every due time."""

    def __init__(self, builder: PalaceBuilder, fingerprint: str = "quick 1") -> None:
        self.builder = builder
        self.model = Quick(fingerprint)
        with builder.palace.transaction() as db:
            self.number = vectors.model_number(
                db, self.model.name, self.model.dimension, fingerprint
            )
        self.drain = Drain(builder.palace, self.model, self.number, now=lambda: time.time() + 1_000)

    def all(self) -> None:
        self.builder.file()
        while self.drain.step():
            pass

    def kept(self) -> dict[str, np.ndarray]:
        """The vector of each drawer, by its text."""
        rows = self.builder.palace.db.execute(
            "SELECT d.text, v.vector FROM vectors v JOIN drawers d ON d.n = v.drawer"
            " WHERE v.model = ?",
            (self.number,),
        )
        return {text: np.frombuffer(blob, np.float16).astype(np.float32) for text, blob in rows}

    def check(self) -> None:
        """Every talk drawer has the vector of its present text, and nothing else has one."""
        kept = self.kept()
        texts = [
            text
            for (text,) in self.builder.palace.db.execute(
                "SELECT text FROM drawers WHERE stream = ?", (Stream.TALK,)
            )
        ]
        assert sorted(kept) == sorted(set(texts))
        for text, vector in kept.items():
            assert vector @ Quick().embed([text])[0] > 0.999, text
        db = self.builder.palace.db
        count = db.execute("SELECT COUNT(*) FROM vectors").fetchone()[0]
        assert count == len(texts)
        assert vectors.waiting(db) == 0


def test_talk_is_embedded_and_tools_are_not(builder):
    session = builder.session().prompt("Why is the basket empty?").answer("The cookie expired.")
    session.call("Read", "basket.py").result("def basket(): ...")
    draining = Draining(builder)
    draining.all()
    draining.check()
    assert draining.model.embedded == {"Why is the basket empty?\n\nThe cookie expired.": 1}


def test_each_distinct_text_is_embedded_once(builder):
    for _ in range(40):
        builder.session().prompt("yes").answer("Done.")
    draining = Draining(builder)
    draining.all()
    draining.check()
    assert draining.model.embedded == {"yes\n\nDone.": 1}
    builder.session().prompt("yes").answer("Done.")
    draining.all()
    draining.check()
    assert draining.model.embedded == {"yes\n\nDone.": 1}


def test_what_was_said_last_comes_first(builder):
    for day in (3, 9, 1, 7):
        builder.session(at=f"2026-01-{day:02}T09:00:00Z").prompt(f"on day {day}")
    draining = Draining(builder)
    draining.all()
    assert list(draining.model.embedded) == [f"on day {day}" for day in (9, 7, 3, 1)]


def test_a_window_that_may_grow_waits_until_it_was_still(builder):
    builder.session().prompt("a short one")
    builder.file()
    draining = Draining(builder)
    moments = iter([4.9, 5.1])
    draining.drain._now = lambda: next(moments)  # the builder files at 0
    assert draining.drain.step() == 0
    assert draining.drain.step() == 1


def test_a_drawer_that_grows_while_it_is_embedded_ends_with_its_last_text(builder):
    session = builder.session().prompt("Why is the basket empty?")
    draining = Draining(builder)

    def grow() -> None:
        draining.model.meanwhile = lambda: None
        session.answer("The cookie expired.")
        builder.file()

    draining.model.meanwhile = grow
    draining.all()
    draining.check()
    assert list(draining.kept()) == ["Why is the basket empty?\n\nThe cookie expired."]


def test_one_that_is_deleted_while_it_is_embedded_leaves_no_vector(builder):
    builder.session("a").prompt("to be forgotten")
    builder.session("b").prompt("to stay")
    draining = Draining(builder)

    def delete() -> None:
        draining.model.meanwhile = lambda: None
        choose = forgetting.whole_session("claude-code", "a")
        for _ in forgetting.forget(builder.palace, choose, whole=True):
            pass

    draining.model.meanwhile = delete
    draining.all()
    draining.check()
    assert list(draining.kept()) == ["to stay"]


def test_one_that_is_deleted_and_said_again_under_its_id_has_a_vector(builder):
    """The same words, another row: the row of the outbox alone cannot tell."""
    builder.session().prompt("again and again")
    draining = Draining(builder)

    def replace() -> None:
        draining.model.meanwhile = lambda: None
        with builder.palace.transaction() as db:
            row = db.execute("SELECT exchange, stream, position, start, text FROM drawers")
            values = row.fetchone()
            db.execute("DELETE FROM drawers")
            db.execute(
                "INSERT INTO drawers (exchange, stream, position, start, text)"
                " VALUES (?, ?, ?, ?, ?)",
                values,
            )

    draining.model.meanwhile = replace
    draining.all()
    draining.check()


def test_a_drawer_keeps_no_vector_when_its_row_goes(builder):
    builder.session().prompt("here")
    draining = Draining(builder)
    draining.all()
    with builder.palace.transaction() as db:
        db.execute("DELETE FROM drawers")
    assert builder.palace.db.execute("SELECT COUNT(*) FROM vectors").fetchone() == (0,)


def test_what_no_outbox_names_is_found_and_embedded(builder):
    for number in range(9):
        builder.session().prompt(f"number {number}").call("Read", "x")
    builder.file()
    builder.execute("DELETE FROM outbox")
    draining = Draining(builder)
    last: int | None = 0
    while last is not None:
        with builder.palace.transaction() as db:
            last = vectors.post_missing(db, draining.number, last, limit=4)
    draining.all()
    draining.check()


@pytest.mark.parametrize("exchange", ["known", "unknown"])
def test_rows_that_name_no_drawer_end_and_leave_the_others(builder, exchange):
    builder.session().prompt("here")
    builder.file()
    (known,) = builder.palace.db.execute("SELECT id FROM exchanges").fetchone()
    item = f"{known if exchange == 'known' else '0' * 32}-talk-9"
    builder.execute("INSERT INTO outbox VALUES (?, 'embed', x'00', 0)", item)
    draining = Draining(builder)
    draining.all()
    assert list(draining.kept()) == ["here"]
    with builder.palace.transaction() as db:
        vectors.drop_orphans(db)
    assert vectors.waiting(builder.palace.db) == 0
