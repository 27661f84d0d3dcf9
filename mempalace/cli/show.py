"""`mempalace show`: one exchange, whole.

Owns: how an exchange is printed.
Never: cuts or repairs its words.
Called by: the table in mempalace.cli.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import click

from mempalace import paths
from mempalace.cli.export import entities
from mempalace.cli.output import is_styled, iso, minute, say, shown, write_json
from mempalace.errors import NotThereYet, WrongUsage
from mempalace.search import exchange_named
from mempalace.search.lookup import session_called
from mempalace.store import derived, whole
from mempalace.store.exchanges import Stored
from mempalace.store.palace import Palace
from mempalace.store.whole import Exchange


@click.command()
@click.argument("id")
@click.option("--why", is_flag=True, help="Also say why it is in its room, and how it is judged.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(*, id: str, why: bool, as_json: bool) -> None:  # noqa: A002 - click names it after the argument
    """Print an exchange, whole and verbatim, in the order in which it was said.

    ID is an exchange's or a drawer's, as `mempalace search` shows them, or a session's: then all of
    its exchanges are printed. 6 characters are enough where no other begins with them.
    """
    with (
        Palace.reader(paths.home()) as palace,
        palace.reading() as db,
        whole.snapshot(db),
    ):
        for exchange in _named(db, id):
            reasons = _reasons(db, exchange) if why else []
            if as_json:
                write_json(_as_values(exchange) | ({"why": reasons} if why else {}))
            else:
                _print(exchange, reasons)


def _named(db: sqlite3.Connection, given: str) -> Iterator[Exchange]:
    try:
        n = exchange_named(db, given)
    except (NotThereYet, WrongUsage) as error:
        try:
            session = session_called(db, given)
        except (NotThereYet, WrongUsage):
            raise error from None
        yield from whole.in_order(db, wing=None, session=session, headless=True)
        return
    yield whole.exchange(db, n)


def _reasons(db: sqlite3.Connection, exchange: Exchange) -> list[str]:
    """What decided, by the rules of today."""
    from mempalace.filing.derivation import judgement

    n = exchange_named(db, exchange.id)
    talk = derived.talk_of(db, n)
    return [] if talk is None else list(judgement(talk).why)


def _print(exchange: Exchange, reasons: list[str]) -> None:
    say(_head(exchange))
    for reason in reasons:
        say(f"why      {shown(reason)}")
    for record in exchange.records:
        say()
        say(_record_head(record))
        if record.text:
            say(shown(record.text))
    say()


def _as_values(exchange: Exchange) -> dict[str, object]:
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
        "headless": exchange.headless,
        "retired": exchange.retired,
        "sightings": [{"path": path, "offset": offset} for path, offset in exchange.sightings],
        "records": [
            {
                "role": record.role.name.lower(),
                "kind": record.kind,
                "said_at": iso(record.said_at),
                "text": record.text,
                "omitted_chars": record.omitted,
            }
            for record in exchange.records
        ],
    }


def _head(exchange: Exchange) -> str:
    lines = [
        f"exchange {exchange.id}  {exchange.wing or '-'}/{exchange.room}",
        f"session  {shown(exchange.session_id)} ({exchange.source})",
        f"said     {minute(exchange.started_at)} to {minute(exchange.ended_at)}",
    ]
    judged = [exchange.memory_type, exchange.hall, f"importance {exchange.importance}"]
    lines.append(f"judged   {', '.join(part for part in judged if part)}")
    if exchange.entities:
        names = ", ".join(name for _, name in exchange.entities)
        lines.append(f"names    {shown(names)}")
    if exchange.cwd:
        lines.append(f"in       {shown(exchange.cwd)}")
    lines += [f"seen in  {shown(path)} at byte {offset}" for path, offset in exchange.sightings]
    if exchange.retired:
        lines.append(f"retired  {exchange.retired}")
    if exchange.source == "claude-code":
        lines.append(f"back     claude --resume {shown(exchange.session_id)}")
    return "\n".join(lines)


def _record_head(record: Stored) -> str:
    """`--- call Read, 2026-01-31 14:30 UTC`."""
    name = record.role.name.lower()
    kind = f" {shown(record.kind)}" if record.kind else ""
    omitted = f", {record.omitted} characters left out" if record.omitted else ""
    line = f"--- {name}{kind}, {minute(record.said_at)}{omitted}"
    return click.style(line, bold=True) if is_styled() else line
