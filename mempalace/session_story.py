"""What this very session was about, for an agent whose context was compacted.

Owns: the lines about one session: its first prompt, its last prompts, its decisions and open
problems, verbatim and within 2,000 characters; and that they are not stale: what its transcript has
beyond what is stored is read here, read-only, at most its last 256 KiB.
Never: waits, locks or writes; reads a transcript that the palace does not know.
Called by: mempalace.layers. What reading a transcript needs is imported only where there is
something to read (R9).
"""

from __future__ import annotations

import os
import sqlite3

from mempalace.store.moments import opening
from mempalace.wording import minute, shortened

TYPE_CHECKING = False  # typing itself costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

HEADING = "## THIS SESSION, BEFORE IT WAS COMPACTED"
_CHARACTERS = 2_000
_FIRST = 400  # characters of the first prompt
_PROMPT = 240  # of each later one
_LAST = 5  # prompts
_KEPT = 6  # decisions and problems
_TAIL = 256 * 1024  # bytes of a transcript that are read at most
_TELLING = ("decision", "problem")


def session_story(db: sqlite3.Connection, session_id: str) -> list[str]:
    """The lines, heading included; none where the palace does not know the session."""
    sessions = db.execute("SELECT n FROM sessions WHERE id = ?", (session_id,)).fetchall()
    if not sessions:
        return []
    exchanges = _exchanges(db, [n for (n,) in sessions])
    fresh, until = _unread(db, [n for (n,) in sessions])
    if not exchanges and not fresh:
        return []
    first = _line(opening(db, exchanges[0][0]), _FIRST) if exchanges else ""
    last = [opening(db, n) for n, *_ in exchanges[1:][-_LAST:]] + fresh
    lines = [HEADING]
    if first:
        lines.append(f"  it began with: {first}")
    lines += [f"  then: {_line(text, _PROMPT)}" for text in last[-_LAST:] if text]
    for _, kind, sentence in reversed(exchanges):
        if kind in _TELLING and sentence and len(lines) < 2 + _LAST + _KEPT:
            lines.append(f"  {kind}: {_line(sentence, _PROMPT)}")
    if until:
        lines.append(f"  (what was said after {until} is not stored yet; prompts were read anew)")
    return _within(lines)


def _within(lines: list[str]) -> list[str]:
    length, kept = 0, []
    for line in lines:
        length += len(line) + 1
        if length > _CHARACTERS:
            break
        kept.append(line)
    return kept


def _exchanges(
    db: sqlite3.Connection, sessions: list[int]
) -> list[tuple[int, str | None, str | None]]:
    """(exchange, memory type, key sentence) of its prompts, as they were said."""
    marks = ",".join("?" * len(sessions))
    rows = db.execute(
        "SELECT n, memory_type, key_sentence FROM exchanges"  # noqa: S608 - question marks
        f" WHERE session IN ({marks}) AND headless = 0 AND retired IS NULL"
        " ORDER BY started_at IS NULL, started_at, n",
        sessions,
    )
    return rows.fetchall()


def _line(text: str, most: int) -> str:
    return shortened(" ".join(text.split()), most)


# --- what is not stored yet -----------------------------------------------------------------------


def _unread(db: sqlite3.Connection, sessions: list[int]) -> tuple[list[str], str]:
    """Prompts in the session's transcript behind what was read, and until when it is stored; both
    empty where all of it is."""
    marks = ",".join("?" * len(sessions))
    row = db.execute(
        "SELECT path, source, offset, state FROM files WHERE gone_at IS NULL AND n IN"  # noqa: S608
        f" (SELECT file FROM exchanges WHERE session IN ({marks})) ORDER BY mtime_ns DESC LIMIT 1",
        sessions,
    ).fetchone()
    if row is None:
        return [], ""
    path, source, offset, state = row
    try:
        size = os.stat(path).st_size
        if size <= offset:
            return [], ""
        begin = max(offset, size - _TAIL)
        with open(path, "rb") as stream:
            stream.seek(begin)
            data = stream.read(size - begin)
    except (OSError, ValueError):
        return [], ""
    prompts = list(_prompts(path, source, state if begin == offset else "{}", data, begin > offset))
    latest = db.execute(
        "SELECT MAX(COALESCE(ended_at, started_at)) FROM exchanges"  # noqa: S608 - question marks
        f" WHERE session IN ({marks})",
        sessions,
    ).fetchone()[0]
    return prompts, "an unknown time" if latest is None else minute(latest / 1e6)


def _prompts(path: str, source: str, state: str, data: bytes, is_cut: bool) -> Iterator[str]:
    """Human words in whole lines; a first line that may be cut is passed over."""
    import json
    from pathlib import PurePath

    from mempalace.mining.private import strip_echo, strip_private
    from mempalace.model import Role
    from mempalace.transcripts import registry
    from mempalace.transcripts.base import no_relatives
    from mempalace.transcripts.jsonl import read_line

    form = registry.by_source(source)
    if form is None:
        return
    known: dict[str, Any] = json.loads(state).get("fold", {})
    fold = form.fold(PurePath(path), known, {}, no_relatives)
    lines = data.split(b"\n")[1 if is_cut else 0 : -1]
    told: set[bytes] = set()  # a prompt may stand there as an event and as an item
    for line in lines:
        for at, record in read_line(line, 0).objects:
            for message in fold.step(record, at):
                if message.role is Role.HUMAN and not message.rule and message.keys[0] not in told:
                    told.add(message.keys[0])
                    text = strip_echo(strip_private(message.text))
                    if text.strip():
                        yield text
