"""One piece of one file becomes one transaction: where exactly-once is kept (R1, R5).

Owns: the order of things: look, plan, read, fold, and then, in a single write transaction, file
what was read and move the checkpoint; nothing moves if another process was first.
Never: decides which file is next; loops over a file (its callers do, and yield between pieces).
Called by: watcher.daemon, watcher.backfill.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import PurePath
from typing import Any

import orjson

from mempalace.config import Config
from mempalace.filing import Filed, Filing, Origin, settle_sessions
from mempalace.mining.private import strip_private
from mempalace.model import Checkpoint, Fingerprint, Message, Role
from mempalace.store import checkpoints
from mempalace.store.palace import Palace
from mempalace.transcripts import registry
from mempalace.transcripts.base import Fold, Format
from mempalace.transcripts.jsonl import BOM, read_line
from watcher.disk import Disk, Look, NotAFile
from watcher.tail import Piece, Plan, fingerprint, plan, read_piece

PIECE = 1024 * 1024  # bytes, DESIGN.md §5 "Writers"
_LEAST_PIECE = 16 * 1024
_HOLD_SECONDS = 0.05  # how long one transaction may keep other writers waiting
_SEARCH_FOR_FOLDER = 8 * 1024 * 1024  # bytes read ahead for a folder before anything is stored
_LARGEST_DOCUMENT = 256 * 1024 * 1024  # a file that is one JSON value is read as a whole


class Result(Enum):
    """What came of one look at a file."""

    READ = "read"
    NOTHING = "nothing new"
    EXCLUDED = "excluded"
    UNRECOGNISED = "no transcript that is known here"
    EMPTY = "empty"
    WAITING = "no working folder yet, and exclusions to keep"
    STALE = "another process was first"
    GONE = "gone"
    FAILED = "failed"


@dataclass(slots=True)
class Outcome:
    """One piece: what was done, and whether there is more to read at once."""

    result: Result
    more: bool = False
    bytes_read: int = 0
    records: int = 0
    filed: Filed = field(default_factory=Filed)
    quarantined: Counter[str] = field(default_factory=Counter)
    reason: str = ""
    unfinished: bool = False  # a tail or a queued prompt waits for the file to be cold


@dataclass(slots=True)
class _Reading:
    """What was folded of a file and is to be filed."""

    checkpoint: Checkpoint
    expected: tuple[int, int] | None  # where the stored checkpoint must still be; None: nowhere
    fold: Fold
    form: Format
    messages: list[Message] = field(default_factory=list)
    bad: list[tuple[int, int, str]] = field(default_factory=list)
    tallies: Counter[str] = field(default_factory=Counter)
    records: int = 0
    cold_messages: list[Message] = field(default_factory=list)


class Capture:
    """Reads files into an open palace. One per process and thread."""

    def __init__(
        self,
        palace: Palace,
        config: Config,
        disk: Disk,
        *,
        folder_of: Callable[[str], str | None],
    ) -> None:
        self._palace = palace
        self._config = config
        self._disk = disk
        self._folder_of = folder_of  # a guess at the folder of a file that never names one
        self._piece = PIECE // 4

    def read(self, path: str, *, cold: bool, reread: bool = False) -> Outcome:
        """Take the next piece of `path`.

        `cold` says that the file has stopped growing: a whole last line without a newline counts,
        and so do prompts that nothing has ended. `reread` reads a stale file once more.
        """
        if self._config.excludes(cwd=None, path=path, session=PurePath(path).stem):
            return Outcome(Result.EXCLUDED)
        try:
            self._disk.look(path)  # before it is opened: a FIFO stays closed
            descriptor = self._disk.open(path)
        except FileNotFoundError:
            return self._gone(path)
        except OSError as error:
            return self._failed(path, error)
        try:
            return self._read_open(path, descriptor, cold=cold, reread=reread)
        except OSError as error:  # border: one file's trouble is its own (R6)
            return self._failed(path, error)
        finally:
            self._disk.close(descriptor)

    # --- looking --------------------------------------------------------------------------------

    def _read_open(self, path: str, descriptor: int, *, cold: bool, reread: bool) -> Outcome:
        look = self._disk.look_at(descriptor)
        with self._palace.reading() as db:
            checkpoint = checkpoints.load(db, path)
        if checkpoint is None:
            checkpoint = self._moved(path, descriptor, look)
        if checkpoint is None:
            return self._first_look(path, descriptor, look, cold=cold)
        form = registry.by_source(checkpoint.source)
        if form is None:
            return Outcome(Result.UNRECOGNISED)
        expected = _position(checkpoint)
        step = plan(self._disk, descriptor, look, checkpoint)
        state = json.loads(checkpoint.state)
        is_stale = self._is_stale(checkpoint, form)
        if step is Plan.REWRITTEN or (state.get("document") and step is Plan.CONTINUE):
            checkpoint = _from_the_start(checkpoint, self._settings(), new_content=True)
        elif is_stale and (reread or checkpoint.parser != form.version):
            checkpoint = _from_the_start(checkpoint, self._settings(), new_content=False)
        elif step is Plan.NOTHING and not (cold and _waits(checkpoint, look)):
            return self._nothing_new(checkpoint, look)
        reading = self._start(checkpoint, form, expected)
        if state.get("document"):
            return self._read_document(reading, descriptor, look)
        return self._read_lines(reading, descriptor, look, cold=cold)

    def _nothing_new(self, checkpoint: Checkpoint, look: Look) -> Outcome:
        if (
            look.mtime_ns != checkpoint.mtime_ns
        ):  # touched: remember, so that it is not proven again
            with self._palace.transaction() as db:
                if checkpoints.position(db, checkpoint.file) == _position(checkpoint):
                    checkpoints.save(db, replace(checkpoint, mtime_ns=look.mtime_ns))
        return Outcome(Result.NOTHING, unfinished=_waits(checkpoint, look))

    def _moved(self, path: str, descriptor: int, look: Look) -> Checkpoint | None:
        """The checkpoint of a file that was renamed or moved to `path`."""
        with self._palace.reading() as db:
            known = checkpoints.load_by_inode(db, look.device, look.inode)
        for checkpoint in known:
            try:
                still = self._disk.look(checkpoint.path)
            except OSError:
                still = None
            if still and (still.device, still.inode) == (look.device, look.inode):
                continue  # a hard link: the other name is followed already
            if checkpoint.offset and plan(self._disk, descriptor, look, checkpoint) in (
                Plan.NOTHING,
                Plan.CONTINUE,
            ):
                with self._palace.transaction() as db:
                    is_hidden = checkpoint.path.startswith(checkpoints.HIDDEN)
                    moved = replace(
                        checkpoint, path=checkpoints.hidden(path) if is_hidden else path
                    )
                    if checkpoints.position(db, moved.file) == _position(moved):
                        checkpoints.save(db, moved)
                return moved
        return None

    def _first_look(self, path: str, descriptor: int, look: Look, *, cold: bool) -> Outcome:
        if not look.size:
            return Outcome(Result.EMPTY)
        found = self._recognise(path, descriptor, look)
        if found is None:
            with self._palace.transaction() as db:
                checkpoints.set_aside(
                    db, path, look.size, look.mtime_ns, registry.VERSION, self._settings()
                )
            return Outcome(Result.UNRECOGNISED)
        form, is_document = found
        checkpoint = Checkpoint(
            0, path, form.source, 0, 0, 0, 0, 0, 0,
            Fingerprint(look.device, look.inode), "{}", form.version, self._settings(),
        )  # fmt: skip
        reading = self._start(checkpoint, form, None)
        if is_document:
            return self._read_document(reading, descriptor, look)
        return self._read_lines(reading, descriptor, look, cold=cold)

    def _recognise(self, path: str, descriptor: int, look: Look) -> tuple[Format, bool] | None:
        """The format by the file's first records, and whether it is one JSON value."""
        piece = read_piece(self._disk, descriptor, 0, 0, limit=PIECE)
        lines = piece.lines[: registry.RECORDS_LOOKED_AT]
        if piece.tail and len(lines) < registry.RECORDS_LOOKED_AT:
            lines = [*lines, (piece.end, piece.tail)]
        records = [record for at, line in lines for _, record in read_line(line, at).objects]
        form = registry.recognise(records)
        if form is not None:
            return form, False
        head = piece.lines[0][1] if piece.lines else piece.tail
        is_one_value = head.removeprefix(BOM).lstrip()[:1] in (b"{", b"[")
        if PurePath(path).suffix == ".json" and is_one_value and look.size <= _LARGEST_DOCUMENT:
            inside = registry.records_of_document(self._whole(descriptor, look))
            form = registry.recognise(inside or [])
        return (form, True) if form is not None else None

    def _whole(self, descriptor: int, look: Look) -> object:
        try:
            return orjson.loads(self._disk.read(descriptor, look.size, 0).removeprefix(BOM))
        except orjson.JSONDecodeError:
            return None  # half written: it is looked at again when it has grown

    def _is_stale(self, checkpoint: Checkpoint, form: Format) -> bool:
        return checkpoint.parser != form.version or checkpoint.settings != self._settings()

    def _settings(self) -> str:
        return self._config.reading_settings()

    # --- reading --------------------------------------------------------------------------------

    def _read_lines(self, reading: _Reading, descriptor: int, look: Look, *, cold: bool) -> Outcome:
        checkpoint, fold = reading.checkpoint, reading.fold
        begin = end = checkpoint.offset
        crc = checkpoint.fingerprint.crc
        while True:
            piece = read_piece(self._disk, descriptor, end, crc, limit=self._piece)
            self._fold(reading, piece)
            end, crc = piece.end, piece.crc
            if not self._must_look_further(reading, end - begin) or piece.at_end:
                break
        folder = fold.folder
        if piece.at_end and self._config.exclude and folder is None:
            folder = self._folder_of(checkpoint.path)
            if folder is None and not cold:
                return Outcome(Result.WAITING, unfinished=True)
        ends_here = piece.at_end and cold
        if ends_here:
            self._finish(reading, piece)
        elif end == begin and checkpoint.file:
            return Outcome(Result.NOTHING, unfinished=True)  # only a line that is not whole yet
        after = self._disk.look_at(descriptor)  # a write during the read shows in its time
        tail = len(piece.tail) if ends_here else 0
        done = replace(
            checkpoint,
            offset=end,
            tail=tail,
            size=end + tail,
            mtime_ns=look.mtime_ns if after == look else look.mtime_ns - 1,
            fingerprint=fingerprint(self._disk, descriptor, look, end, crc, checkpoint.fingerprint),
            rereading=checkpoint.rereading and not piece.at_end,
            parser=reading.form.version,
        )
        marks = {"finished": end + tail} if ends_here else {}
        outcome = self._store(reading, done, begin, folder, marks)
        outcome.more = outcome.more or (outcome.result is Result.READ and not piece.at_end)
        outcome.bytes_read = end - begin
        outcome.unfinished = piece.at_end and not cold and bool(piece.tail or fold.waiting)
        return outcome

    def _must_look_further(self, reading: _Reading, done: int) -> bool:
        """Before anything is stored under exclusions, a folder must be known (R10)."""
        unknown = bool(self._config.exclude) and reading.fold.folder is None
        return unknown and done < _SEARCH_FOR_FOLDER

    def _read_document(self, reading: _Reading, descriptor: int, look: Look) -> Outcome:
        """A file that is one JSON value: its records have their number for an offset."""
        records = registry.records_of_document(self._whole(descriptor, look))
        if records is None:
            return Outcome(Result.UNRECOGNISED, reason="not complete JSON")
        for number, record in enumerate(records):
            reading.messages += reading.fold.step(record, number)
        reading.records = len(records)
        reading.cold_messages = reading.fold.finish()
        crc = read_piece(self._disk, descriptor, 0, 0, limit=look.size).crc
        print_ = fingerprint(self._disk, descriptor, look, look.size, crc, None)
        done = replace(
            reading.checkpoint, offset=look.size, tail=0, size=look.size, mtime_ns=look.mtime_ns,
            fingerprint=print_, rereading=False, parser=reading.form.version,
        )  # fmt: skip
        outcome = self._store(
            reading, done, 0, reading.fold.folder, {"document": True, "finished": look.size}
        )
        outcome.bytes_read = look.size
        return outcome

    def _start(
        self, checkpoint: Checkpoint, form: Format, expected: tuple[int, int] | None
    ) -> _Reading:
        state = json.loads(checkpoint.state).get("fold", {})
        fold = form.fold(PurePath(checkpoint.path), state, dict(checkpoint.waiting))
        return _Reading(checkpoint, expected, fold, form)

    def _fold(self, reading: _Reading, piece: Piece) -> None:
        for at, line in piece.lines:
            parsed = read_line(line, at)
            reading.bad += [(bad.offset, bad.length, bad.reason) for bad in parsed.bad]
            if parsed.strays:
                reading.tallies["not an object"] += parsed.strays
            for offset, record in parsed.objects:
                reading.records += 1
                reading.messages += reading.fold.step(record, offset)
        reading.bad += [(at, length, "line too long") for at, length in piece.too_long]

    def _finish(self, reading: _Reading, piece: Piece) -> None:
        """What a cold file holds beyond its last newline, and what nothing has ended.

        The state stays before it: when the file grows after all, the same records are met again
        and known (DESIGN.md §5).
        """
        state = json.loads(json.dumps(reading.fold.state()))
        path = PurePath(reading.checkpoint.path)
        beyond = reading.form.fold(path, state, dict(reading.fold.waiting))
        if piece.tail:
            parsed = read_line(piece.tail, piece.end)
            if not parsed.bad:
                for offset, record in parsed.objects:
                    reading.cold_messages += beyond.step(record, offset)
        if not self._config.excludes(cwd=beyond.cwd, path=None, session=None):
            reading.cold_messages += beyond.finish()

    # --- storing --------------------------------------------------------------------------------

    def _store(
        self,
        reading: _Reading,
        done: Checkpoint,
        begin: int,
        folder: str | None,
        marks: dict[str, Any],
    ) -> Outcome:
        before = reading.checkpoint
        started = time.perf_counter()
        with self._palace.transaction() as db:
            known = checkpoints.load(db, before.path)
            if (None if known is None else _position(known)) != reading.expected:
                return Outcome(Result.STALE, more=True)
            is_excluded = self._config.excludes(cwd=folder, path=None, session=None)
            path = checkpoints.hidden(before.path) if is_excluded else before.path
            file = before.file or checkpoints.create(db, path, before.source)
            if begin == 0:
                checkpoints.start_over(db, file)
            origin = Origin(
                file, before.path, done.content, before.source, reading.form.version, folder
            )
            now = int(self._disk.now() * 1_000_000)
            old = json.loads(before.state)
            filing = Filing(db, self._config, origin, old.get("filing", {}), now)
            filing.file(reading.messages)
            if before.rereading:
                prompts = frozenset(m.offset for m in reading.messages if m.role is Role.HUMAN)
                filing.retire_passed(begin, done.offset, prompts)
            ends = filing.close()
            if reading.cold_messages:
                beyond = Filing(db, self._config, origin, ends, now)
                beyond.file(reading.cold_messages)
                beyond.close()
                _add(filing.filed, beyond.filed)  # not what it left out: it is met again
            self._settle(db, reading, file, is_last=bool(marks), is_excluded=is_excluded)
            checkpoints.count(db, file, filing.filed.left_out + reading.tallies)
            checkpoints.quarantine(db, file, reading.form.version, reading.bad)
            state = {} if is_excluded else {"fold": self._state_of(reading.fold), "filing": ends}
            waiting = {} if is_excluded else self._waiting_of(reading.fold)
            checkpoints.save(
                db,
                replace(
                    done, file=file, path=path, waiting=waiting,
                    state=json.dumps({**state, **marks}, separators=(",", ":")),
                ),
            )  # fmt: skip
        self._adapt(time.perf_counter() - started, done.offset - begin)
        return Outcome(
            Result.EXCLUDED if is_excluded else Result.READ,
            records=reading.records,
            filed=filing.filed,
            quarantined=Counter(reason for _, _, reason in reading.bad),
        )

    def _settle(
        self,
        db: sqlite3.Connection,
        reading: _Reading,
        file: int,
        *,
        is_last: bool,
        is_excluded: bool,
    ) -> None:
        """A session gets its wing when its file names a folder at last, or never will."""
        named = reading.fold.folder
        was_named = json.loads(reading.checkpoint.state).get("fold", {}).get("folder")
        if not is_excluded and (is_last or (named and not was_named)):
            guess = None if named else self._folder_of(reading.checkpoint.path)
            settle_sessions(db, self._config, file, named=named, guess=guess)

    def _state_of(self, fold: Fold) -> dict[str, Any]:
        state = fold.state()
        if self._config.excludes(cwd=fold.cwd, path=None, session=None):
            state["cwd"] = None  # the name of an excluded folder is not kept either (R10)
        return state

    def _waiting_of(self, fold: Fold) -> dict[str, str]:
        if self._config.excludes(cwd=fold.cwd, path=None, session=None):
            return {}
        return {digest: strip_private(text) for digest, text in fold.waiting.items()}

    def _adapt(self, held: float, size: int) -> None:
        """Keep transactions near 50 ms, whatever the disk: the next piece is larger or smaller."""
        if size < self._piece // 2:
            return  # too small to tell
        wanted = int(self._piece * _HOLD_SECONDS / max(held, 0.001))
        self._piece = max(_LEAST_PIECE, min(PIECE, wanted, self._piece * 2))

    def _gone(self, path: str) -> Outcome:
        with self._palace.transaction() as db:
            checkpoint = checkpoints.load(db, path)
            if checkpoint is not None:
                checkpoints.mark_gone(db, checkpoint.file, int(self._disk.now() * 1_000_000))
        return Outcome(Result.GONE)

    def _failed(self, path: str, error: OSError) -> Outcome:
        """Note a file that cannot be read, so that `status` names it; the next read tries again."""
        reason = "not a file" if isinstance(error, NotAFile) else (error.strerror or str(error))
        if isinstance(error, IsADirectoryError):
            reason = "not a file"
        if reason != "not a file":
            with self._palace.transaction() as db:
                checkpoints.fail(db, path, reason)
        return Outcome(Result.FAILED, reason=reason)


def _waits(checkpoint: Checkpoint, look: Look) -> bool:
    """Does anything wait for this file to be cold that was not looked at yet?"""
    state = json.loads(checkpoint.state)
    if state.get("finished") == look.size or not state:
        return False
    names_no_folder = not state.get("fold", {}).get("folder")
    return bool(checkpoint.waiting) or look.size > checkpoint.offset or names_no_folder


def _from_the_start(checkpoint: Checkpoint, settings: str, *, new_content: bool) -> Checkpoint:
    generation = checkpoint.generation + 1
    content = generation if new_content else checkpoint.content
    empty = Fingerprint(checkpoint.fingerprint.device, checkpoint.fingerprint.inode)
    return replace(
        checkpoint, generation=generation, content=content, offset=0, tail=0,
        fingerprint=empty, state="{}", waiting={}, settings=settings, rereading=not new_content,
    )  # fmt: skip


def _position(checkpoint: Checkpoint) -> tuple[int, int]:
    return checkpoint.generation, checkpoint.offset


def _add(filed: Filed, more: Filed) -> None:
    filed.exchanges_new += more.exchanges_new
    filed.exchanges_known += more.exchanges_known
    filed.drawers += more.drawers
