"""`mempalace export`: what the palace holds, one exchange a line.

Owns: the shape of a line.
Never: masks, cuts or repairs: everything the palace knows of the words can be checked here.
Called by: the table in mempalace.cli.
"""

from __future__ import annotations

import os

import click
import orjson

from mempalace import paths
from mempalace.cli.output import iso, write
from mempalace.errors import MemPalaceError
from mempalace.model import Role
from mempalace.search.lookup import session_called, wing_called
from mempalace.store import whole
from mempalace.store.exchanges import Stored
from mempalace.store.palace import Palace
from mempalace.store.whole import Exchange

_WRITTEN_AT_ONCE = 256 * 1024  # bytes


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl"]),
    default="jsonl",
    show_default=True,
    help="One JSON object a line, one line an exchange.",
)
@click.option("--wing", help="Only of this project, person or topic.")
@click.option("--session", help="Only of this session.")
@click.option("--headless", is_flag=True, help="Also answers whose prompt was never found.")
def export(*, form: str, wing: str | None, session: str | None, headless: bool) -> None:
    """Write out what the palace holds, verbatim, in UTF-8."""
    del form  # there is one so far
    home = paths.home()
    with Palace.reader(home, lasts=True) as palace, palace.reading() as db, whole.snapshot(db):
        before = _state_without_log(home)
        wing_n = None if wing is None else wing_called(db, wing)
        session_n = None if session is None else session_called(db, session)
        lines: list[bytes] = []
        size = 0
        for exchange in whole.in_order(db, wing=wing_n, session=session_n, headless=headless):
            lines.append(orjson.dumps(as_values(exchange), option=orjson.OPT_APPEND_NEWLINE))
            size += len(lines[-1])
            if size >= _WRITTEN_AT_ONCE:
                write(b"".join(lines))
                lines, size = [], 0
        write(b"".join(lines))
    if before is not None and _state_without_log(home) != before:
        raise MemPalaceError(
            "the palace was written to while it was exported", "run the export once more"
        )


def _state_without_log(home: str) -> tuple[int, int] | None:
    """What tells that palace.db changed, where it has no write-ahead log.

    Then no log may be made beside it, so it was opened as if nobody could write to it (R9), and a
    writer that starts meanwhile changes it under our hands. With a log we see one moment, whatever
    is written.
    """
    path = os.path.join(home, paths.PALACE_DB)
    if os.path.exists(path + "-wal") or not os.path.exists(path):
        return None
    state = os.stat(path)  # noqa: PTH116
    return state.st_size, state.st_mtime_ns


def as_values(exchange: Exchange) -> dict[str, object]:
    """An exchange as a line of the export shows it."""
    texts: dict[Role, list[str]] = {role: [] for role in Role}
    for record in exchange.records:
        texts[record.role].append(record.text)
    human = texts[Role.HUMAN]
    return {
        "exchange_id": exchange.id,
        "source": exchange.source,
        "session_id": exchange.session_id,
        "started_at": iso(exchange.started_at),
        "ended_at": iso(exchange.ended_at),
        "cwd": exchange.cwd,
        "wing": exchange.wing,
        "room": exchange.room,
        "hall": exchange.hall,
        "memory_type": exchange.memory_type,
        "importance": exchange.importance,
        "key_sentence": exchange.key_sentence,
        "entities": entities(exchange),
        "human": None if exchange.headless else "".join(human[:1]),
        "assistant": texts[Role.ASSISTANT],
        "alternates": texts[Role.ALTERNATE],
        "says": texts[Role.SAID],
        "tools": _tools(exchange.records),
        "sightings": [{"path": path, "offset": offset} for path, offset in exchange.sightings],
    }


def entities(exchange: Exchange) -> list[dict[str, str]]:
    """What it names, as JSON shows it."""
    return [{"kind": kind, "name": name} for kind, name in exchange.entities]


def _tools(records: list[Stored]) -> list[dict[str, object]]:
    """Calls in order, each with its result; a result whose call is not here stands alone."""
    tools: list[dict[str, object]] = []
    of_call: dict[int, dict[str, object]] = {}
    for record in records:
        if record.role is Role.CALL:
            tool: dict[str, object] = {
                "name": record.kind,
                "call": record.text,
                "result": None,
                "omitted_chars": record.omitted,
            }
            tools.append(tool)
            of_call[record.n] = tool
        elif record.role is Role.RESULT:
            call = of_call.get(record.call) if record.call is not None else None
            if call is None or call["result"] is not None:
                call = {"name": None, "call": None, "result": None, "omitted_chars": 0}
                tools.append(call)
            call["result"] = record.text
            call["omitted_chars"] = int(str(call["omitted_chars"])) + record.omitted
    return tools
