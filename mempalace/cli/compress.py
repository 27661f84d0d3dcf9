"""`mempalace compress`: a wing as index cards in AAAK, beside the verbatim text.

Owns: what is compressed of an exchange, and that its ratio is measured.
Never: writes into palace.db: a card is a view, made anew each time.
Called by: the table in mempalace.cli.
"""

from __future__ import annotations

import click

from mempalace import paths
from mempalace.cli.output import counted, iso, say, shown
from mempalace.dialect import Dialect, Ratio
from mempalace.model import STREAM_OF, Role, Stream
from mempalace.search.lookup import wing_called
from mempalace.store import whole
from mempalace.store.exchanges import SEPARATOR
from mempalace.store.palace import Palace
from mempalace.store.whole import Exchange

_ID = 12  # characters of an exchange's id, as many as nobody else's begins with


@click.command()
@click.option("--wing", required=True, help="Of this project, person or topic.")
@click.option("--dry-run", is_flag=True, help="Print only how much shorter it would be.")
@click.option(
    "--config",
    type=click.Path(),
    help='A JSON file with names and their codes: {"entities": {"Alice": "ALC"}}.',
)
def compress(*, wing: str, dry_run: bool, config: str | None) -> None:
    """Print a wing's talk as AAAK: cards that a model reads at a glance. They are lossy, stand
    beside the verbatim text and are stored nowhere; the last line says how much shorter they are.

    A card's header ends with the id of its exchange: `mempalace show` prints that verbatim."""
    dialect = Dialect() if config is None else Dialect.from_config(config)
    total, cards = Ratio(0, 0), 0
    with Palace.reader(paths.home()) as palace, palace.reading() as db, whole.snapshot(db):
        number = wing_called(db, wing)
        for exchange in whole.in_order(db, wing=number, session=None, headless=True):
            text = talk_of(exchange)
            if not text.strip():
                continue
            card = dialect.compress(text, _metadata(exchange))
            total += dialect.measure(text, card)
            cards += 1
            if not dry_run:
                say(shown(card))
                say()
    say(f"{counted(cards, 'exchange')}: {total} (characters / 4)")


def talk_of(exchange: Exchange) -> str:
    """What was said in an exchange, without what its conversation abandoned."""
    return SEPARATOR.join(
        record.text
        for record in exchange.records
        if STREAM_OF.get(record.role) is Stream.TALK and record.role is not Role.ALTERNATE
    )


def _metadata(exchange: Exchange) -> dict[str, object]:
    return {
        "wing": exchange.wing,
        "room": exchange.room,
        "date": (iso(exchange.started_at) or "")[:10],
        "source": f"{exchange.source} {exchange.id[:_ID]}",
    }
