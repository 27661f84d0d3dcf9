"""Forks of forks, forks of sub-agents: whatever is read first, and whatever is missing (R1, R3)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from tests.capturing import Capturing
from tests.transcripts.codex_builder import Rollout, stamp, uuid7
from watcher.debts import call_in
from watcher.disk import Disk

TURNS = {"no turn ids": None, "counters": "turn-{}", "UUIDs": ""}
Sessions = dict[str, list[str]]


def _turn(rollout: Rollout, kind: str, asked: str) -> None:
    number = sum(record["type"] == "turn_context" for record in rollout.records) + 1
    name = TURNS[kind]
    rollout.turn(None if name is None else name.format(number))
    rollout.ask(asked).call(f"call-{asked}").result(f"call-{asked}", "r").answer(f"Did: {asked}")


def _line(kind: str, *, words: Sequence[str] = ("p", "c", "g"), more: str = "") -> list[Rollout]:
    """A session, its fork, and a fork of that; the first goes on with `more`."""
    first, second, third = words
    parent = Rollout(1)
    _turn(parent, kind, first)
    child = parent.fork(2)
    _turn(child, kind, second)
    grandchild = child.fork(3)
    _turn(grandchild, kind, third)
    if more:
        _turn(parent, kind, more)
    return [parent, child, grandchild]


def _in_all_orders(size: int) -> Iterable[tuple[int, ...]]:
    return itertools.permutations(range(size))


def _sessions(capturing: Capturing) -> Sessions:
    """The prompts of each session; each must have its answer, once."""
    capturing.check()
    found: Sessions = {}
    for row in capturing.rows():
        said = [text for role, _, text, _, _ in row["records"] if role == "HUMAN"]
        told = [text for role, _, text, _, _ in row["records"] if role == "ASSISTANT"]
        assert told == [f"Did: {text}" for text in said]
        found.setdefault(row["session"], []).extend(said)
    return {session: sorted(texts) for session, texts in found.items()}


def _settle(capturing: Capturing) -> None:
    """What the daemon does at its next scan."""
    for path in call_in(capturing.palace, capturing.config, Disk()):
        capturing.read(Path(path), reread=True)


@pytest.mark.parametrize("kind", TURNS)
@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("more", ["", "more", "c"])
def test_a_fork_of_a_fork_adds_its_own_turns_alone(kind, live, more, tmp_path):
    """R1: all files are there. The first session may go on with the very words of its fork."""
    wanted: Sessions = {
        rollout.session: [words] for rollout, words in zip(_line(kind), "pcg", strict=True)
    }
    wanted[_line(kind)[0].session] += [more] if more else []
    wanted = {session: sorted(texts) for session, texts in wanted.items()}
    for order in _in_all_orders(3):
        home = tmp_path / "".join(map(str, order))
        paths = [rollout.write(home) for rollout in _line(kind, more=more)]
        with Capturing(home / "palace") as capturing:
            for number in order:
                capturing.read(paths[number], cold=not live)
                if live:
                    _settle(capturing)
            capturing.read_ok(*paths)
            _settle(capturing)
            assert _sessions(capturing) == wanted, order


@pytest.mark.parametrize("kind", TURNS)
@pytest.mark.parametrize("settles", [False, True])
def test_files_that_turn_up_one_by_one_add_nothing_twice(kind, settles, tmp_path):
    """R3: a fork was read while its parents were nowhere; its record has a name for each that may
    be the owner."""
    for order in _in_all_orders(3):
        home = tmp_path / "".join(map(str, order))
        rollouts = _line(kind)
        with Capturing(home / "palace") as capturing:
            for number in order:
                capturing.read(rollouts[number].write(home))
                if settles:
                    _settle(capturing)
                capturing.again()  # another process: it looks for parents anew
            _settle(capturing)
            found = _sessions(capturing)
            assert Counter(itertools.chain(*found.values())) == {"p": 1, "c": 1, "g": 1}, order
            assert found[rollouts[2].session] == ["g"]


@pytest.mark.parametrize("kind", TURNS)
@pytest.mark.parametrize("there", [(0, 2), (1, 2), (2,), (0, 1), (1,)])
def test_what_a_missing_file_had_is_told_once_by_its_forks(kind, there, tmp_path):
    wanted = Counter("pcg"[: max(there) + 1])
    for order in itertools.permutations(there):
        home = tmp_path / "".join(map(str, order))
        rollouts = _line(kind)
        paths = {number: rollouts[number].write(home) for number in there}
        with Capturing(home / "palace") as capturing:
            for number in order:
                capturing.read(paths[number])
            _settle(capturing)
            found = _sessions(capturing)
            assert Counter(itertools.chain(*found.values())) == wanted, order
            if there == (0, 2):  # what the first has not is the missing one's
                assert found == {one.session: [w] for one, w in zip(rollouts, "pcg", strict=True)}


@pytest.mark.parametrize("kind", TURNS)
def test_two_forks_that_say_the_same_words_are_two(kind, tmp_path):
    """R1: a second try from the same point is no copy of the first."""
    for order in _in_all_orders(3):
        home = tmp_path / "".join(map(str, order))
        parent = Rollout(1)
        _turn(parent, kind, "p")
        forks = [parent.fork(2), parent.fork(3)]
        for fork in forks:
            _turn(fork, kind, "yes")
        rollouts = [parent, *forks]
        with Capturing(home / "palace") as capturing:
            for number in order:
                capturing.read(rollouts[number].write(home))
            assert _sessions(capturing) == {
                parent.session: ["p"], forks[0].session: ["yes"], forks[1].session: ["yes"],
            }  # fmt: skip


@pytest.mark.parametrize("kind", [*TURNS, "UUIDs of no time"])
@pytest.mark.parametrize("there", [(0, 1, 2), (1, 2)])
def test_what_the_parent_at_hand_has_not_is_the_fork_s_own(kind, there, tmp_path):
    """R3: also where a program goes on at once, so that no pause tells."""
    name = {**TURNS, "UUIDs of no time": "00000000-0000-4000-8000-00000000000{}"}[kind]
    line = [Rollout(1)]
    for number, words in enumerate("pcg", 1):
        rollout = line[-1] if number == 1 else line[-1].fork(number)
        if number == 1:
            rollout.turn(None if name is None else name.format(number))
        else:
            line.append(rollout.wait(-30).turn(None if name is None else name.format(number)))
        rollout.ask(words).answer(f"Did: {words}")
    for order in itertools.permutations(there):
        home = tmp_path / "".join(map(str, order))
        paths = {number: line[number].write(home) for number in there}
        with Capturing(home / "palace") as capturing:
            for number in order:
                capturing.read(paths[number])
            _settle(capturing)
            found = _sessions(capturing)
            assert Counter(itertools.chain(*found.values())) == {"p": 1, "c": 1, "g": 1}
            assert found[line[2].session] == ["g"]


@pytest.mark.parametrize("kind", ["no turn ids", "counters"])
def test_what_an_elder_one_said_later_at_the_same_place_is_no_copy(kind, tmp_path):
    """R1: the nearest file tells what was copied; two honest prompts stay two."""
    parent = Rollout(1)
    _turn(parent, kind, "p")
    child = parent.fork(2)
    _turn(child, kind, "c")
    grandchild = child.fork(3).wait(-30)
    _turn(grandchild, kind, "yes")
    _turn(parent, kind, "q")
    _turn(parent, kind, "yes")
    line = [parent, child, grandchild]
    for order in _in_all_orders(3):
        home = tmp_path / "".join(map(str, order))
        paths = [rollout.write(home) for rollout in line]
        with Capturing(home / "palace") as capturing:
            for number in order:
                capturing.read(paths[number])
            _settle(capturing)
            assert _sessions(capturing) == {
                parent.session: ["p", "q", "yes"], child.session: ["c"],
                grandchild.session: ["yes"],
            }  # fmt: skip


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_copy_that_was_held_up_goes_on_where_ids_tell_so(order, tmp_path):
    parent = Rollout(1)
    for words in ("p", "q"):
        _turn(parent, "UUIDs", words)
    fork = parent.fork(2)
    begins = [n for n, record in enumerate(fork.records) if "task_started" in str(record)]
    for record in fork.records[begins[1] :]:
        record["timestamp"] = stamp(fork.began + timedelta(seconds=9))
    _turn(fork.wait(9), "UUIDs", "own")
    paths = [parent.write(tmp_path), fork.write(tmp_path)]
    with Capturing(tmp_path / "palace") as capturing:
        for number in order:
            capturing.read(paths[number])
        _settle(capturing)
        assert _sessions(capturing) == {parent.session: ["p", "q"], fork.session: ["own"]}


def test_a_slow_copy_has_no_pause_for_its_forks_either(tmp_path):
    """Lines that tell of no turn tell the time: all are written one after the other."""
    parent = Rollout(1)
    _turn(parent, "no turn ids", "p")
    _turn(parent, "no turn ids", "q")
    child = parent.fork(2)
    for number, record in enumerate(child.records[1:]):
        record["timestamp"] = stamp(child.began + timedelta(seconds=0.9 * number))
    child.wait(30)
    _turn(child, "no turn ids", "c")
    grandchild = child.fork(3)
    _turn(grandchild, "no turn ids", "g")
    line = [parent, child, grandchild]
    for order in _in_all_orders(3):
        home = tmp_path / "".join(map(str, order))
        paths = [rollout.write(home) for rollout in line]
        with Capturing(home / "palace") as capturing:
            for number in order:
                capturing.read(paths[number])
            _settle(capturing)
            assert _sessions(capturing) == {
                parent.session: ["p", "q"], child.session: ["c"], grandchild.session: ["g"],
            }  # fmt: skip


class TestOtherClocks:
    """Ids whose times have nothing to do with those of the lines, as in samples/codex/fork."""

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    @pytest.mark.parametrize("kind", ["of another year", "of no time"])
    def test_the_fork_s_own_words_are_its_own_in_any_order(self, kind, order, tmp_path):
        """R3: `forget` of the parent's session must not take them."""

        def turn(number: int) -> str:
            if kind == "of no time":
                return f"0190000{number}-0000-4000-8000-00000000000{number}"
            return f"01900000-000{number}-7000-8000-00000000000{number}"

        ids = [turn(number) for number in (1, 3)]
        parent = Rollout(1, id=ids[0])
        parent.session = ids[0]
        parent.turn(turn(2)).ask("p").answer("Did: p")
        child = parent.fork(2, id=ids[1])
        child.session = ids[1]
        child.turn(turn(4)).ask("c").answer("Did: c")
        with Capturing(tmp_path / "palace") as capturing:
            for number in order:
                capturing.read([parent, child][number].write(tmp_path))
            _settle(capturing)
            assert _sessions(capturing) == {ids[0]: ["p"], ids[1]: ["c"]}


