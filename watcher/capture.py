"""One piece of one file becomes one transaction: where exactly-once is kept (R1, R5).

Owns: the order of things: look, plan, read, fold, and then, in a single write transaction, file
what was read and move the checkpoint; nothing moves if another process was first.
Never: decides which file is next; loops over a file (its callers do, and yield between pieces).
Called by: watcher.daemon, watcher.backfill.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import PurePath
from typing import Any

from mempalace.config import Config
from mempalace.errors import MemPalaceError
from mempalace.filing import Filed
from mempalace.model import Checkpoint, Fingerprint
from mempalace.store import checkpoints
from mempalace.store.palace import Palace
from mempalace.transcripts import registry
from mempalace.transcripts.base import Format
from watcher.commit import Overtaken, commit
from watcher.disk import Disk, Look, NotAFile
from watcher.lineage import Lineage
from watcher.packed import SUFFIX
from watcher.reading import Reading
from watcher.recognise import recognise, whole
from watcher.tail import Plan, crc_of, fingerprint, plan, read_piece

PIECE = 1024 * 1024  # bytes, docs/design.md
_LEAST_PIECE = 16 * 1024
_HOLD_SECONDS = 0.05  # how long one transaction may keep other writers waiting
_SEARCH_FOR_FOLDER = 8 * 1024 * 1024  # bytes read ahead for a folder before anything is stored


NOT_A_FILE = "not a file"


class Result(Enum):
    """What came of one look at a file."""

    READ = "read"
    NOTHING = "nothing new"
    EXCLUDED = "excluded"
    UNRECOGNISED = "no transcript that is known here"
    EMPTY = "empty"
    WAITING = "no working folder yet, and exclusions to keep"
    OVERTAKEN = "another process was first"
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
        self._lineage = Lineage(disk)
        self._folder_of = folder_of  # a guess at the folder of a file that never names one
        self._current = config.current_settings()
        self._piece = PIECE // 4

    def read(self, path: str, *, cold: bool, reread: bool = False) -> Outcome:
        """Take the next piece of `path`.

        `cold` says that the file has stopped growing: a whole last line without a newline counts,
        and so do prompts that nothing has ended. `reread` reads a stale file once more.
        """
        if self._config.excludes(cwd=None, path=path, session=PurePath(path).stem):
            return Outcome(Result.EXCLUDED)
        if not path.isprintable() and path.encode("utf-8", "replace").decode() != path:
            return Outcome(Result.FAILED, reason="its name is not UTF-8")  # no row can hold it
        try:
            self._disk.look(path)  # before it is opened: a FIFO stays closed
            descriptor = self._disk.open(path)
        except FileNotFoundError:
            return self._gone(path)
        except OSError as error:
            return self._failed(path, error)
        try:
            return self._read_open(path, descriptor, cold=cold, reread=reread)
        except OSError as error:
            return self._failed(path, error)
        except MemPalaceError:
            raise  # the palace's trouble, not this file's
        except Exception as error:  # noqa: BLE001 - border: one file's trouble is its own (R6)
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
        elif step is Plan.NOTHING and not (cold and self._waits(checkpoint, look)):
            return self._nothing_new(checkpoint, look)
        reading = Reading.at(checkpoint, form, expected, self._lineage.near(path))
        if state.get("document"):
            return self._read_document(reading, descriptor, look)
        return self._read_lines(reading, descriptor, look, cold=cold)

    def _nothing_new(self, checkpoint: Checkpoint, look: Look) -> Outcome:
        proof = replace(checkpoint.fingerprint, device=look.device, inode=look.inode)
        size = checkpoint.offset + checkpoint.tail if look.packed is None else look.packed
        seen = replace(checkpoint, mtime_ns=look.mtime_ns, size=size, fingerprint=proof)
        waits = self._waits(checkpoint, look)
        if seen != checkpoint and not waits:  # touched, copied, packed: that is proven now
            with self._palace.transaction() as db:
                if checkpoints.position(db, checkpoint.file) == _position(checkpoint):
                    checkpoints.save(db, seen)
        return Outcome(Result.NOTHING, unfinished=waits)

    def _waits(self, checkpoint: Checkpoint, look: Look) -> bool:
        """Does anything wait for this file to be cold that was not looked at yet?"""
        state = json.loads(checkpoint.state)
        is_same_tail = look.size == checkpoint.offset or state.get("finished_at") == look.mtime_ns
        if (state.get("finished") == look.size and is_same_tail) or not state:
            return False  # no fingerprint covers a tail: one that was touched may be another
        if checkpoint.waiting or look.size > checkpoint.offset:
            return True
        with self._palace.reading() as db:
            return checkpoints.has_no_wing(db, checkpoint.file)

    def _moved(self, path: str, descriptor: int, look: Look) -> Checkpoint | None:
        """The checkpoint of a file that was renamed, moved, packed or unpacked to `path`. While
        both twins are there each goes on by itself from what they have in common."""
        with self._palace.reading() as db:
            known = checkpoints.load_by_inode(db, look.device, look.inode)
            twin = checkpoints.load(db, _twin(path))
        for checkpoint in known if twin is None else [*known, twin]:
            is_there = self._is_there(checkpoint)
            if not checkpoint.offset or (is_there and checkpoint is not twin):
                continue
            if plan(self._disk, descriptor, look, checkpoint) is Plan.REWRITTEN:
                continue
            name = checkpoints.hidden(path) if checkpoint.is_hidden else path
            with self._palace.transaction() as db:
                if is_there:
                    file = checkpoints.create(db, name, checkpoint.source)
                    checkpoints.save(db, replace(checkpoint, file=file, path=path))
                else:
                    checkpoints.rename(db, checkpoint.file, name)
                return checkpoints.load(db, path)
        return None

    def _is_there(self, checkpoint: Checkpoint) -> bool:
        """Is the file still where it was read? Then the other name is a hard link."""
        old = checkpoint.fingerprint
        try:
            look = self._disk.look(checkpoint.path)
        except OSError:
            return False
        return (look.device, look.inode) == (old.device, old.inode)

    def _first_look(self, path: str, descriptor: int, look: Look, *, cold: bool) -> Outcome:
        if not look.size:
            return Outcome(Result.EMPTY)
        found = recognise(self._disk, path, descriptor, look)
        if found is None:
            name, settings = self._name_of(path), self._settings()
            with self._palace.transaction() as db:
                checkpoints.set_aside(
                    db, name, look.size, look.mtime_ns, registry.VERSION, settings
                )
            return Outcome(Result.UNRECOGNISED)
        form, is_document = found
        checkpoint = Checkpoint(
            0, path, form.source, 0, 0, 0, 0, 0, 0,
            Fingerprint(look.device, look.inode), "{}", form.version, self._settings(),
        )  # fmt: skip
        reading = Reading.at(checkpoint, form, None, self._lineage.near(path))
        if is_document:
            return self._read_document(reading, descriptor, look)
        return self._read_lines(reading, descriptor, look, cold=cold)

    def _name_of(self, path: str) -> str:
        """What a file is called in the palace where nothing in it has named a folder (R10)."""
        if self._config.exclude:
            folder = self._folder_of(path)
            if folder and self._config.excludes(cwd=folder, path=None, session=None):
                return checkpoints.hidden(path)
        return path

    def _is_stale(self, checkpoint: Checkpoint, form: Format) -> bool:
        return checkpoint.parser != form.version or checkpoint.settings not in self._current

    def _settings(self) -> str:
        return self._config.reading_settings()

    # --- reading --------------------------------------------------------------------------------

    def _read_lines(self, reading: Reading, descriptor: int, look: Look, *, cold: bool) -> Outcome:
        checkpoint, fold = reading.checkpoint, reading.fold
        begin = end = checkpoint.offset
        crc = checkpoint.fingerprint.crc
        while True:
            piece = read_piece(self._disk, descriptor, end, crc, limit=self._piece)
            reading.add(piece, self._config)
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
            reading.finish(piece, self._config)
        elif end == begin:
            return Outcome(Result.NOTHING, unfinished=True)  # only a line that is not whole yet
        after = self._disk.look_at(descriptor)  # a write during the read shows in its time
        tail = len(piece.tail) if ends_here else 0
        is_all = piece.at_end and (ends_here or not piece.tail)  # a packed size tells no offset
        done = replace(
            checkpoint,
            offset=end,
            tail=tail,
            size=end + tail if look.packed is None else look.packed if is_all else 0,
            mtime_ns=look.mtime_ns if after == look else look.mtime_ns - 1,
            fingerprint=fingerprint(self._disk, descriptor, look, end, crc, checkpoint.fingerprint),
            rereading=checkpoint.rereading and not piece.at_end,
            parser=reading.form.version,
        )
        marks = {"finished": end + tail, "finished_at": done.mtime_ns} if ends_here else {}
        outcome = self._store(reading, done, folder, marks)
        outcome.more = outcome.more or (outcome.result is Result.READ and not piece.at_end)
        outcome.bytes_read = end - begin
        outcome.unfinished = piece.at_end and not cold and bool(piece.tail or fold.waiting)
        return outcome

    def _must_look_further(self, reading: Reading, done: int) -> bool:
        """Before anything is stored under exclusions, a folder must be known (R10)."""
        unknown = bool(self._config.exclude) and reading.fold.folder is None
        return unknown and done < _SEARCH_FOR_FOLDER

    def _read_document(self, reading: Reading, descriptor: int, look: Look) -> Outcome:
        records = registry.records_of_document(whole(self._disk, descriptor, look))
        if records is None:
            return Outcome(Result.UNRECOGNISED, reason="not complete JSON")
        reading.add_document(records, self._config)
        crc = crc_of(self._disk, descriptor, look.size)
        done = replace(
            reading.checkpoint, offset=look.size, tail=0, mtime_ns=look.mtime_ns,
            size=look.size if look.packed is None else look.packed,
            fingerprint=fingerprint(self._disk, descriptor, look, look.size, crc, None),
            rereading=False, parser=reading.form.version,
        )  # fmt: skip
        marks = {"document": True, "finished": look.size}
        outcome = self._store(reading, done, reading.fold.folder, marks)
        outcome.bytes_read = look.size
        return outcome

    # --- storing --------------------------------------------------------------------------------

    def _store(
        self, reading: Reading, done: Checkpoint, folder: str | None, marks: dict[str, Any]
    ) -> Outcome:
        named = reading.fold.folder
        guess = None if named or not marks else self._folder_of(reading.checkpoint.path)
        now = int(self._disk.now() * 1_000_000)
        started = time.perf_counter()
        try:
            with self._palace.transaction() as db:
                filed = commit(
                    db, self._config, reading, done,
                    folder=folder, guess=guess, marks=marks, now=now,
                )  # fmt: skip
        except Overtaken:
            return Outcome(Result.OVERTAKEN, more=True)
        self._adapt(time.perf_counter() - started, done.offset - reading.checkpoint.offset)
        return Outcome(
            Result.READ if filed is not None else Result.EXCLUDED,
            records=reading.records,
            filed=filed or Filed(),
            quarantined=Counter(reason for _, _, reason in reading.bad),
        )

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

    def _failed(self, path: str, error: Exception) -> Outcome:
        """Note a file that cannot be read, so that `status` names it; the next read tries again."""
        if isinstance(error, (NotAFile, IsADirectoryError)):
            return Outcome(Result.FAILED, reason=NOT_A_FILE)
        reason, name = _reason(error), self._name_of(path)
        with self._palace.transaction() as db:
            known = checkpoints.load(db, path)
            is_hidden = known is not None and known.is_hidden
            checkpoints.fail(db, checkpoints.hidden(path) if is_hidden else name, reason)
        return Outcome(Result.FAILED, reason=reason)


def _reason(error: Exception) -> str:
    """Why a file cannot be read. Never an unexpected error's own words: they may quote the file."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = (
        f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}" if frame else "?"
    )
    return f"unexpected {type(error).__name__} at {where}; this is a bug, please report it"


def _from_the_start(checkpoint: Checkpoint, settings: str, *, new_content: bool) -> Checkpoint:
    generation = checkpoint.generation + 1
    content = generation if new_content else checkpoint.content
    empty = Fingerprint(checkpoint.fingerprint.device, checkpoint.fingerprint.inode)
    return replace(
        checkpoint, generation=generation, content=content, offset=0, tail=0,
        fingerprint=empty, state="{}", waiting={}, settings=settings, rereading=not new_content,
    )  # fmt: skip


def _twin(path: str) -> str:
    """The name of the same rollout packed, or unpacked."""
    return path.removesuffix(SUFFIX) if path.endswith(SUFFIX) else path + SUFFIX


def _position(checkpoint: Checkpoint) -> tuple[int, int]:
    return checkpoint.generation, checkpoint.offset


def _add(filed: Filed, more: Filed) -> None:
    filed.exchanges_new += more.exchanges_new
    filed.exchanges_known += more.exchanges_known
    filed.drawers += more.drawers
