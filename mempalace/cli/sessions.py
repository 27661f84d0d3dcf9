"""`mempalace sessions`: which sessions there are.

Owns: how the list is printed.
Never: reads the palace itself.
Called by: the table in mempalace.cli.
"""

from __future__ import annotations

import shutil
import sys

import click

from mempalace import paths
from mempalace.cli.output import counted, iso, minute, one_line, say, shown, write_json
from mempalace.search.query import LARGEST_LIMIT, TIME_FORMS, since_moment
from mempalace.search.sessions import Session
from mempalace.search.sessions import sessions as list_sessions
from mempalace.store.palace import Palace

_WIDTH = 150  # of a line where there is no terminal
_PROMPT = 400  # characters of a prompt in JSON: it is a list, `show` has it whole


@click.command()
@click.option("--wing", help="Only of this project, person or topic.")
@click.option("--since", metavar="TIME", help=f"Only with something said since. {TIME_FORMS}.")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, LARGEST_LIMIT),
    help="Sessions at most.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sessions(*, wing: str | None, since: str | None, limit: int, as_json: bool) -> None:
    """List the sessions in the palace, the latest first: when something was last said, where,
    how it began, and how much it is."""
    begin = since_moment(since)
    with Palace.reader(paths.home()) as palace:
        found = list_sessions(palace, wing=wing, since=begin, limit=limit + 1)
    more, found = len(found) > limit, found[:limit]
    if as_json:
        write_json([_as_values(session) for session in found])
        return
    width = shutil.get_terminal_size((_WIDTH, 0)).columns if sys.stdout.isatty() else _WIDTH
    for session in found:
        say(_line(session, max(width, 80)))
    if found and sys.stdout.isatty():  # a pipe gets the list alone
        say("all that was said in one: `mempalace show SESSION`")
        if more:
            say(f"there are more: --limit {limit * 5}, --wing, --since")
    if not found:
        narrowed = wing is not None or since is not None
        remedy = "try without the filters" if narrowed else "`mempalace backfill` files some"
        say(f"No sessions.\nhint: {remedy}")


def _as_values(session: Session) -> dict[str, object]:
    prompt = session.first_prompt
    return {
        "session_id": session.id,
        "source": session.source,
        "wing": session.wing,
        "cwd": session.cwd,
        "path": session.path,
        "started_at": iso(session.started_at),
        "ended_at": iso(session.ended_at),
        "exchanges": session.exchanges,
        "characters": session.characters,
        "first_prompt": None if prompt is None else one_line(prompt, _PROMPT),
    }


def _line(session: Session, width: int) -> str:
    size = f"{counted(session.exchanges, 'exchange')}, {_size(session.characters)}"
    head = (
        f"{minute(session.ended_at):<20}  {shown(session.id):<36}  {session.wing or '-':<16}  "
        f"{size:<24}  "
    )
    prompt = session.first_prompt
    room = max(30, width - len(head))
    return head + (shown(one_line(prompt, room)) if prompt else "(answers without a prompt)")


def _size(characters: int) -> str:
    if characters < 1_000:
        return f"{characters} characters"
    if characters < 1_000_000:
        return f"{characters / 1e3:.0f}k characters"
    return f"{characters / 1e6:.1f}M characters"