def _sub_agent(parent: Rollout, number: int, *, copies: bool) -> Rollout:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": parent.session, "depth": 1}}}
    if copies:
        agent = parent.fork(number, source=source)
    else:
        agent = Rollout(number, source=source, thread_source="subagent")
    return agent.turn().ask("task").answer("Did: task")


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("there", [(0, 1, 2), (1, 2), (0, 2), (2,)])
def test_a_fork_of_a_sub_agent_s_thread_has_the_human_s_words_alone(copies, there, tmp_path):
    """R1: what a machine wrote to a machine is no prompt, not in a human's copy of it either."""
    make: Callable[[], list[Rollout]] = lambda: _forked_agent(copies=copies)  # noqa: E731 - short
    for order in itertools.permutations(there):
        home = tmp_path / "".join(map(str, order))
        rollouts = make()
        paths = {number: rollouts[number].write(home) for number in there}
        with Capturing(home / "palace") as capturing:
            for number in order:
                capturing.read(paths[number])
            _settle(capturing)
            wanted = {rollouts[2].session: ["own"]}
            if copies or 0 in there:
                wanted[rollouts[0].session] = ["p"]
            assert _sessions(capturing) == wanted, order


@pytest.mark.parametrize("copies", [False, True])
def test_where_agents_are_kept_a_fork_of_theirs_adds_nothing(copies, tmp_path):
    """R3: the same names, whoever tells it."""
    for order in _in_all_orders(3):
        home = tmp_path / "".join(map(str, order))
        paths = [rollout.write(home) for rollout in _forked_agent(copies=copies)]
        with Capturing(home / "palace", subagents=True) as capturing:
            for number in order:
                capturing.read(paths[number])
            _settle(capturing)
            assert capturing.words() == sorted(
                [("ASSISTANT", "task"), ("ASSISTANT", "Did: task"), ("ASSISTANT", "Did: p"),
                 ("ASSISTANT", "Did: own"), ("HUMAN", "p"), ("HUMAN", "own")]
            )  # fmt: skip


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_task_that_cannot_be_told_from_a_copy_is_no_prompt(order, tmp_path):
    """R1: no ids, no pause, no parent. What is not beyond doubt a human's is the agent's, for the
    agent's file and for a fork of it."""
    parent = Rollout(1)
    _turn(parent, "no turn ids", "p")
    agent = parent.fork(2, source={"subagent": "review"}).wait(-30).turn(None)
    agent.ask("task").answer("Did: task")
    fork = agent.fork(3)
    _turn(fork, "no turn ids", "own")
    with Capturing(tmp_path / "palace") as capturing:
        for number in order:
            capturing.read([agent, fork][number].write(tmp_path))
        _settle(capturing)
        assert _sessions(capturing) == {fork.session: ["own"]}


