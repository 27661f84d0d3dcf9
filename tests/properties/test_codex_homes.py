"""A Codex home says the same whatever file of it is read first, live or at once (R1, R3).

Forks copy their parents, old rollouts are moved and compressed, and come back.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

import watcher.tail
from tests.capturing import Capturing
from tests.samples import SAMPLES, needs_samples
from tests.transcripts.codex_builder import MORNING, Rollout, packed
from watcher.capture import Result

_LIVE_STEPS = 3


def _parent(**given) -> Rollout:
    return Rollout(1, **given).turn().ask("build").answer("Built.").turn().ask("yes").answer("Yes.")


def _on(rollout: Rollout, *prompts: str) -> Rollout:
    for prompt in prompts:
        rollout.turn().ask(prompt).answer(f"Did: {prompt}")
    return rollout


def _simple() -> list[Rollout]:
    parent = _parent()
    fork = _on(parent.fork(2), "yes", "try this")
    return [_on(parent, "go on", "yes"), fork]


def _fork_of_fork() -> list[Rollout]:
    parent = _parent()
    fork = _on(parent.fork(2), "second")
    again = _on(fork.fork(3), "third", "yes")
    other = _on(parent.fork(4), "fourth")
    return [parent, _on(fork, "second, more"), again, other]


def _reference() -> list[Rollout]:
    parent = _parent(mode="paginated")
    base = {"thread_id": parent.session, "end_ordinal_exclusive": 7, "end_byte_offset": 1200}
    fork = Rollout(2, mode="paginated", forked_from_id=parent.session, history_base=base)
    return [parent, _on(fork, "yes", "other")]


def _without_turn_ids() -> list[Rollout]:
    parent = Rollout(1).turn(None).ask("build").answer("Built.").turn(None).ask("yes").answer("Y.")
    fork = parent.fork(2).turn(None).ask("yes").answer("No.").turn(None).ask("new").answer("N.")
    return [parent.turn(None).ask("yes").answer("Again."), fork]


def _opaque_turn_ids() -> list[Rollout]:
    """Counters, as any session has them."""
    parent = Rollout(1).turn("turn-1").ask("build").answer("Built.").turn("turn-2").ask("yes")
    fork = parent.answer("Y.").fork(2).turn("turn-3").ask("yes").answer("No.")
    other = Rollout(5).turn("turn-1").ask("build").answer("Built.")
    return [parent.turn("turn-3").ask("yes").answer("Again."), fork, other]


def _older_lines() -> list[Rollout]:
    """Replayed as they were, so older than the fork's header."""
    parent = _parent()
    return [parent, _on(parent.fork(2, restamped=False), "own")]


def _prompt_at_once() -> list[Rollout]:
    """`codex fork ID "words"`: no human needs to type."""
    parent = Rollout(1).turn(None).ask("build").answer("Built.")
    fork = parent.fork(2).ask("at once").answer("A.")
    return [parent.turn(None).ask("later").answer("L."), fork]


def _event_before_its_turn() -> list[Rollout]:
    """The event of a fork's own prompt stands before the turn that it begins."""
    parent = _parent()
    fork = parent.fork(2).wait(60).event("user_message", message="own")
    return [parent, fork.turn().answer("O.")]


def _with_agents() -> list[Rollout]:
    """Sub-agents: one that copied its parent, and one of today that has only its header."""
    parent = _parent()
    source = {"subagent": {"thread_spawn": {"parent_thread_id": parent.session}}}
    old = _on(parent.fork(2, source=source), "search")
    new = Rollout(3, source=source, thread_source="subagent")
    new.line("session_meta", parent.records[0]["payload"])
    return [parent, old, _on(new, "look it up")]


def _resumed() -> list[Rollout]:
    """The same session in the same file, and after a revert in another one."""
    parent = _parent()
    resumed = _on(parent, "resumed").line("session_meta", parent.records[0]["payload"])
    return [_on(resumed, "yes")]


HOMES: dict[str, tuple[Callable[[], list[Rollout]], dict[str, int]]] = {
    "simple": (_simple, {"build": 1, "yes": 3, "go on": 1, "try this": 1}),
    "fork of a fork": (_fork_of_fork, {
        "build": 1, "yes": 2, "second": 1, "second, more": 1, "third": 1, "fourth": 1}),
    "reference fork": (_reference, {"build": 1, "yes": 2, "other": 1}),
    "no turn ids": (_without_turn_ids, {"build": 1, "yes": 3, "new": 1}),
    "opaque turn ids": (_opaque_turn_ids, {"build": 2, "yes": 3}),
    "older lines": (_older_lines, {"build": 1, "yes": 1, "own": 1}),
    "prompt at once": (_prompt_at_once, {"build": 1, "at once": 1, "later": 1}),
    "event before its turn": (_event_before_its_turn, {"build": 1, "yes": 1, "own": 1}),
    "agents": (_with_agents, {"build": 1, "yes": 1}),
    "resumed": (_resumed, {"build": 1, "yes": 2, "resumed": 1}),
}  # fmt: skip


