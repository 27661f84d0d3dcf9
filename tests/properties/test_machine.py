"""Whatever becomes of the files and of the process, the palace settles on the model (R1-R5).

A state machine writes transcripts of both agents line by line and byte by byte, truncates,
rewrites, replaces, moves, packs and deletes them, forks and resumes sessions, loses and doubles
events, lets the process die and lets another be first, and forgets. The model knows of every line
which records stand in it; a record is in the palace, once, if a read was over it while it was on
disk, or if it is on disk when everything is settled, unless it was forgotten.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import watcher.tail
from mempalace.filing import forget as forgetting
from mempalace.store.palace import Palace
from tests.capturing import Capturing
from tests.transcripts.builder import Session
from tests.transcripts.codex_builder import MODES, MORNING, Rollout, packed
from watcher.capture import Capture, Outcome, Result
from watcher.commit import commit as store
from watcher.debts import call_in
from watcher.disk import Disk, Look
from watcher.roots import Folders
from watcher.scan import scan

Spoken = Counter[tuple[str, str]]
_BLOCK = 700  # bytes a read: a file of this machine is many pieces
_QUIET = (Result.NOTHING, Result.EMPTY, Result.UNRECOGNISED)
_TOKEN = re.compile(r"zq\d{4}x")
_WHICH = st.integers(0, 11)


class Died(BaseException):
    """The process ends here."""


class Shaky(Disk):
    """Time and inodes as the machine says; a read that fails; another process between two looks."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 1_000.0
        self.inodes: dict[int, int] = {}  # by what the file system really says
        self.fails_after: int | None = None
        self.meanwhile: Callable[[], None] | None = None
        self._looks = 0

    def look(self, path: str) -> Look:
        return self._named(super().look(path))

    def open(self, path: str) -> int:
        self._looks = 0
        return super().open(path)

    def look_at(self, descriptor: int) -> Look:
        self._looks += 1
        if self._looks == 2 and self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
        return self._named(super().look_at(descriptor))

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise OSError(errno.EIO, "the disk does not answer")
        return super().read(descriptor, length, offset)

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds

    def _named(self, look: Look) -> Look:
        return replace(look, inode=self.inodes.get(look.inode, look.inode))


@dataclass(frozen=True)
class Record:
    """What a human or an agent said, and the exchange that it belongs to."""

    exchange: int
    role: str
    text: str


def _sorted(records: set[Record]) -> list[Record]:
    return sorted(records, key=lambda record: (record.exchange, record.role, record.text))


@dataclass
class Log:
    """A transcript: what its writer knows, and what stands on disk."""

    path: Path
    source: str
    teller: Session | Rollout
    content: bytes = b""
    pending: bytes = b""  # said, and not on disk yet
    is_there: bool = False
    inode: int = 0
    is_fork: bool = False  # it leaves to its parent what it has from it, while that is there

    @property
    def is_packed(self) -> bool:
        return self.path.suffix == ".zst"


@dataclass
class Model:
    """Which lines say what, and what must be in the palace."""

    lines: dict[bytes, frozenset[Record]] = field(default_factory=dict)
    seen: set[Record] = field(default_factory=set)
    forgotten: set[int] = field(default_factory=set)  # exchanges

    def on(self, content: bytes, *, cold: bool) -> set[Record]:
        """The records in whole lines; a cold file's last one needs no newline."""
        *whole, last = content.split(b"\n")
        found = [
            self.lines.get(line, frozenset()) for line in [*whole, last][: None if cold else -1]
        ]
        return set().union(*found)

    def words(self) -> Spoken:
        return Counter((r.role, r.text) for r in self.seen if r.exchange not in self.forgotten)


