"""Chroma's folder is disposable: whatever becomes of it, it is filled from the blobs."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mempalace.filing import forget as forgetting
from mempalace.index import finder as finder_module
from mempalace.index.finder import Finder
from mempalace.index.projection import DRAWERS, client
from mempalace.store import vectors
from mempalace.store.palace import PalaceMoved
from tests.index.quick import Quick
from tests.index.test_drain import Draining
from tests.palace_builder import PalaceBuilder

WORDS = ("basket", "cookie", "invoice", "queue", "index", "feed", "title", "order")


@pytest.fixture(autouse=True)
def chroma_answers_at_once(monkeypatch):
    """Of so few vectors all would be compared; and nobody removes this home."""
    monkeypatch.setattr(finder_module, "_EXACT", 0)
    monkeypatch.setattr(finder_module, "_CALM_SECONDS", 0.0)


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        for number in range(40):
            one, two = WORDS[number % 8], WORDS[number // 5]
            building.session().prompt(f"{one} and {two}, number {number}")
        yield building


class Finding:
    """An index over the builder's palace, as the librarian has it."""

    def __init__(self, builder: PalaceBuilder) -> None:
        self.builder = builder
        self.draining = Draining(builder)
        self.draining.all()
        self.folder = Path(builder.config.home) / "vectors"
        self.finder = self.opened()

    def opened(self) -> Finder:
        return Finder(self.builder.palace, str(self.folder), self.draining.number, "quick 1", 384)

    def follow(self) -> list[str]:
        """Work until it is in step; why it was filled anew, if it was."""
        why: list[str] = []
        while self.finder.step():
            if self.finder.rebuild_reason and self.finder.rebuild_reason not in why[-1:]:
                why.append(self.finder.rebuild_reason)
        assert self.finder.is_in_step
        return why

    def again(self) -> list[str]:
        """As another librarian finds it, after a kill or, if it was closed, after an end."""
        self.finder._chroma._disconnect()
        self.finder = self.opened()
        return self.follow()

    def ids(self) -> list[str]:
        """What Chroma has, seen from outside after a clean end."""
        self.finder.close()
        opened = client(str(self.folder))
        found = sorted(opened.get_collection(DRAWERS, embedding_function=None).get()["ids"])
        opened.close()  # type: ignore[attr-defined]
        return found

    def known_ids(self) -> list[str]:
        rows = self.builder.palace.db.execute(
            "SELECT e.id || '-talk-' || d.position FROM drawers d"
            " JOIN exchanges e ON e.n = d.exchange WHERE d.stream = 0"
        )
        return sorted(item for (item,) in rows)

    def nearest(self, text: str, limit: int = 5, **filters: object) -> list[str]:
        question = Quick().embed([text])[0]
        numbers = None if "exchanges" not in filters else np.array(filters["exchanges"], np.int64)
        found = self.finder.nearest(self.builder.palace.db, question, limit, numbers)
        assert [score for _, score in found] == sorted((s for _, s in found), reverse=True)
        texts = "SELECT text FROM drawers WHERE n = ?"
        return [self.builder.palace.db.execute(texts, (n,)).fetchone()[0] for n, _ in found]


@pytest.fixture
def finding(builder) -> Finding:
    return Finding(builder)


def test_few_vectors_are_all_compared(finding, monkeypatch):
    """A graph passes over some."""
    finding.follow()
    monkeypatch.setattr(finder_module, "_EXACT", 40)
    monkeypatch.setattr(finding.finder._chroma, "nearest", lambda *_: [])
    assert finding.nearest("cookie", 7)
    monkeypatch.setattr(finder_module, "_EXACT", 39)
    assert not finding.nearest("cookie", 7)


def test_the_same_is_found_by_comparing_all_and_by_chroma(finding):
    while not finding.finder.is_loaded:
        finding.finder.step()
    assert not finding.finder.is_in_step
    compared = finding.nearest("cookie", 7)
    finding.follow()
    assert finding.nearest("cookie", 7)[:3] == compared[:3]
    assert all("cookie" in text for text in compared[:3])


def test_below_a_filter_all_that_passes_is_compared(finding):
    finding.follow()
    rows = finding.builder.palace.db.execute(
        "SELECT exchange FROM drawers WHERE text LIKE '%invoice%' AND text NOT LIKE '%cookie%'"
    )
    chosen = [n for (n,) in rows]
    found = finding.nearest("cookie", 50, exchanges=chosen)
    assert len(found) == len(chosen)
    assert all("invoice" in text for text in found)
    assert finding.nearest("cookie", 5, exchanges=[]) == []


