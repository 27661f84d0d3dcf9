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

from mempalace.config import Config
from mempalace.filing import Filed, Filing, Origin, settle_sessions
from mempalace.mining.private import strip_private
from mempalace.model import Checkpoint, Role
from mempalace.store import checkpoints
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
    path = checkpoints.hidden(before.path) if is_excluded else before.path
    file = before.file or checkpoints.create(db, path, before.source)
    if before.offset == 0:
        checkpoints.start_over(db, file)
    origin = Origin(file, before.path, done.content, before.source, reading.form.version, folder)
    filed, ends = _file(db, config, reading, origin, done, now)
    if not is_excluded:
        _settle(db, config, reading, file, guess, is_last="finished" in marks)
    checkpoints.count(db, file, filed.left_out + reading.tallies)
    checkpoints.quarantine(db, file, reading.form.version, reading.bad)
    state = {} if is_excluded else {"fold": _state_of(reading.fold, config), "filing": ends}
    waiting = {} if is_excluded else _waiting_of(reading.fold, config)
    text = json.dumps({**state, **marks}, separators=(",", ":"))
    settings = done.settings
    if (is_excluded or filed.left_out["excluded"]) and settings == config.reading_settings():
        settings = config.reading_settings(excluded=True)
    checkpoints.save(
        db, replace(done, file=file, path=path, waiting=waiting, state=text, settings=settings)
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


def _state_of(fold: Fold, config: Config) -> dict[str, Any]:
    state = fold.state()
    if config.excludes(cwd=fold.cwd, path=None, session=None):
        state["cwd"] = None  # the name of an excluded folder is not kept either (R10)
    return state


def _waiting_of(fold: Fold, config: Config) -> dict[str, str]:
    if config.excludes(cwd=fold.cwd, path=None, session=None):
        return {}
    return {digest: strip_private(text) for digest, text in fold.waiting.items()}