class Machine(RuleBasedStateMachine):
    """Each rule is one thing that happens to the files or to the process."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._patch = patch.object(watcher.tail, "BLOCK", _BLOCK)
        self._patch.start()
        self.root = Path(self._folder.name) / "files"
        self.disk = Shaky()
        self.capturing = Capturing(Path(self._folder.name) / "palace", disk=self.disk)
        self.model = Model()
        self.logs: list[Log] = []
        self._counts = dict.fromkeys(
            ("line", "word", "exchange", "session", "write", "inode", "stamp"), 0
        )
        self._start()

    def teardown(self) -> None:
        try:
            self.settle(by_scan=False)
        finally:
            self.capturing.palace.close()
            self._patch.stop()
            self._folder.cleanup()

    # --- the writers ------------------------------------------------------------------------------

    @initialize(mode=st.sampled_from(MODES))
    def begin(self, mode: str) -> None:
        self._claude()
        self._codex(mode)
        for log in self.logs:
            self._say(log, 1, repeats=False)
            self._append(log, len(log.pending))

    @rule(mode=st.sampled_from(MODES), is_claude=st.booleans())
    def new_session(self, mode: str, is_claude: bool) -> None:
        if len(self.logs) < 8:
            log = self._claude() if is_claude else self._codex(mode)
            self._say(log, 1, repeats=False)

    @rule(which=_WHICH, turns=st.integers(1, 3), repeats=st.booleans())
    def append(self, which: int, turns: int, repeats: bool) -> None:
        log = self._log(which)
        if self._can_grow(log):
            self._say(log, turns, repeats=repeats)
            self._append(log, len(log.pending))

    @rule(which=_WHICH, cut=st.floats(0, 1), repeats=st.booleans())
    def append_a_part(self, which: int, cut: float, repeats: bool) -> None:
        """Up to any byte: a torn line, a whole one without its newline, half an exchange."""
        log = self._log(which)
        if self._can_grow(log):
            if not log.pending:
                self._say(log, 1, repeats=repeats)
            self._append(log, 1 + int(cut * (len(log.pending) - 1)))

    @rule(which=_WHICH)
    def append_up_to_a_newline(self, which: int) -> None:
        """Without it, or with it: what a cold read may take, and what it must."""
        log = self._log(which)
        if self._can_grow(log):
            if not log.pending:
                self._say(log, 1, repeats=False)
            self._append(log, log.pending.index(b"\n") or 1)

    @rule(which=_WHICH)
    def complete(self, which: int) -> None:
        log = self._log(which)
        if self._can_grow(log):
            self._append(log, len(log.pending))

    @rule(which=_WHICH, first=_WHICH, count=st.integers(1, 4))
    def replay(self, which: int, first: int, count: int) -> None:
        """Claude Code appends what is there already (a second /compact); Codex only its header."""
        log = self._log(which)
        if self._can_grow(log) and log.content:
            header, *known = self._exchanges(log)
            self._begin_a_line(log)
            if log.source == "claude-code":
                first %= len(known) or 1
                log.pending += b"".join(map(self._closed, known[first : first + count]))
            elif log.pending in (b"", b"\n"):
                log.pending += self._closed(header)
            self._append(log, len(log.pending))

    @rule(which=_WHICH, anew=st.booleans(), restamped=st.booleans())
    def fork(self, which: int, anew: bool, restamped: bool) -> None:
        """Another session with the same records; or, `anew`, a resume: new uuids, the same times
        (Claude Code), the same session in another file (Codex)."""
        origin = self._log(which)
        if len(self.logs) >= 8 or not origin.is_there or not self._records(origin):
            return
        if origin.source == "claude-code":
            # One copy keeps the uuids, another the times: nothing but the origin joins the two. If
            # that were gone unread, nobody could tell that they are the same words.
            self.read(which, cold=True)
            self._fork_claude(origin, anew=anew, restamped=restamped and not anew)
        else:
            self._fork_codex(origin, anew=anew, restamped=restamped)

    # --- what becomes of files --------------------------------------------------------------------

    @rule(which=_WHICH, keep=st.floats(0, 1), at_a_line=st.booleans())
    def truncate(self, which: int, keep: float, at_a_line: bool) -> None:
        log = self._log(which)
        if self._can_grow(log):
            length = int(keep * len(log.content))
            if at_a_line:
                length = log.content.rfind(b"\n", 0, length) + 1
            self._rewrite(log, log.content[:length])

    @rule(which=_WHICH, keep=st.integers(0, 5))
    def rewrite_the_end_at_the_same_size(self, which: int, keep: int) -> None:
        log = self._log(which)
        if self._can_grow(log):
            known = self._exchanges(log)
            kept, others = known[: 1 + keep % len(known)], known[1 + keep % len(known) :]
            made = [self._others(one) for one in others]
            is_middle = any(one in others for one in made)  # something behind it stays as it was
            if is_middle:  # of a grown file only its edges are compared (docs/adr/0004)
                self.read(which, cold=True)
            self._rewrite(log, b"".join([*kept, *made]))
            if is_middle:
                self.read(which, cold=True)

    @rule(which=_WHICH, at=st.integers(0, 5))
    def rewrite_an_exchange_at_the_same_size(self, which: int, at: int) -> None:
        """Anywhere in what was read. It is read before it grows again: of a grown file only the
        first 4 KiB and the last one are compared (docs/adr/0004)."""
        log = self._log(which)
        if self._can_grow(log) and log.content.endswith(b"\n"):
            self.read(which, cold=True)
            known = self._exchanges(log)
            known[at % len(known)] = self._others(known[at % len(known)])
            self._rewrite(log, b"".join(known))
            self.read(which, cold=True)

    @rule(which=_WHICH, keeps=st.booleans(), how=st.sampled_from(["rename", "copytruncate"]))
    def replace(self, which: int, keeps: bool, how: str) -> None:
        """By a new file under the old name; or its content moves to another and it starts anew."""
        log = self._log(which)
        if log.is_packed or not log.is_there:
            return
        self._drop(log)
        old = log.content
        self._say(log, 1, repeats=False)
        content = (self._closed(old) if keeps else self._head(log)) + log.pending
        log.pending = b""
        if how == "rename":
            log.content = content
            aside = log.path.with_name("new.tmp")
            self._put(log, aside)
            aside.rename(log.path)
        else:
            if len(self.logs) < 8:
                self._other_file(log, old)
            self._rewrite(log, content)

    @rule(which=_WHICH)
    def delete(self, which: int) -> None:
        log = self._log(which)
        if log.is_there:
            log.path.unlink()
            log.is_there = False
            log.pending = b""

    @rule(which=_WHICH, same_inode=st.booleans(), same_words=st.booleans())
    def recreate(self, which: int, same_inode: bool, same_words: bool) -> None:
        """A deleted file's name is taken again, and maybe its inode."""
        gone = [log for log in self.logs if not log.is_there and log.inode and not log.is_packed]
        if gone:
            log = gone[which % len(gone)]
            if not same_words:
                log.content = self._head(log)
                self._say(log, 2, repeats=False)
                log.content += log.pending
                log.pending = b""
            self._put(log, log.path, inode=log.inode if same_inode else 0)

    @rule(which=_WHICH, inode_of=_WHICH)
    def create_at_an_inode_that_was_used(self, which: int, inode_of: int) -> None:
        """Another session's first file gets the inode of a deleted one."""
        gone = [log for log in self.logs if not log.is_there and log.inode]
        young = [log for log in self.logs if not log.inode and log.pending]
        if gone and young:
            log = young[which % len(young)]
            log.content, log.pending = log.pending, b""
            old = gone[inode_of % len(gone)]
            self._put(log, log.path, inode=old.inode)
            old.inode = -1  # not to be given away twice
            old.content = b""

    @rule(which=_WHICH)
    def move(self, which: int) -> None:
        log = self._log(which)
        if log.is_there:
            other = {"sessions": "archived_sessions", "archived_sessions": "sessions"}
            folder = log.path.parent.name
            target = log.path.parent.parent / other.get(folder, folder + "-moved") / log.path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                log.path = log.path.rename(target)

    @rule(which=_WHICH, cold=st.booleans(), is_seen_double=st.booleans())
    def pack(self, which: int, cold: bool, is_seen_double: bool) -> None:
        """Codex compresses an old rollout; for a moment both are there."""
        log = self._log(which)
        if log.source == "codex" and not log.is_packed and log.is_there and log.content:
            self._drop(log)
            self._swap(log, log.path.with_name(log.path.name + ".zst"), cold, is_seen_double)

    @rule(which=_WHICH, cold=st.booleans(), is_seen_double=st.booleans())
    def unpack(self, which: int, cold: bool, is_seen_double: bool) -> None:
        log = self._log(which)
        if log.is_packed and log.is_there:
            self._swap(log, log.path.with_suffix(""), cold, is_seen_double)

    # --- the process ------------------------------------------------------------------------------

    @rule(which=_WHICH, cold=st.booleans())
    def read(self, which: int, cold: bool) -> None:
        log = self._log(which)
        if log.is_there:
            self._look(log, cold=cold)

    @rule(which=_WHICH, cold=st.booleans())
    def read_twice(self, which: int, cold: bool) -> None:
        self.read(which, cold)
        self.read(which, cold)

    @rule(which=_WHICH, cold=st.booleans(), pieces=st.integers(1, 4))
    def stop_between_pieces(self, which: int, cold: bool, pieces: int) -> None:
        log = self._log(which)
        if log.is_there:
            for _ in range(pieces):
                if not self.capturing.capture.read(str(log.path), cold=cold).more:
                    break
            self._note(log)
            self._start()

    @rule(which=_WHICH, cold=st.booleans(), place=st.sampled_from(["begin", "middle", "end"]))
    def die_in_the_transaction(self, which: int, cold: bool, place: str) -> None:
        log = self._log(which)
        if log.is_there:
            before = self.capturing.words()
            with self._deadly_commit(place):
                try:
                    self.capturing.read(log.path, cold=cold)
                except Died:
                    self._start()
            assert self.capturing.words() == before  # all of it or nothing

    @rule(which=_WHICH, cold=st.booleans(), reads=st.integers(0, 6))
    def fail_to_read(self, which: int, cold: bool, reads: int) -> None:
        log = self._log(which)
        if log.is_there:
            self.disk.fails_after = reads
            self.capturing.read(log.path, cold=cold)
            self.disk.fails_after = None
            self._note(log)

    @rule(which=_WHICH, cold=st.booleans(), grows=st.booleans())
    def be_overtaken(self, which: int, cold: bool, grows: bool) -> None:
        """Another process reads the file between this one's look and its transaction."""
        log = self._log(which)
        if not log.is_there:
            return
        others: list[Outcome] = []

        def other() -> None:
            if grows and self._can_grow(log):
                self._say(log, 1, repeats=False)
                self._append(log, len(log.pending))
            with Palace.writer(self.capturing.home) as palace:
                capture = self._capture(palace)
                others.append(capture.read(str(log.path), cold=cold))
                while others[-1].more:
                    others.append(capture.read(str(log.path), cold=cold))

        self.disk.meanwhile = other
        outcomes = self.capturing.read(log.path, cold=cold)
        self.disk.meanwhile = None
        if sum(one.bytes_read for one in others):
            assert Result.OVERTAKEN in [one.result for one in outcomes]
        if log.is_there:
            self._look(log, cold=cold)

    @rule()
    def restart(self) -> None:
        self._start()

    @rule()
    def wait(self) -> None:
        self.disk.seconds += 60

    # --- forgetting -------------------------------------------------------------------------------

    @precondition(lambda self: self.model.seen)
    @rule(which=_WHICH, whole=st.booleans())
    def forget(self, which: int, whole: bool) -> None:
        rows = self.capturing.rows()
        if not rows:
            return
        row = rows[which % len(rows)]
        going = [one for one in rows if one["session"] == row["session"]] if whole else [row]
        gone = [self._exchange_of(one) for one in going]
        if None in gone:
            return  # nothing but words that were said twice: the model cannot tell which
        source = "codex" if "-7000-" in row["session"] else "claude-code"
        choose = (
            forgetting.whole_session(source, row["session"])
            if whole
            else forgetting.these([row["id"]])
        )
        for _ in forgetting.forget(self.capturing.palace, choose, whole=whole):
            pass
        self.model.forgotten |= {one for one in gone if one is not None}

    def _exchange_of(self, row: dict[str, Any]) -> int | None:
        texts = {text for _, _, text, _, _ in row["records"]}
        found = {
            record.exchange
            for records in self.model.lines.values()
            for record in records
            if record.text in texts and _TOKEN.fullmatch(record.text)
        }
        assert len(found) <= 1, "an exchange holds words of another one"
        return found.pop() if found else None

    # --- the model --------------------------------------------------------------------------------

    @rule(by_scan=st.booleans())
    def settle(self, by_scan: bool) -> None:
        """Read all that is behind until nothing is new; then the palace is the model."""
        for _ in range(4):
            results = [
                outcome.result for path in self._behind(by_scan) for outcome in self._all(path)
            ]
            for owing in call_in(self.capturing.palace, self.capturing.config, self.disk):
                results += [one.result for one in self.capturing.read(Path(owing), reread=True)]
            if all(result in _QUIET for result in results):
                break
        for log in self.logs:
            if log.is_there:
                self.model.seen |= self.model.on(log.content, cold=True)
        assert Counter(self.capturing.words()) == self.model.words()
        self.capturing.check()
        self._check_checkpoints()
        before = self._dump()
        for path in self._behind(by_scan=False):
            assert all(outcome.result in _QUIET for outcome in self._all(path)), path.name
        assert self._dump() == before  # reading once more changes nothing

    def _behind(self, by_scan: bool) -> list[Path]:
        """What the daemon's walk finds to read; or simply every file."""
        if not by_scan:
            return [log.path for log in self.logs if log.is_there]
        found = scan(self.capturing.palace, self.capturing.config, self.disk, [str(self.root)])
        assert not found.unreadable
        # A file that was emptied is left alone until there is something in it again.
        emptied = [log.path for log in self.logs if log.is_there and not log.content]
        return [*(Path(one.path) for one in found.files), *emptied]

    def _all(self, path: Path) -> list[Outcome]:
        return self.capturing.read(path)

    def _check_checkpoints(self) -> None:
        rows = self.capturing.palace.db.execute(
            "SELECT path, offset FROM files WHERE source <> '' AND gone_at IS NULL"
        )
        content = {str(log.path): log.content for log in self.logs if log.is_there}
        for path, offset in rows.fetchall():
            if path in content and offset:
                assert content[path][offset - 1 : offset] == b"\n", (path, offset)
        waiting = "SELECT COUNT(*) FROM keys WHERE key IN (SELECT key FROM tombstones)"
        assert self.capturing.palace.db.execute(waiting).fetchone()[0] == 0

    def _dump(self) -> tuple[list[Any], list[Any]]:
        files = "SELECT path, source, generation, offset, tail, size, state FROM files ORDER BY n"
        return self.capturing.rows(), self.capturing.palace.db.execute(files).fetchall()

    # --- how it is done ---------------------------------------------------------------------------

    def _next(self, name: str) -> int:
        self._counts[name] += 1
        return self._counts[name]

    def _log(self, which: int) -> Log:
        return self.logs[which % len(self.logs)]

    def _start(self) -> None:
        """The process ends, and another begins."""
        self.capturing.palace.close()
        self.capturing.palace = Palace.writer(self.capturing.home)
        self.capturing.capture = self._capture(self.capturing.palace)

    def _capture(self, palace: Palace) -> Capture:
        capture = Capture(palace, self.capturing.config, self.disk, folder_of=Folders(palace))
        vars(capture).update(_piece=1, _adapt=lambda *_: None)
        return capture

    @contextmanager
    def _deadly_commit(self, place: str) -> Iterator[None]:
        """It dies before anything is stored, before the checkpoint moves, or at the very end."""

        def commit(*given: Any, **named: Any) -> Any:
            if place == "end":
                store(*given, **named)
            raise Died

        seam = "watcher.commit.checkpoints.save" if place == "middle" else "watcher.capture.commit"
        with patch(seam, commit):
            yield

    def _look(self, log: Log, *, cold: bool) -> None:
        for outcome in self.capturing.read(log.path, cold=cold):
            assert outcome.result in (Result.READ, *_QUIET), outcome
        self._see(log, cold=cold)

    def _see(self, log: Log, *, cold: bool) -> None:
        """It was read: all that stands in it is in the palace, or is still owed by its parent."""
        if log.is_fork:
            self._note(log)
        else:
            self.model.seen |= self.model.on(log.content, cold=cold)

    def _note(self, log: Log) -> None:
        """A reading that was stopped: what it stored is in the palace, and stays (R4). Words that
        were said twice are counted; they are taken in the order of the file."""
        stored = Counter(self.capturing.words())
        for line in log.content.split(b"\n"):
            for record in _sorted(set(self.model.lines.get(line, ()))):
                said = (record.role, record.text)
                if record not in self.model.seen and self.model.words()[said] < stored[said]:
                    self.model.seen.add(record)

    def _claude(self) -> Log:
        session = Session(f"5f0c7a60-0000-4000-8000-0000000000{self._next('session'):02x}")
        path = self.root / "projects" / "shop" / f"{session.session}.jsonl"
        self.logs.append(Log(path, "claude-code", session))
        return self.logs[-1]

    def _codex(self, mode: str) -> Log:
        number = self._next("session")
        rollout = Rollout(number, at=MORNING + timedelta(minutes=number), mode=mode)
        log = Log(self.root / "codex" / "sessions" / rollout.name, "codex", rollout)
        log.pending = rollout.bytes()
        rollout.records = []
        self.logs.append(log)
        return log

    def _head(self, log: Log) -> bytes:
        """How its session begins: Codex writes a header."""
        first, newline, _ = log.content.partition(b"\n")
        return first + newline if log.source == "codex" else b""

    def _begin_a_line(self, log: Log) -> None:
        """A writer that begins again leaves no two records on one line."""
        if log.content and not log.content.endswith(b"\n") and not log.pending:
            log.pending = b"\n"

    def _say(self, log: Log, turns: int, *, repeats: bool) -> None:
        """Exchanges that are not on disk yet."""
        self._begin_a_line(log)
        for _ in range(turns):
            exchange = self._next("exchange")
            asked = "yes" if repeats else self._word()
            records = [Record(exchange, "HUMAN", asked)]
            records += [
                Record(exchange, "ASSISTANT", self._word()) for _ in range(1 + exchange % 2)
            ]
            self._tell(log, records)
            for line in log.teller.lines():
                self._learn(line, records)
                log.pending += line
            log.teller.records = []

    def _word(self) -> str:
        return f"zq{self._next('word'):04}x"

    def _tell(self, log: Log, records: list[Record]) -> None:
        asked, *answers = records
        if isinstance(log.teller, Session):
            log.teller._count = self._next("line")  # no two lines have one time
            log.teller.user(asked.text)
            for answer in answers:
                log.teller._count = self._next("line")
                log.teller.text(answer.text)
            self._counts["line"] = log.teller._count + 1
        else:
            log.teller.now = MORNING + timedelta(hours=9, minutes=self._next("line"))
            log.teller.turn().ask(asked.text)
            for answer in answers:
                log.teller.answer(answer.text)

    def _learn(self, line: bytes, records: list[Record]) -> None:
        said = [record for record in records if f'"{record.text}"'.encode() in line]
        if said:
            self.model.lines[line.removesuffix(b"\n")] = frozenset(said)

    def _exchanges(self, log: Log) -> list[bytes]:
        """What is on disk, cut before each exchange; a header stands alone."""
        found = [b""]
        for line in log.content.splitlines(keepends=True):
            said = self.model.lines.get(line.removesuffix(b"\n"), frozenset())
            is_first = log.source == "claude-code" and any(r.role == "HUMAN" for r in said)
            if is_first or b'"task_started"' in line:
                found.append(b"")
            found[-1] += line
        return found

    def _others(self, exchange: bytes) -> bytes:
        """Another exchange of the same length: its words, and all that names it, are others. One
        that says no words of its own stays as it is."""
        lines = exchange.split(b"\n")
        records = set().union(*(self.model.lines.get(line, frozenset()) for line in lines))
        if not records or any(not _TOKEN.fullmatch(record.text) for record in records):
            return exchange
        number = self._next("exchange")
        new = {record: Record(number, record.role, self._word()) for record in _sorted(records)}
        made = exchange
        for record, other in new.items():
            made = made.replace(record.text.encode(), other.text.encode())
        mark = f"{number:04x}".encode()
        made = re.sub(rb'("uuid":")[0-9a-f]{4}', rb"\g<1>" + mark, made)
        made = re.sub(rb'("turn_id":"[0-9a-f-]{24})[0-9a-f]{4}', rb"\g<1>" + mark, made)
        for old, line in zip(lines, made.split(b"\n"), strict=True):
            if old in self.model.lines:
                said = frozenset(new[record] for record in self.model.lines[old])
                self.model.lines[line] = said
        return made

    def _records(self, log: Log) -> list[tuple[bytes, Any]]:
        """The whole lines on disk that are records."""
        found = []
        for line in log.content.split(b"\n")[:-1]:
            try:
                found.append((line, json.loads(line)))
            except ValueError:
                continue
        return found

    def _fork_claude(self, origin: Log, *, anew: bool, restamped: bool) -> None:
        known = self._records(origin)
        log = self._claude()
        assert isinstance(log.teller, Session)
        source = Session(origin.teller.session)
        source.records = [record for _, record in known]
        copy = source.copied(session=log.teller.session, anew=anew)
        for record in copy.records if restamped else []:
            record["timestamp"] = f"2026-02-03T08:00:00.{self._next('stamp') % 1000:03}Z"
        self._copied(log, [line for line, _ in known], copy.lines())

    def _fork_codex(self, origin: Log, *, anew: bool, restamped: bool) -> None:
        known = self._records(origin)
        assert isinstance(origin.teller, Rollout)
        if anew:
            self._other_file(origin, origin.content[: origin.content.rfind(b"\n") + 1])
            return
        number = self._next("session")
        source = Rollout(1, mode=origin.teller.mode)
        source.session = origin.teller.session
        source.records = [record for _, record in known]
        source.now = MORNING + timedelta(hours=9, minutes=self._next("line"))
        copy = source.fork(number, restamped=restamped)
        log = Log(self.root / "codex" / "sessions" / copy.name, "codex", copy, is_fork=True)
        self.logs.append(log)
        header, *lines = copy.lines()
        log.pending = header
        self._copied(log, [line for line, _ in known], lines)
        copy.records = []

    def _copied(self, log: Log, before: list[bytes], lines: list[bytes]) -> None:
        for old, line in zip(before, lines, strict=True):
            log.pending += line
            if old in self.model.lines:
                self.model.lines[line.removesuffix(b"\n")] = self.model.lines[old]
        self._append(log, len(log.pending))

    def _other_file(self, log: Log, content: bytes) -> None:
        """A copy beside it, under another name of the same session."""
        name = log.path.name.replace(".jsonl", f"_{self._next('session')}.jsonl")
        copy = Log(log.path.with_name(name), log.source, log.teller, content, is_fork=log.is_fork)
        self.logs.append(copy)
        self._put(copy, copy.path)

    # --- files ------------------------------------------------------------------------------------

    def _can_grow(self, log: Log) -> bool:
        return not log.is_packed and (log.is_there or not log.inode)

    def _closed(self, content: bytes) -> bytes:
        return content if content.endswith(b"\n") or not content else content + b"\n"

    def _drop(self, log: Log) -> None:
        """Its writer ends with something unsaid."""
        log.pending = b""

    def _append(self, log: Log, length: int) -> None:
        if log.is_there:
            with log.path.open("ab") as file:
                file.write(log.pending[:length])
            self._stamp(log.path)
        log.content += log.pending[:length]
        log.pending = log.pending[length:]
        if not log.is_there and log.content:
            self._put(log, log.path)

    def _rewrite(self, log: Log, content: bytes) -> None:
        """In place: the same inode."""
        self._drop(log)
        log.content = content
        if log.is_there:
            log.path.write_bytes(content)
            self._stamp(log.path)

    def _put(self, log: Log, path: Path, *, inode: int = 0) -> None:
        """A new file, with an inode of its own unless one is given."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed(log.content) if path.suffix == ".zst" else log.content)
        self._stamp(path)
        log.inode = inode if inode > 0 else self._next("inode")
        self.disk.inodes[path.stat().st_ino] = log.inode
        log.is_there = True

    def _stamp(self, path: Path) -> None:
        at = self._next("write") * 10**9
        os.utime(path, ns=(at, at))

    def _swap(self, log: Log, path: Path, cold: bool, is_seen_double: bool) -> None:
        old = log.path
        if path.exists():
            return
        self._put(log, path)
        if is_seen_double:
            for one in (old, path):
                self.capturing.read(one, cold=cold)
            self._see(log, cold=cold)
        old.unlink()
        log.path = path


def _run(examples: int, steps: int, *phases: Phase) -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            phases=[Phase.reuse, Phase.generate, *phases],
            deadline=None,  # it writes to disk
            suppress_health_check=list(HealthCheck),
        ),
    )


class TestMachine:
    """R1, R3, R4, R5, whatever happens in which order."""

    def test_the_palace_settles_on_the_model(self):
        _run(300, 25)  # a failure is told as it is: to shrink it takes longer than a test may

    @pytest.mark.soak
    def test_and_so_it_does_in_many_and_longer_stories(self):
        _run(3_000, 60, Phase.shrink)
