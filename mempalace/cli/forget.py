"""`mempalace forget`: what was said is taken out of the palace, for good.

Owns: what is shown before, the question, and the summary.
Never: deletes a row itself.
Called by: the table in mempalace.cli.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from mempalace import paths
from mempalace.cli.output import iso, minute, one_line, say, shown, write_json
from mempalace.errors import EXIT_ERROR, EXIT_OK, MemPalaceError, WrongUsage
from mempalace.filing import forget as forgetting
from mempalace.filing.forget import Choice
from mempalace.index.discard import discard
from mempalace.search.lookup import exchange_named, session_called, wing_called
from mempalace.store import exchanges, sweep, whole
from mempalace.store.forget import Going, going
from mempalace.store.palace import Palace

_OPENINGS = 10  # exchanges whose first words are shown
_WIDTH = 72  # of those


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a user named, and what that is."""

    choose: Choice
    what: Going
    drawers: list[str]  # ids of drawers that were given: their whole exchanges go
    is_whole: bool


@dataclass(slots=True)
class _Done:
    exchanges: int = 0
    records: int = 0
    drawers: int = 0


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--session", help="Everything that was said in this session.")
@click.option("--wing", help="Everything of this project, person or topic.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def forget(
    *, ids: tuple[str, ...], session: str | None, wing: str | None, yes: bool, as_json: bool
) -> int:
    """Forget what was said: exchanges by ID, a whole session or a whole wing.

    ID is an exchange's or a drawer's, as `mempalace search` shows them; 6 characters are enough
    where no other begins with them. An exchange goes as a whole: a drawer's id means all of it,
    and so does what its answer still adds to it.

    The words leave palace.db, the full-text index and the vectors, and no later reading of a
    transcript, a fork or an export brings them back. The transcripts themselves are never
    touched: delete those yourself. Nor can backups and snapshots be reached, or blocks that a
    copy-on-write or flash disk has not overwritten yet.

    Without ID, --session or --wing it finishes a run that was interrupted.
    """
    given = [bool(ids), session is not None, wing is not None]
    if sum(given) > 1:
        raise WrongUsage(
            "IDs, --session and --wing do not go together", "forget one after the other"
        )
    if as_json and not yes:
        raise WrongUsage("JSON leaves no room for a question", "add --yes, or leave --json out")
    home = paths.home()
    if not any(given):
        return _finish(home)
    with Palace.reader(home) as palace, palace.reading() as db, whole.snapshot(db):
        plan = _plan(db, ids, session, wing)
    for line in () if as_json else _lines(plan):
        say(line)
    if not yes and not _agreed():
        say("Nothing was forgotten.")
        return EXIT_ERROR
    with Palace.writer(home) as palace:
        done = _Done()
        for gone in forgetting.forget(palace, plan.choose, whole=plan.is_whole):
            done.exchanges += gone.exchanges
            done.records += gone.records
            done.drawers += gone.drawers
        _sweep(palace)
    _report(plan, done, as_json=as_json)
    return EXIT_OK


def _finish(home: str) -> int:
    with Palace.reader(home) as palace, palace.reading() as db:
        is_owed = sweep.is_owed(db)
    if not is_owed:
        raise WrongUsage(
            "say what to forget: an ID, --session or --wing",
            "`mempalace search` and `mempalace sessions` show ids",
        )
    with Palace.writer(home) as palace:
        _sweep(palace)
    say("What an interrupted run had left in palace.db is wiped.")
    return EXIT_OK


def _plan(
    db: sqlite3.Connection, ids: Sequence[str], session: str | None, wing: str | None
) -> _Plan:
    """Find what was named. Raises WrongUsage or NotThereYet before anything is changed."""
    if session is not None:
        found = db.execute(
            "SELECT source, id FROM sessions WHERE n = ?", (session_called(db, session),)
        )
        choose = forgetting.whole_session(*found.fetchone())
    elif wing is not None:
        found = db.execute("SELECT name FROM wings WHERE id = ?", (wing_called(db, wing),))
        choose = forgetting.whole_wing(*found.fetchone())
    else:
        numbers = dict.fromkeys(exchange_named(db, given) for given in ids)
        choose = forgetting.these([exchanges.id_of(db, n) for n in numbers])
    drawers = [given for given in ids if "-" in given]
    what = going(db, choose(db), _OPENINGS)
    return _Plan(choose, what, drawers, is_whole=not ids)


def _lines(plan: _Plan) -> Iterator[str]:
    what = plan.what
    yield (
        f"{what.exchanges:,} exchanges ({what.records:,} records in {what.drawers:,} drawers), said"
        f" {minute(what.begin)} to {minute(what.end)}"
    )
    yield f"wings:    {_names(what.wings)}"
    yield f"sessions: {_names(what.sessions)}"
    for exchange_id, text in what.openings:
        yield f"  {exchange_id[:12]}  {shown(one_line(text, _WIDTH))}"
    if what.exchanges > len(what.openings):
        yield f"  and {what.exchanges - len(what.openings):,} more"
    for given in plan.drawers:
        yield f"note: {shown(given)} is a drawer; the whole exchange that it is a part of goes"


def _names(names: Sequence[str]) -> str:
    listed = ", ".join(shown(name) for name in names[:_OPENINGS])
    more = f" and {len(names) - _OPENINGS:,} more" if len(names) > _OPENINGS else ""
    return listed + more if names else "-"


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise WrongUsage(
            "nothing was forgotten: there is no terminal to ask on",
            "add --yes if that is what you want",
        )
    sys.stdout.flush()
    return click.confirm("Forget this for good?", default=False, err=True)


def _sweep(palace: Palace) -> None:
    """Raises where the leftovers cannot be wiped now; the words are out of the palace already."""
    try:
        discard(palace, str(Path(palace.path).parent))
        for step in sweep.sweep(palace):
            if sys.stderr.isatty():
                click.echo(f"{step} …", err=True)
    except MemPalaceError as error:
        raise MemPalaceError(
            "the words are forgotten, but traces of them may still be in unused places of"
            f" palace.db or in the vector index: {error.what}",
            f"{error.hint}; `mempalace forget` without arguments wipes them",
        ) from error


def _report(plan: _Plan, done: _Done, *, as_json: bool) -> None:
    if as_json:
        write_json(
            {
                "exchanges": done.exchanges,
                "records": done.records,
                "drawers": done.drawers,
                "wings": plan.what.wings,
                "sessions": plan.what.sessions,
                "started_at": iso(plan.what.begin),
                "ended_at": iso(plan.what.end),
            }
        )
    else:
        say(
            f"Forgotten: {done.exchanges:,} exchanges, {done.records:,} records,"
            f" {done.drawers:,} drawers. The transcripts on disk are untouched."
        )
