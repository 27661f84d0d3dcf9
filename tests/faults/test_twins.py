"""A rollout and its compressed twin side by side: both are read, and nothing twice (R1, R3, R7)."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

import watcher.tail
from tests.capturing import Capturing
from tests.transcripts.codex_builder import Rollout, packed
from watcher.capture import Result
from watcher.disk import Disk
from watcher.scan import scan

ORDERS = [(0, 1), (1, 0)]


def _rollout(turns: int, **given) -> Rollout:
    rollout = Rollout(1, **given)
    for number in range(turns):
        rollout.turn().ask(f"prompt {number}").answer(f"Did: {number}")
    return rollout


def _lay(folder: Path, plain: bytes, inside: bytes) -> list[Path]:
    path = _rollout(0).write(folder)
    path.write_bytes(plain)
    twin = path.with_name(path.name + ".zst")
    twin.write_bytes(packed(inside))
    return [path, twin]


def _behind(capturing: Capturing, folder: Path) -> list[str]:
    found = scan(capturing.palace, capturing.config, Disk(), [str(folder / "sessions")])
    return [one.path for one in found.files]


@pytest.fixture
def capturing(tmp_path):
    with Capturing(tmp_path / "palace") as made:
        yield made


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize(("plain", "inside"), [(2, 2), (2, 3), (3, 2), (0, 2)])
def test_the_words_of_both_are_stored_once_and_none_is_unread(
    tmp_path, capturing, plain, inside, cold, order
):
    paths = _lay(tmp_path, _rollout(plain).bytes(), _rollout(inside).bytes())

    for number in order:
        capturing.read(paths[number], cold=cold)

    most = max(plain, inside)
    assert sorted(capturing.prompts()) == [f"prompt {number}" for number in range(most)]
    assert len(capturing.words()) == 2 * most
    capturing.check()
    assert _behind(capturing, tmp_path) == []
    assert all(o.result is Result.NOTHING for path in paths for o in capturing.read(path))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("turns", ["", None])
@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_torn_plain_copy_hides_nothing(tmp_path, capturing, cut, turns, order):
    """R1: the last lines stand in the compressed one alone."""
    rollout = Rollout(1).turn(turns).ask("one").answer("A.").turn(turns).ask("two").answer("B.")
    paths = _lay(tmp_path, rollout.bytes()[:-cut], rollout.bytes())

    for number in order:
        capturing.read(paths[number])

    assert sorted(capturing.words()) == [
        ("ASSISTANT", "A."), ("ASSISTANT", "B."), ("HUMAN", "one"), ("HUMAN", "two"),
    ]  # fmt: skip
    assert _behind(capturing, tmp_path) == []


def test_a_twin_of_another_content_is_read_as_a_whole(tmp_path, capturing):
    other = Rollout(1).turn("turn-x").ask("else").answer("E.")
    paths = _lay(tmp_path, _rollout(2).bytes(), other.bytes())
    capturing.read_ok(*paths)
    assert sorted(capturing.prompts()) == ["else", "prompt 0", "prompt 1"]
    assert _behind(capturing, tmp_path) == []


def test_each_goes_on_by_itself(tmp_path, capturing):
    """Codex compresses, then unpacks and goes on; either file may be gone in between."""
    plain, twin = _lay(tmp_path, _rollout(2).bytes(), _rollout(2).bytes())
    capturing.read_ok(plain, twin)
    plain.write_bytes(_rollout(3).bytes())
    capturing.read_ok(plain, twin)
    assert len(capturing.prompts()) == 3
    plain.unlink()
    assert _behind(capturing, tmp_path) == []
    plain.write_bytes(_rollout(4).bytes())
    twin.unlink()
    capturing.read_ok(plain)
    assert len(capturing.prompts()) == 4
    assert _behind(capturing, tmp_path) == []


def test_a_torn_twin_is_named_and_harms_nothing(tmp_path, capturing):
    """R7: what is in it cannot be known."""
    plain, twin = _lay(tmp_path, _rollout(2).bytes(), _rollout(2).bytes())
    twin.write_bytes(twin.read_bytes()[:-20])
    capturing.read_ok(plain)
    assert [o.result for o in capturing.read(twin)] == [Result.FAILED]
    assert len(capturing.prompts()) == 2
    assert _behind(capturing, tmp_path) == [str(twin)]


def test_an_excluded_twin_stays_out(tmp_path):
    """R10: neither its words nor its name."""
    plain, twin = _lay(tmp_path, _rollout(2).bytes(), _rollout(3).bytes())
    with Capturing(tmp_path / "palace", exclude=("/repo/shop",)) as capturing:
        for path in (plain, twin):
            capturing.read(path)
        assert capturing.rows() == []
        names = [name for (name,) in capturing.palace.db.execute("SELECT path FROM files")]
        assert not any(plain.name in name for name in names)
        assert _behind(capturing, tmp_path) == []


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (2, 1, 0), (1, 2, 0)])
def test_a_fork_knows_the_turns_of_both(tmp_path, capturing, order):
    """R3: what only the compressed parent has is left to it."""
    parent = _rollout(3)
    paths = _lay(tmp_path, _rollout(2).bytes(), parent.bytes())
    paths.append(parent.fork(2).turn().ask("own").answer("O.").write(tmp_path))
    for number in order:
        capturing.read(paths[number])
    sessions = {row["records"][0][2]: row["session"] for row in capturing.rows()}
    assert [sessions[f"prompt {number}"] for number in range(3)] == [parent.session] * 3
    assert len(capturing.prompts()) == len(sessions) == 4


def _alone(folder: Path, content: bytes) -> Path:
    path = _rollout(0).write(folder)
    path.unlink()
    twin = path.with_name(path.name + ".zst")
    twin.write_bytes(packed(content))
    return twin


def test_a_packed_file_that_was_read_in_part_is_behind(tmp_path, capturing):
    """R1: the next process must find it; a size on disk tells nothing of how far it was read."""
    path = _alone(tmp_path, _rollout(40).bytes())
    vars(capturing.capture).update(_piece=1, _adapt=lambda *_: None)
    with patch.object(watcher.tail, "BLOCK", 700):
        assert capturing.capture.read(str(path), cold=True).more
    capturing.again()
    assert _behind(capturing, tmp_path) == [str(path)]
    capturing.read(path)
    assert len(capturing.prompts()) == 40
    assert _behind(capturing, tmp_path) == []


def test_a_packed_file_with_a_tail_is_behind_until_it_was_read_as_cold(tmp_path, capturing):
    path = _alone(tmp_path, _rollout(2).bytes().rstrip(b"\n"))
    capturing.read(path, cold=False)
    assert _behind(capturing, tmp_path) == [str(path)]
    capturing.read(path)
    assert len(capturing.words()) == 4
    assert _behind(capturing, tmp_path) == []
