"""Forgetting what a user named: in short transactions, again and again until nothing of it is left.

Owns: the batches, that an interrupted run is finished by the next, and what waits in files of
forgotten sessions.
Never: asks; wipes what deleted rows leave in the file (mempalace.store.sweep does).
Called by: the command `forget`.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import PurePath

from mempalace.ids import digest
from mempalace.store import checkpoints, exchanges
from mempalace.store import forget as rows
from mempalace.store.forget import Gone
from mempalace.store.palace import Palace
from mempalace.transcripts import registry

_HOLD_SECONDS = 0.05  # how long one transaction may keep other writers waiting
_PAUSE_SECONDS = 0.005  # between two, so that they have their turn

Choice = Callable[[sqlite3.Connection], list[str]]
"""Gives the ids of what is still to be forgotten. Asked again until there is nothing more: the
daemon may file a part of a session while another part of it is forgotten."""


def these(ids: list[str]) -> Choice:
    """Exactly these exchanges."""

    def choose(db: sqlite3.Connection) -> list[str]:
        found = "SELECT 1 FROM exchanges WHERE id = ?"
        return [one for one in ids if db.execute(found, (one,)).fetchone()]

    return choose


def whole_session(source: str, session_id: str) -> Choice:
    """Every exchange of a session. By name: a session's number may be another's afterwards."""

    def choose(db: sqlite3.Connection) -> list[str]:
        row = db.execute(
            "SELECT n FROM sessions WHERE source = ? AND id = ?", (source, session_id)
        ).fetchone()
        return rows.of_session(db, row[0]) if row else []

    return choose


def whole_wing(name: str) -> Choice:
    """Every exchange of a wing, by name for the same reason."""

    def choose(db: sqlite3.Connection) -> list[str]:
        row = db.execute("SELECT id FROM wings WHERE name = ?", (name,)).fetchone()
        return rows.of_wing(db, row[0]) if row else []

    return choose


def forget(palace: Palace, choose: Choice, *, whole: bool) -> Iterator[Gone]:
    """Forget all that `choose` gives; tells after each transaction what went with it.

    `whole`: sessions or wings are forgotten, not single exchanges; then what still waits in the
    files of a session of which nothing is left is forgotten with it.
    """
    files: set[int] = set()
    while True:
        with palace.reading() as db:
            ids = choose(db)
        if not ids:
            return
        rest = iter(ids)
        is_more = True
        while is_more:
            until = time.perf_counter() + _HOLD_SECONDS
            with palace.transaction() as db:
                gone, is_more = rows.forget(db, rest, _now(), until=until)
                files |= gone.files
                for path in rows.paths_that_wait(db, files):
                    _stop_waiting(db, path, gone.prompts, gone.ended if whole else set())
            yield gone
            time.sleep(_PAUSE_SECONDS)


def _now() -> int:
    return int(time.time() * 1_000_000)


def _stop_waiting(db: sqlite3.Connection, path: str, prompts: set[str], ended: set[str]) -> None:
    """Words of a forgotten prompt wait no longer, unless they were said twice; nor does what was
    typed in a session that has ended here: it has not been filed, but its names are known."""
    checkpoint = checkpoints.load(db, path)
    form = registry.by_source(checkpoint.source) if checkpoint else None
    if checkpoint is None or form is None:
        return
    state = json.loads(checkpoint.state).get("fold", {})
    wait = form.fold(PurePath(path), state, dict(checkpoint.waiting)).finish()
    for message in wait:
        if message.session in ended:
            rows.tombstone(db, message.keys)
    gone = prompts | {message.text for message in wait if message.session in ended}
    kept = {m.text for m in wait if not exchanges.is_tombstoned(db, m.keys)}
    texts = {digest(text) for text in gone - kept}
    rows.stop_waiting(db, checkpoint.file, texts & checkpoint.waiting.keys())