def _forked_agent(*, copies: bool) -> list[Rollout]:
    parent = Rollout(1)
    _turn(parent, "UUIDs", "p")
    agent = _sub_agent(parent, 2, copies=copies)
    fork = agent.fork(3)
    fork.turn().ask("own").answer("Did: own")
    return [parent, agent, fork]


def test_a_chain_of_forks_longer_than_what_is_kept_of_parents(tmp_path):
    """R8: nobody reads the same parents again and again for it."""
    line = [Rollout(1)]
    _turn(line[0], "no turn ids", "turn 1")
    for number in range(2, 25):
        line.append(line[-1].fork(number))
        _turn(line[-1], "no turn ids", f"turn {number}")
    paths = [rollout.write(tmp_path) for rollout in line]
    disk = _Counting()
    with Capturing(tmp_path / "palace", disk=disk) as capturing:
        capturing.read_ok(paths[-1])
        assert disk.opened <= 2 * len(line)
        capturing.read_ok(*paths)
        _settle(capturing)
        wanted = {one.session: [f"turn {n}"] for n, one in enumerate(line, 1)}
        assert _sessions(capturing) == wanted


class _Counting(Disk):
    def __init__(self) -> None:
        super().__init__()
        self.opened = 0

    def open(self, path: str) -> int:
        self.opened += 1
        return super().open(path)


def test_sessions_that_name_each_other_as_parents_are_read(tmp_path):
    """R6: nothing like it was seen; it must not go round in circles."""
    one, other = Rollout(1), Rollout(2)
    for rollout, parent in ((one, other), (other, one)):
        rollout.line("session_meta", {"id": parent.session, "cwd": "/repo/shop"})
        rollout.turn(uuid7(rollout.now, 7)).ask(f"by {rollout.session}").answer("A.")
    paths = [one.write(tmp_path), other.write(tmp_path)]
    with Capturing(tmp_path / "palace") as capturing:
        capturing.read_ok(*paths)
        assert len(capturing.prompts()) == 2