def test_a_clean_folder_is_opened_as_it_is(finding):
    assert finding.follow() == ["there is none"]
    finding.finder.close()
    before = finding.draining.model.embedded.total()
    assert finding.again() == []
    assert finding.ids() == finding.known_ids()
    assert finding.draining.model.embedded.total() == before


def test_asking_alone_leaves_it_clean(finding):
    """A kill of a librarian that only answered costs nothing."""
    finding.follow()
    finding.finder.close()
    finding.again()
    finding.nearest("basket")
    assert finding.again() == []  # without a close: as after a kill


def test_a_kill_after_an_addition_costs_a_rebuild(finding):
    finding.follow()
    assert finding.again() == ["its last owner did not close it"]


def test_after_a_while_it_is_clean_without_being_left(finding, monkeypatch):
    finding.follow()
    monkeypatch.setattr(finder_module, "_QUIET_SECONDS", -1.0)
    finding.follow()
    assert finding.nearest("basket")
    assert finding.again() == []


def _folder_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _delete(path: Path) -> None:
    path.unlink()


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _corrupt(path: Path) -> None:
    look = path.stat()
    path.write_bytes(bytes(byte ^ 0x5A for byte in path.read_bytes()) or b"Z")
    os.utime(path, ns=(look.st_atime_ns, look.st_mtime_ns + 1))


@pytest.mark.parametrize("spoil", [_delete, _truncate, _corrupt])
@pytest.mark.parametrize(
    "name", ["chroma.sqlite3", "data_level0.bin", "header.bin", "length.bin", "link_lists.bin"]
)
def test_any_file_that_is_not_as_it_was_left_is_rebuilt(finding, spoil, name):
    finding.follow()
    known = finding.ids()
    (file,) = [f for f in _folder_files(finding.folder) if f.endswith(name)]
    spoil(finding.folder / file)
    embedded = finding.draining.model.embedded.total()
    assert finding.again() == ["its files were changed"]
    assert "cookie" in finding.nearest("cookie")[0]
    assert finding.ids() == known == finding.known_ids()
    assert finding.draining.model.embedded.total() == embedded


@pytest.mark.parametrize("spoil", [_delete, _truncate, _corrupt])
def test_one_that_is_spoilt_while_it_is_open_and_clean_is_rebuilt(finding, spoil, monkeypatch):
    finding.follow()
    monkeypatch.setattr(finder_module, "_QUIET_SECONDS", -1.0)
    assert finding.follow() == []
    monkeypatch.undo()
    assert finding.follow() == []  # nothing but itself has touched it
    (file,) = [f for f in _folder_files(finding.folder) if f.endswith("data_level0.bin")]
    spoil(finding.folder / file)
    assert finding.follow() == ["its files were changed"]
    assert finding.ids() == finding.known_ids()


def _by_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("no folder")


