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
from mempalace.cli.output import is_styled, iso, minute, say, shown, write_json
from mempalace.errors import NotThereYet, WrongUsage
from mempalace.search import exchange_named
from mempalace.search.lookup import session_called
from mempalace.store import whole
from mempalace.store.exchanges import Stored
from mempalace.store.palace import Palace
from mempalace.store.whole import Exchange


@click.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(*, id: str, as_json: bool) -> None:  # noqa: A002 - click names it after the argument
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
            if as_json:
                write_json(_as_values(exchange))
            else:
                _print(exchange)


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


def _print(exchange: Exchange) -> None:
    say(_head(exchange))
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
