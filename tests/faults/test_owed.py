"""A fork leaves its parent's turns to a parent; what if that one never tells them? (R1, R3)"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mempalace.filing import forget
from mempalace.store import debts
from tests.capturing import Capturing
from tests.command import mempalace
from tests.transcripts.codex_builder import Rollout
from watcher.debts import call_in
from watcher.disk import Disk
from watcher.scan import scan


def _home(folder: Path, *, turns: bool = True) -> tuple[Path, Path]:
    """A parent of two prompts and a fork with one more."""
    name = "" if turns else None
    parent = Rollout(1).turn(name).ask("build").answer("Built.").turn(name).ask("yes").answer("Y.")
    fork = parent.fork(2).turn(name).ask("other").answer("O.")
    return parent.write(folder), fork.write(folder)


def _settle(capturing: Capturing) -> list[str]:
    """What the daemon does at its next scan, for files that are called in."""
    called = call_in(capturing.palace, capturing.config, Disk())
    for path in called:
        capturing.read(Path(path), reread=True)
    return called


def _owed(capturing: Capturing) -> int:
    return int(capturing.palace.db.execute("SELECT COUNT(*) FROM owed").fetchone()[0])


ALL = [
    ("ASSISTANT", "Built."), ("ASSISTANT", "O."), ("ASSISTANT", "Y."),
    ("HUMAN", "build"), ("HUMAN", "other"), ("HUMAN", "yes"),
]  # fmt: skip


@pytest.fixture
def capturing(tmp_path):
    with Capturing(tmp_path / "palace") as made:
        yield made


@pytest.mark.parametrize("turns", [True, False], ids=["turn ids", "no turn ids"])
def test_a_parent_that_vanishes_unread_is_told_by_its_fork(tmp_path, capturing, turns):
    parent, fork = _home(tmp_path, turns=turns)
    capturing.read_ok(fork)
    assert capturing.prompts() == ["other"]
    assert _settle(capturing) == []  # the parent is there, and unread: it is waited for
    parent.unlink()

    assert _settle(capturing) == [str(fork)]

    assert capturing.words() == ALL
    sessions = {row["records"][0][2]: row["session"] for row in capturing.rows()}
    assert sessions["build"] == sessions["yes"] == Rollout(1).session
    assert sessions["other"] != Rollout(1).session
    assert _settle(capturing) == []
    capturing.check()


def test_a_parent_that_was_read_in_part_is_completed(tmp_path, capturing):
    """The prompt was stored from the parent; its answer stands in the copy alone."""
    parent, fork = _home(tmp_path)
    whole = parent.read_bytes()
    capturing.read_ok(fork)
    parent.write_bytes(whole[: whole.index(b"Built.")].rpartition(b"\n")[0] + b"\n")
    capturing.read_ok(parent)

    assert _settle(capturing) == [str(fork)]

    assert capturing.words() == ALL
    (build,) = [row for row in capturing.rows() if row["records"][0][2] == "build"]
    assert [text for _, _, text, _, _ in build["records"]] == ["build", "Built."]


def test_a_parent_that_is_read_pays(tmp_path, capturing):
    parent, fork = _home(tmp_path)
    capturing.read_ok(fork)
    assert _owed(capturing) == 4
    capturing.read_ok(parent)

    assert _settle(capturing) == []

    assert _owed(capturing) == 0
    parent.unlink()
    assert _settle(capturing) == []
    assert capturing.words() == ALL


def test_a_parent_that_comes_back_adds_nothing(tmp_path, capturing):
    parent, fork = _home(tmp_path)
    content = parent.read_bytes()
    capturing.read_ok(fork)
    parent.unlink()
    _settle(capturing)
    ids = sorted(row["id"] for row in capturing.rows())

    parent.write_bytes(content)
    capturing.read_ok(parent)
    capturing.read_ok(fork)

    assert sorted(row["id"] for row in capturing.rows()) == ids
    assert capturing.words() == ALL


def test_what_was_forgotten_is_not_called_in(tmp_path, capturing):
    """R4: not from the copy either."""
    parent, fork = _home(tmp_path)
    capturing.read_ok(parent)
    for _ in forget.forget(
        capturing.palace, forget.whole_session("codex", Rollout(1).session), whole=True
    ):
        pass
    capturing.read_ok(fork)
    parent.unlink()

    for _ in range(2):
        _settle(capturing)

    assert capturing.words() == [("ASSISTANT", "O."), ("HUMAN", "other")]


def test_an_excluded_parent_keeps_its_words(tmp_path):
    """R10: the fork was left them by a session that may not be stored."""
    parent, fork = _home(tmp_path)
    with Capturing(tmp_path / "palace", exclude=(f"*{Rollout(1).session}*",)) as capturing:
        capturing.read_ok(fork)
        for _ in range(2):
            assert _settle(capturing) == []
        parent.unlink()
        _settle(capturing)
        assert capturing.words() == [("ASSISTANT", "O."), ("HUMAN", "other")]


def test_the_fork_of_a_sub_agent_tells_the_human_words_it_copied(tmp_path, capturing):
    parent = Rollout(1).turn().ask("build").answer("Built.")
    source = {"subagent": {"thread_spawn": {"parent_thread_id": parent.session, "depth": 1}}}
    fork = parent.fork(2, source=source).turn().ask("look around").answer("Looked.").write(tmp_path)
    parent_path = parent.write(tmp_path)
    capturing.read_ok(fork)
    assert capturing.words() == []
    parent_path.unlink()

    _settle(capturing)

    assert capturing.words() == [("ASSISTANT", "Built."), ("HUMAN", "build")]


class TestRoots:
    """R1, R7: nobody reads a parent that lies below no root, though it is there."""

    def _lay(self, folder: Path, place: str) -> tuple[Path, Path]:
        parent = Rollout(1).turn().ask("build").answer("Built.").turn().ask("yes").answer("Y.")
        fork = parent.fork(2).turn().ask("other").answer("O.")
        return parent.write(folder, place), fork.write(folder)

    @pytest.mark.parametrize("is_linked", [False, True])
    def test_a_parent_below_no_root_is_told_by_its_fork(self, tmp_path, is_linked):
        parent, fork = self._lay(tmp_path / "codex", "archived_sessions")
        root = tmp_path / "codex" / "sessions"
        if is_linked:
            (tmp_path / "link").symlink_to(root)
        roots = (tmp_path / "link" if is_linked else root,)
        with Capturing(tmp_path / "palace", codex_roots=roots) as capturing:
            capturing.read_ok(fork)
            assert capturing.prompts() == ["other"]

            assert _settle(capturing) == [str(fork)]

            assert capturing.words() == ALL
            ids = sorted(row["id"] for row in capturing.rows())
            capturing.read_ok(parent)  # R3: somebody reads it after all
            assert _settle(capturing) == []
            assert sorted(row["id"] for row in capturing.rows()) == ids

    def test_a_parent_below_a_root_is_waited_for(self, tmp_path):
        parent, fork = self._lay(tmp_path / "codex", "archived_sessions")
        folders = ("sessions", "archived_sessions")
        roots = tuple(tmp_path / "codex" / name for name in folders)
        with Capturing(tmp_path / "palace", codex_roots=roots) as capturing:
            capturing.read_ok(fork)
            assert _settle(capturing) == []
            capturing.read_ok(parent)
            assert _settle(capturing) == []
            assert capturing.words() == ALL

    def test_files_outside_of_all_roots_are_named_by_somebody(self, tmp_path):
        """The parent may be named next, so it is waited for, and counted for all to see."""
        parent, fork = self._lay(tmp_path / "elsewhere", "sessions/2026/03/01")
        roots = (tmp_path / "codex" / "sessions",)
        with Capturing(tmp_path / "palace", codex_roots=roots) as capturing:
            capturing.read_ok(fork)
            assert _settle(capturing) == []
            assert debts.count(capturing.palace.db) == 4
            capturing.read_ok(parent)
            assert debts.count(capturing.palace.db) == 0
            assert capturing.words() == ALL


def test_what_two_forks_owe_is_counted_once_until_it_is_called_in(tmp_path, capturing):
    """R7: words that nobody has told yet."""
    parent, fork = _home(tmp_path)
    again = Rollout(1).turn().ask("build").answer("Built.").turn().ask("yes").answer("Y.").fork(3)
    capturing.read_ok(fork, again.turn().ask("third").answer("T.").write(tmp_path))
    assert debts.count(capturing.palace.db) == 4
    parent.unlink()

    _settle(capturing)

    assert debts.count(capturing.palace.db) == 0


def test_the_scan_finds_what_was_called_in(tmp_path, capturing):
    parent, fork = _home(tmp_path)
    capturing.read_ok(fork)
    parent.unlink()
    call_in(capturing.palace, capturing.config, Disk())

    found = scan(capturing.palace, capturing.config, Disk(), [str(tmp_path / "sessions")])

    assert [one.path for one in found.files] == [str(fork)]
    assert found.bytes == 0  # it is stale, not unread


def _exported() -> list[str]:
    done = mempalace("export", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    return sorted(json.loads(line)["human"] for line in done.stdout.splitlines())


@pytest.mark.parametrize("command", [("watch", "--once"), ("backfill",)])
def test_the_commands_do_it(tmp_path, command):
    codex = Path(os.environ["HOME"]) / ".codex"
    parent, fork = _home(codex)
    assert mempalace("backfill", str(fork)).returncode == 0
    assert _exported() == ["other"]
    parent.unlink()

    assert mempalace(*command).returncode == 0

    assert _exported() == ["build", "other", "yes"]