def _by_a_link(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to(folder.parent / "elsewhere")


def _by_a_loop(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")


def _beside_a_file(folder: Path) -> None:
    folder.with_name("vectors.old").write_text("in the way")
    _by_a_file(folder)


@pytest.mark.parametrize("put", [_by_a_file, _by_a_link, _by_a_loop, _beside_a_file])
def test_whatever_is_put_in_its_place_is_rebuilt(finding, put):
    for _ in range(2):
        finding.follow()
        finding.finder.close()
        put(finding.folder)
        assert finding.again() == ["its files were changed"]
    assert "cookie" in finding.nearest("cookie")[0]
    assert finding.ids() == finding.known_ids()


def test_a_panic_of_chromas_is_a_torn_folder(finding, monkeypatch):
    finding.follow()

    class PanicException(BaseException):
        """As Rust's panics come to Python: not an Exception."""

    def panic(*_: object, **__: object) -> None:
        raise PanicException

    monkeypatch.setattr(type(finding.finder._chroma._collection), "query", panic)
    assert "cookie" in finding.nearest("cookie")[0]
    monkeypatch.setattr(type(finding.finder._chroma._collection), "count", panic)
    finding.finder.close()


def test_a_home_that_is_being_removed_is_not_filled_again(finding, monkeypatch):
    """Its files go one by one: the index's may go before palace.db does."""
    finding.follow()
    monkeypatch.setattr(finder_module, "_QUIET_SECONDS", -1.0)
    finding.follow()

    def and_then_the_palace(_: float) -> None:
        (finding.folder.parent / "palace.db").unlink()

    monkeypatch.setattr("mempalace.index.finder.time.sleep", and_then_the_palace)
    shutil.rmtree(finding.folder)
    with pytest.raises(PalaceMoved):
        finding.follow()
    finding.finder.close()
    assert not finding.folder.exists()


def test_a_folder_that_vanished_is_rebuilt(finding):
    finding.follow()
    finding.finder.close()
    shutil.rmtree(finding.folder)
    assert finding.again() == ["its files were changed"]
    assert finding.ids() == finding.known_ids()


def test_files_spoilt_under_an_open_index_do_no_harm(finding):
    """Chroma fails then, sooner or later; every vector is compared meanwhile."""
    finding.follow()
    for file in _folder_files(finding.folder):
        (finding.folder / file).write_bytes(b"spoilt")
    assert "cookie" in finding.nearest("cookie")[0]
    finding.builder.session().prompt("a cookie that is new")
    finding.draining.all()
    while finding.finder.step():
        pass
    assert "a cookie that is new" in finding.nearest("cookie that is new", 3)
    finding.finder.close()
    finding.again()
    assert finding.ids() == finding.known_ids()


@pytest.mark.parametrize(
    "change",
    [
        lambda db: db.execute("UPDATE notes SET value = replace(value, '1.5.9', '0')"),
        lambda db: db.execute("UPDATE notes SET value = '{' WHERE name = 'projection'"),
        lambda db: db.execute("UPDATE notes SET value = replace(value, 'quick 1', 'x')"),
        lambda db: db.execute("DELETE FROM notes WHERE name = 'projection'"),
    ],
    ids=["another Chroma", "no note that can be read", "another model", "no note"],
)
def test_another_version_is_rebuilt(finding, change: Callable[[sqlite3.Connection], object]):
    finding.follow()
    finding.finder.close()
    with finding.builder.palace.transaction() as db:
        change(db)
    (why,) = finding.again()
    assert why in ("another version made it", "there is none")
    assert finding.ids() == finding.known_ids()


def test_a_child_that_dies_opening_it_costs_a_rebuild(finding, monkeypatch):
    finding.follow()
    finding.finder.close()
    monkeypatch.setattr("mempalace.index.projection.sys.executable", "/bin/false")
    assert finding.again() == ["it cannot be opened, or does not hold what it should"]


def test_one_that_is_out_of_step_is_rebuilt(finding):
    finding.follow()
    finding.finder._chroma.remove(finding.known_ids()[:3])  # nobody asked for that
    finding.finder.is_in_step = False
    assert finding.follow() == ["it holds 37 of 40 vectors"]
    assert finding.ids() == finding.known_ids()


def test_what_is_new_grown_and_forgotten_follows(finding):
    finding.follow()
    session = finding.builder.session("new").prompt("a cheese")
    finding.draining.all()
    finding.follow()
    assert finding.nearest("cheese")[0] == "a cheese"
    session.answer("of the moon")
    finding.draining.all()
    finding.follow()
    assert finding.nearest("moon", 1) == ["a cheese\n\nof the moon"]
    for choose in [forgetting.whole_session("claude-code", "new")]:
        for _ in forgetting.forget(finding.builder.palace, choose, whole=True):
            pass
    finding.follow()
    assert "a cheese\n\nof the moon" not in finding.nearest("cheese", 50)
    assert vectors.deletions(finding.builder.palace.db, 9) == []
    assert finding.ids() == finding.known_ids()


def test_a_chroma_that_never_works_is_given_up_and_vectors_still_answer(finding, monkeypatch):
    from mempalace.index.projection import Projection, Torn

    def fail(*_: object) -> None:
        raise Torn("no", "")

    monkeypatch.setattr(Projection, "open", fail)
    monkeypatch.setattr(Projection, "create", fail)
    steps = 0
    while finding.finder.step():
        steps += 1
        assert steps < 50
    assert (finding.finder.given_up, finding.finder.rebuild_reason) == ("no", "")
    assert "cookie" in finding.nearest("cookie")[0]
