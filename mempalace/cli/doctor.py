"""`mempalace doctor`: what is wrong, and the command that mends it.

Owns: how findings are printed, and the exit code: 4 where something is wrong.
Never: looks for anything itself (service.doctor does).
Called by: the table in mempalace.cli.
"""

from __future__ import annotations

from dataclasses import asdict

import click

from mempalace import config as configuration
from mempalace.cli.output import is_styled, say, shown, write_json
from mempalace.errors import EXIT_DEGRADED, EXIT_OK

_COLOURS = {"well": "green", "note": "yellow", "wrong": "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--deep", is_flag=True, help="Also read every transcript again: is all that was said stored?"
)
def doctor(*, as_json: bool, deep: bool) -> int:
    """Examine this installation, and name the command that mends what is wrong.

    Nothing is changed. Exit code 4 where something is wrong, else 0.
    """
    from service.doctor import examine
    from service.finding import Grade

    findings = []
    for one in examine(configuration.load(), deep=deep):
        findings.append(one)
        if not as_json:
            grade = click.style(one.grade, fg=_COLOURS[one.grade]) if is_styled() else one.grade
            say(f"{grade:<5} {one.check}: {shown(one.what)}")
            if one.mend:
                say(f"      mend: {shown(one.mend)}")
    is_wrong = any(one.grade is Grade.WRONG for one in findings)
    if as_json:
        write_json({"well": not is_wrong, "findings": [asdict(one) for one in findings]})
    return EXIT_DEGRADED if is_wrong else EXIT_OK