def _lay(rollouts: Iterable[Rollout], home: Path) -> list[Path]:
    return [rollout.write(home) for rollout in rollouts]


def _grow(capturing: Capturing, paths: Sequence[Path], *, live: Sequence[bool]) -> None:
    """Files appear and grow in this order; those that are not live are there at once."""
    contents = {path: path.read_bytes() for path in paths}
    for path in paths:
        path.unlink()
    for path, grows in zip(paths, live, strict=True):
        whole = contents[path].splitlines(keepends=True)
        steps = _LIVE_STEPS if grows else 1
        for step in range(steps):
            part = whole[len(whole) * step // steps : len(whole) * (step + 1) // steps]
            with path.open("ab") as file:
                file.write(b"".join(part))
            capturing.read(path, cold=not grows)
    for path in paths:
        capturing.read(path)


def _prompts(capturing: Capturing) -> Counter[str]:
    capturing.check()
    return Counter(capturing.prompts())


def _by_session(capturing: Capturing) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in capturing.rows():
        for role, _, text, _, _ in row["records"]:
            if role == "HUMAN":
                found.setdefault(row["session"], []).append(text)
    return {session: sorted(texts) for session, texts in found.items()}


class TestOrders:
    """R1: which words are stored does not depend on the order of reading."""

    @pytest.mark.parametrize("name", HOMES)
    def test_each_prompt_is_stored_once_in_any_order(self, name, tmp_path):
        make, expected = HOMES[name]
        found = []
        for number, order in enumerate(itertools.permutations(range(len(make())))):
            for live in (False, True):
                home = tmp_path / f"{number}-{live}"
                paths = _lay(make(), home)
                with Capturing(home / "palace") as capturing:
                    for path in (paths[n] for n in order):
                        capturing.read(path, cold=not live)
                    for path in paths:
                        capturing.read(path)
                    assert _prompts(capturing) == expected
                    found.append((capturing.words(), _by_session(capturing)))
        assert all(one == found[0] for one in found)

    @pytest.mark.parametrize("name", HOMES)
    def test_each_prompt_is_stored_once_while_files_appear_and_grow(self, name, tmp_path):
        make, expected = HOMES[name]
        size = len(make())
        words = set()
        for number, order in enumerate(itertools.permutations(range(size))):
            live = [(number + place) % 2 == 0 for place in range(size)]
            home = tmp_path / str(number)
            paths = _lay(make(), home)
            with Capturing(home / "palace") as capturing:
                _grow(capturing, [paths[n] for n in order], live=live)
                assert _prompts(capturing) == expected, order
                words.add(str(capturing.words()))
        assert len(words) == 1

    @pytest.mark.parametrize("place", ["archived_sessions", "sessions/2025/01/01"])
    @pytest.mark.parametrize("end", ["", ".zst"])
    def test_a_parent_elsewhere_in_the_home_is_found(self, place, end, tmp_path):
        parent, fork = _simple()
        path = fork.write(tmp_path)
        where = parent.write(tmp_path, place, name=parent.name + end)
        for order in ([path, where], [where, path]):
            with Capturing(tmp_path / f"palace-{order[0] == path}") as capturing:
                capturing.read_ok(order[0])
                if order[0] == path:
                    assert _by_session(capturing) == {fork.session: ["try this", "yes"]}
                capturing.read_ok(order[1])
                assert _prompts(capturing) == HOMES["simple"][1]

    @needs_samples
    @pytest.mark.parametrize(
        ("folder", "sessions"),
        [
            ("fork", {
                "01900000-0000-7000-8000-000000000001": ["parent question"],
                "01900000-0010-7000-8000-000000000002": ["child question"],
                "01900000-0020-7000-8000-000000000003": ["reference-fork question"],
            }),
            ("set", {
                "11111111-1111-4111-8111-111111111111": ["List the synthetic files."],
                "22222222-2222-4222-8222-222222222222": ["Spawn a synthetic researcher."],
                "44444444-4444-4444-8444-444444444444": ["Open the synthetic legacy session."],
                "55555555-5555-4555-8555-555555555555": ["Archived synthetic prompt."],
                "66666666-6666-4666-8666-666666666666": ["Safe line before malformed input."],
                "77777777-7777-4777-8777-777777777777": ["List the synthetic files."],
            }),
        ],
    )  # fmt: skip
    def test_the_homes_among_the_samples_are_read_once_in_any_order(
        self, folder, sessions, tmp_path
    ):
        home = tmp_path / folder
        shutil.copytree(SAMPLES / "codex" / folder, home)
        files = sorted(path for path in home.rglob("*") if path.is_file())
        orders = list(itertools.permutations(files))
        words = set()
        for number, order in enumerate(orders[:: max(1, len(orders) // 40)]):
            with Capturing(tmp_path / f"palace-{number}") as capturing:
                for place, path in enumerate(order):
                    capturing.read(path, cold=(number + place) % 2 == 0)
                for path in files:
                    capturing.read(path)
                capturing.check()
                assert _by_session(capturing) == sessions
                words.add(str(capturing.words()))
        assert len(words) == 1


class TestMissingParents:
    """R3: with the parent nowhere its turns are stored under its session; once when it turns up."""

    @pytest.mark.parametrize(
        "name", ["simple", "no turn ids", "opaque turn ids", "older lines", "prompt at once"]
    )
    def test_the_turns_are_the_parent_s_and_are_known_when_it_turns_up(self, name, tmp_path):
        make, expected = HOMES[name]
        parent, fork, *_ = make()
        whole = _lay(make(), tmp_path / "whole")
        with Capturing(tmp_path / "whole" / "palace") as capturing:
            capturing.read_ok(*whole)
            wanted = _by_session(capturing)
        path = fork.write(tmp_path)
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(path)
            alone = _by_session(capturing)
            assert set(alone[parent.session]) >= {"build"}
            if name != "prompt at once":  # nothing tells it from the copy
                assert alone[fork.session] == wanted[fork.session]
            capturing.read_ok(parent.write(tmp_path), path)
            for other in make()[2:]:
                capturing.read_ok(other.write(tmp_path))
            assert _prompts(capturing) == expected
            if name != "prompt at once":
                assert _by_session(capturing) == wanted

    @pytest.mark.parametrize("missing", [[0], [1], [0, 1]])
    def test_each_turn_of_a_fork_of_a_fork_goes_to_its_own_ancestor(self, missing, tmp_path):
        rollouts = _fork_of_fork()
        parent, fork, again, _ = rollouts
        there = [one.write(tmp_path) for n, one in enumerate(rollouts[:3]) if n not in missing]
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(*reversed(there))
            found = _by_session(capturing)
            assert found[parent.session] == ["build", "yes"]
            assert set(found[fork.session]) >= {"second"}
            assert found[again.session] == ["third", "yes"]
            capturing.read_ok(*_lay(rollouts, tmp_path))
            assert _prompts(capturing) == HOMES["fork of a fork"][1]

    def test_a_sub_agent_tells_its_lost_parent_s_turns_and_nothing_of_its_own(self, tmp_path):
        parent, old, new = _with_agents()
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(old.write(tmp_path), new.write(tmp_path))
            assert _by_session(capturing) == {parent.session: ["build", "yes"]}
            assert not any("search" in text for _, text in capturing.words())
            capturing.read_ok(parent.write(tmp_path))
            assert _prompts(capturing) == HOMES["agents"][1]

    def test_the_time_of_a_copied_turn_is_when_it_began(self, tmp_path):
        parent, fork = _simple()
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(fork.write(tmp_path))
            started = min(row["started"] for row in capturing.rows())
        latest = (parent.began + timedelta(minutes=1)).timestamp() * 1e6
        assert MORNING.timestamp() * 1e6 <= started < latest


class TestPlaces:
    """R4: moved, compressed, unpacked: the same rollout."""

    def _check(self, capturing: Capturing, *prompts: str) -> None:
        assert _prompts(capturing) == Counter(prompts)

    def test_an_archived_rollout_is_known(self, tmp_path):
        path = _parent().write(tmp_path)
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(path)
            moved = tmp_path / "archived_sessions" / path.name
            moved.parent.mkdir()
            path.rename(moved)
            outcomes = capturing.read(moved)
            assert [o.result for o in outcomes] == [Result.NOTHING]
            with moved.open("ab") as file:
                file.write(_on(_parent(), "more").bytes()[moved.stat().st_size :])
            capturing.read_ok(moved)
            self._check(capturing, "build", "yes", "more")

    def test_a_compressed_one_is_known_and_so_is_the_plain_one_that_comes_back(self, tmp_path):
        rollout = _parent()
        path = rollout.write(tmp_path)
        packed_path = path.with_name(path.name + ".zst")
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(path)
            rows = capturing.rows()
            packed_path.write_bytes(packed(rollout.bytes()))
            assert [o.result for o in capturing.read(packed_path)] == [Result.NOTHING]
            path.unlink()
            assert [o.result for o in capturing.read(packed_path)] == [Result.NOTHING]
            assert capturing.rows() != []
            assert [r["records"] for r in capturing.rows()] == [r["records"] for r in rows]
            path.write_bytes(_on(rollout, "more").bytes())
            packed_path.unlink()
            capturing.read_ok(path)
            self._check(capturing, "build", "yes", "more")

    def test_a_plain_file_wins_over_its_packed_twin(self, tmp_path):
        rollout = _parent()
        packed_path = rollout.write(tmp_path, name=rollout.name + ".zst")
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(packed_path)
            self._check(capturing, "build", "yes")
            path = _on(rollout, "more").write(tmp_path)
            for one in (packed_path, path, packed_path):
                capturing.read(one)
            self._check(capturing, "build", "yes", "more")

    @pytest.mark.parametrize("part", [0.3, 0.9])
    def test_a_torn_packed_file_fails_and_is_read_when_it_is_whole(self, part, tmp_path):
        rollout = _parent()
        content = packed(rollout.bytes())
        path = rollout.write(tmp_path, name=rollout.name + ".zst")
        path.write_bytes(content[: int(len(content) * part)])
        with Capturing(tmp_path / "palace") as capturing:
            assert [o.result for o in capturing.read(path)] == [Result.FAILED]
            assert capturing.rows() == []
            path.write_bytes(content)
            capturing.read_ok(path)
            self._check(capturing, "build", "yes")

    def test_what_is_no_zstd_at_all_fails(self, tmp_path):
        path = tmp_path / "rollout-x.jsonl.zst"
        path.write_bytes(b"plain")
        with Capturing(tmp_path / "palace") as capturing:
            assert [o.result for o in capturing.read(path)] == [Result.FAILED]

    def test_a_torn_twin_does_not_hide_a_parent(self, tmp_path):
        parent, fork = _simple()
        parent.write(tmp_path)
        torn = parent.write(tmp_path, name=parent.name + ".zst")
        torn.write_bytes(torn.read_bytes()[:20])
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(fork.write(tmp_path))
            assert _by_session(capturing) == {fork.session: ["try this", "yes"]}

    def test_a_reverted_session_goes_on_in_another_file(self, tmp_path):
        rollout = _parent()
        path = rollout.write(tmp_path)
        reverted = _on(_parent(), "another way")
        with Capturing(tmp_path / "palace") as capturing:
            name = rollout.name.replace(".jsonl", "_2.jsonl")
            capturing.read_ok(path, reverted.write(tmp_path, name=name))
            assert _by_session(capturing) == {rollout.session: ["another way", "build", "yes"]}


class TestStops:
    """R5, R8: wherever reading stops, and whatever the size of a read."""

    @pytest.mark.parametrize("name", HOMES)
    @pytest.mark.parametrize("alone", [False, True])
    def test_stopping_after_every_record_gives_the_same_rows(self, name, alone, tmp_path):
        rollouts = HOMES[name][0]()
        file = rollouts[1 if len(rollouts) > 1 else 0]
        if not alone:
            _lay(rollouts, tmp_path)
        path = file.write(tmp_path)
        content = path.read_bytes()
        with Capturing(tmp_path / "whole") as capturing:
            capturing.read(path)
            whole = capturing.rows()
        path.write_bytes(b"")
        with Capturing(tmp_path / "stops") as capturing:
            for number, line in enumerate(content.splitlines(keepends=True)):
                with path.open("ab") as stream:
                    stream.write(line)
                capturing.read(path, cold=number % 2 == 0)
                if number % 3 == 0:
                    capturing.again()
            capturing.read(path)
            assert capturing.rows() == whole

    @pytest.mark.parametrize("name", HOMES)
    @pytest.mark.parametrize("end", ["", ".zst"])
    def test_every_read_size_gives_the_same_rows(self, name, end, tmp_path, monkeypatch):
        rollouts = HOMES[name][0]()
        file = rollouts[1 if len(rollouts) > 1 else 0]
        path = file.write(tmp_path, name=file.name + end)
        with Capturing(tmp_path / "whole") as capturing:
            capturing.read(path)
            whole = capturing.rows()
        for block, piece in ((13, 50), (64, 1_000), (1_000, 3_000)):
            monkeypatch.setattr(watcher.tail, "BLOCK", block)
            with Capturing(tmp_path / f"size-{block}") as capturing:
                monkeypatch.setattr(capturing.capture, "_piece", piece)
                monkeypatch.setattr(capturing.capture, "_adapt", lambda *_: None)
                capturing.read(path)
                assert capturing.rows() == whole, (block, piece)
