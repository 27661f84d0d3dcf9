"""`mempalace wake-up` when it is not alone on the line: with --debug, or asked for its help.

Owns: nothing but the parsing: the text is mempalace.layers', and so is the fast path.
Never: differs from the fast path in what it prints.
Called by: the table in mempalace.cli.
"""

from __future__ import annotations

import click

from mempalace.cli.output import write
from mempalace.layers import EVENTS, MemoryStack, working_folder


@click.command("wake-up")
@click.option("--wing", help="Of this project, person or topic.")
@click.option("--session", help="The session that begins.")
@click.option("--event", type=click.Choice(EVENTS), default="startup", help="Why it begins.")
def wake_up(*, wing: str | None, session: str | None, event: str) -> None:
    """Print what a session starts with: who you are (identity.txt) and the moments that matter
    most, of the project of the current folder where the palace knows it, else of all."""
    text = MemoryStack().wake_up(wing, cwd=working_folder(), session=session, event=event)
    write(text.encode("utf-8", "backslashreplace"))
