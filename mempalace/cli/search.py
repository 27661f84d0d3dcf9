"""`mempalace search`: find what was said.

Owns: how hits are printed.
Never: searches itself.
Called by: the table in mempalace.cli.
"""

from __future__ import annotations

import click

from mempalace import paths
from mempalace.cli.output import is_styled, iso, minute, say, shown, write_json
from mempalace.search import Answer, Hit, ask, find
from mempalace.search.query import KINDS, TIME_FORMS
from mempalace.store.palace import Palace

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
    if hit.source == "claude-code":
        place = f"  (in {shown(hit.cwd)})" if hit.cwd else ""
        lines.append(f"    back to it:  claude --resume {shown(hit.session_id)}{place}")
    lines.append(f"    all of it:   mempalace show {hit.exchange_id[:_ID_SHOWN]}")
    return "\n".join([*lines, ""])


def _marked(hit: Hit) -> str:
    """The text with the words of the question in bold, or between ** where there is no bold."""
    pieces = []
    at = 0
    for begin, end in hit.marks:
        word = shown(hit.text[begin:end])
        mark = click.style(word, bold=True) if is_styled() else f"**{word}**"
        pieces += [shown(hit.text[at:begin]), mark]
        at = end
    return "".join([*pieces, shown(hit.text[at:])])
