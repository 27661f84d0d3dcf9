"""`mempalace search`: find what was said.

Owns: how hits are printed.
Never: searches itself.
Called by: the table in mempalace.cli.
"""

from __future__ import annotations

import os
import re
import string

import click

from mempalace import paths
from mempalace.cli.output import is_styled, iso, minute, say, shown, write_json
from mempalace.search import Answer, Hit, ask, find
from mempalace.search.query import KINDS, TIME_FORMS
from mempalace.store.palace import Palace

_RESUME = {"claude-code": "claude --resume", "codex": "codex resume"}
_IDENTIFIER = frozenset(string.ascii_letters + string.digits + "_")
_WINDOW_HEAD = 60  # characters in which a whole word must begin, or the excerpt begins as it is
_ID_SHOWN = 8  # characters of an exchange's id; any unique prefix of 6 is accepted


@click.command()
@click.argument("words", nargs=-1, metavar="QUERY...")
@click.option("--wing", help="Only in this project, person or topic.")
@click.option("--room", help="Only in this room.")
@click.option("--source", help="Only what was said to this program, such as claude-code.")
@click.option("--since", metavar="TIME", help=f"Only what was said since. {TIME_FORMS}.")
@click.option("--until", metavar="TIME", help="Only what was said until; a day counts to its end.")
@click.option("--kind", default="talk", help=f"What to search: {', '.join(KINDS)}.")
@click.option("--limit", default=5, show_default=True, help="Exchanges at most.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def search(
    *,
    words: tuple[str, ...],
    wing: str | None,
    room: str | None,
    source: str | None,
    since: str | None,
    until: str | None,
    kind: str,
    limit: int,
    as_json: bool,
) -> None:
    """Find what was said, in any session, in its own words.

    All words count at once; where that finds too little, any of the rarest.
    """
    query = ask(
        " ".join(words),
        wing=wing, room=room, source=source, since=since, until=until, kind=kind, limit=limit,
    )  # fmt: skip
    with Palace.reader(paths.home()) as palace:
        answer = find(palace, query)
    if as_json:
        write_json(as_values(answer))
        return
    for number, hit in enumerate(answer.results, 1):
        say(_human(number, hit))
    if not answer.results:
        narrowed = any((wing, room, source, since, until))
        say(f"Nothing found for: {shown(query.text)}")
        say(
            "hint: try fewer or other words"
            + (", or without the filters" if narrowed else "")
            + (", or --kind tools" if kind == "talk" else "")
        )
    for reason in answer.degraded:
        say(f"note: {reason}")


def as_values(answer: Answer) -> dict[str, object]:
    """The answer as JSON shows it."""
    return {
        "query": answer.query,
        "degraded": list(answer.degraded),
        "results": [
            {
                "drawer_id": hit.drawer_id,
                "exchange_id": hit.exchange_id,
                "session_id": hit.session_id,
                "wing": hit.wing,
                "room": hit.room,
                "source": hit.source,
                "path": hit.path,
                "said_at": iso(hit.said_at),
                "score": hit.score,
                "matched_via": list(hit.matched_via),
                "text": hit.text,
            }
            for hit in answer.results
        ],
    }


def _human(number: int, hit: Hit) -> str:
    head = f"[{number}] {hit.wing or '-'}/{hit.room}  {minute(hit.said_at)}  score {hit.score:.2f}"
    lines = [
        click.style(head, bold=True) if is_styled() else head,
        f"    session {shown(hit.session_id)} ({hit.source})",
        "",
        *(f"    {line}" if line else "" for line in _marked(hit).split("\n")),
        "",
    ]
    lines += _way_back(hit)
    lines.append(f"    all of it:   mempalace show {hit.exchange_id[:_ID_SHOWN]}")
    return "\n".join([*lines, ""])


def _way_back(hit: Hit) -> list[str]:
    """How to go on with the session that it was said in."""
    command = _RESUME.get(hit.source)
    if command is None:
        return []
    place = f"in {shown(hit.cwd)}" if hit.cwd else ""
    if hit.path is not None and not os.path.exists(hit.path):
        place += "; its transcript is gone" if place else "its transcript is gone"
    end = f"  ({place})" if place else ""
    return [f"    back to it:  {command} {shown(hit.session_id)}{end}"]


def _marked(hit: Hit) -> str:
    """The text with the words of the question in bold, or between ** where there is no bold.

    A mark covers the whole identifier that a word stands in; an excerpt from the middle of an
    exchange begins with a whole word.
    """
    text, at = hit.text, 0
    pieces = []
    if not hit.drawer_id.endswith("-0"):
        at = min(_first_word(text), hit.marks[0][0] if hit.marks else len(text))
        pieces.append("…")
    for begin, end in hit.marks:
        start, stop = begin, end
        while start > at and text[start - 1] in _IDENTIFIER:
            start -= 1
        while stop < len(text) and text[stop] in _IDENTIFIER:
            stop += 1
        start = max(at, start)
        if stop <= at:
            continue
        word = shown(text[start:stop])
        mark = click.style(word, bold=True) if is_styled() else f"**{word}**"
        pieces += [shown(text[at:start]), mark]
        at = stop
    return "".join([*pieces, shown(text[at:])]).strip("\n")


def _first_word(text: str) -> int:
    """Where the first word that is whole begins: a window may begin in the middle of one."""
    found = re.search(r"\s\s*", text[:_WINDOW_HEAD])
    return found.end() if found else 0
