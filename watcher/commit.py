"""The one write transaction: what was read, and the checkpoint that accounts for it (R1, R5).

Owns: the order of things inside the transaction, and what of the reader's state may be kept.
Never: reads a file.
Called by: watcher.capture.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from typing import Any

from mempalace.config import EXCLUDED, Config
from mempalace.filing import Filed, Filing, Origin, settle_sessions
from mempalace.mining.private import strip_private
from mempalace.model import Checkpoint, Role
from mempalace.store import checkpoints, exchanges
from mempalace.transcripts.base import Fold
from watcher.reading import Reading


class Overtaken(Exception):
    """Another process has moved the checkpoint meanwhile: this work is thrown away."""


def commit(
    db: sqlite3.Connection,
    config: Config,
    reading: Reading,
    done: Checkpoint,
    *,
    folder: str | None,
    guess: str | None,
    marks: dict[str, Any],
    now: int,
) -> Filed | None:
    """File a reading and save `done` as its checkpoint, inside the caller's transaction.

    `folder` is the working folder that exclusion goes by, `guess` one for sessions that never name
    theirs, `marks` what the state remembers beside the fold's. Gives None where the file turned
    out to be excluded: then nothing but a nameless checkpoint is kept. Raises Overtaken.
    """
    before = reading.checkpoint
    known = checkpoints.load(db, before.path)
    if (None if known is None else (known.generation, known.offset)) != reading.expected:
        raise Overtaken
    is_excluded = config.excludes(cwd=folder, path=None, session=None)
    is_hidden = _is_hidden(db, before, is_excluded=is_excluded)
    name = checkpoints.hidden(before.path) if is_hidden else before.path
    file = before.file or checkpoints.create(db, name, before.source)
    if before.offset == 0:
        checkpoints.start_over(db, file)
    origin = Origin(file, before.path, done.content, before.source, reading.form.version, folder)
    filed, ends = _file(db, config, reading, origin, done, now)
    if not is_excluded:
        _settle(db, config, reading, file, guess, is_last="finished" in marks)
    checkpoints.count(db, file, filed.left_out + reading.tallies)
    checkpoints.quarantine(db, file, reading.form.version, reading.bad)
    state, waiting = _kept(reading.fold, config, ends, is_excluded=is_excluded)
    text = json.dumps({**state, **marks}, separators=(",", ":"))
    settings = done.settings
    if (is_excluded or filed.left_out["excluded"]) and settings == config.reading_settings():
        settings = config.reading_settings(excluded=True)
    checkpoints.save(
        db,
        replace(
            done, file=file, is_hidden=is_hidden, waiting=waiting, state=text, settings=settings
        ),
    )
    return None if is_excluded else filed


def _file(
    db: sqlite3.Connection,
    config: Config,
    reading: Reading,
    origin: Origin,
    done: Checkpoint,
    now: int,
) -> tuple[Filed, dict[str, str]]:
    before = reading.checkpoint
    state = json.loads(before.state).get("filing", {})
    filing = Filing(db, config, origin, state, now)
    filing.file(reading.messages)
    if before.rereading:
        prompts = frozenset(m.offset for m in reading.messages if m.role is Role.HUMAN)
        filing.retire_passed(before.offset, done.offset, prompts)
    ends = filing.close()
    filed = filing.filed
    if reading.cold_messages:
        beyond = Filing(db, config, origin, ends, now)
        beyond.file(reading.cold_messages)
        beyond.close()
        filed.exchanges_new += beyond.filed.exchanges_new
        filed.exchanges_known += beyond.filed.exchanges_known
        filed.drawers += beyond.filed.drawers  # not what it left out: that is met again
    return filed, ends


def _settle(
    db: sqlite3.Connection,
    config: Config,
    reading: Reading,
    file: int,
    guess: str | None,
    *,
    is_last: bool,
) -> None:
    """A session gets its wing when its file names a folder at last, or never will."""
    named = reading.fold.folder
    was_named = json.loads(reading.checkpoint.state).get("fold", {}).get("folder")
    if is_last or (named and not was_named):
        settle_sessions(db, config, file, named=named, guess=guess)


def _is_hidden(db: sqlite3.Connection, before: Checkpoint, *, is_excluded: bool) -> bool:
    """Must the file's row not tell its path? So it stays until the file is read from the start;
    one whose words were stored before the exclusion was made has its name in the palace anyway."""
    if before.is_hidden and before.offset:
        return True
    return is_excluded and not (before.file and exchanges.any_of_file(db, before.file))


def _kept(
    fold: Fold, config: Config, ends: dict[str, str], *, is_excluded: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """The state and the waiting texts for the next piece, without the name of an excluded folder
    (R10): that the session was in one is kept, or a line that names none would come out later."""

    def is_out(folder: str | None) -> bool:
        return config.excludes(cwd=folder, path=None, session=None)

    if is_excluded and fold.folder is None:
        return {}, {}  # so it was guessed; a later line will tell
    if is_excluded and is_out(fold.cwd):
        return {"fold": {"folder": EXCLUDED, "cwd": EXCLUDED}}, {}
    state = fold.state()
    state["folder"] = EXCLUDED if is_out(fold.folder) else state["folder"]
    state["cwd"] = EXCLUDED if is_out(fold.cwd) else state["cwd"]
    waiting = {digest: strip_private(text) for digest, text in fold.waiting.items()}
    return {"fold": state, "filing": ends}, waiting
