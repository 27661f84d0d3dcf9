"""`mempalace init` and `mempalace config`.

Owns: what they print, and the text of a new identity.txt.
Never: overwrites a file of the user.
Called by: the table in mempalace.cli.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mempalace import config as configuration
from mempalace import paths

# Every session reads it until it is edited, so it says nothing that is not true of everybody.
_IDENTITY = """\
I keep a memory of past sessions in MemPalace and look things up there before I ask again.
(Edit this file: who you are, whom you work with, what matters to both. 50 to 100 tokens.)
"""


@click.command()
@click.option("--yes", is_flag=True, help="Also write an identity.txt to edit; ask nothing.")
def init(*, yes: bool) -> None:
    """Create the palace's home and a commented config.yaml."""
    home = Path(paths.home())
    paths.create_home(home)
    click.echo(f"home: {home}")
    _create(home / paths.CONFIG_YAML, configuration.render_default())
    identity = home / paths.IDENTITY_TXT
    if identity.exists() or yes or _is_wanted(identity):
        _create(identity, _IDENTITY)


def _create(file: Path, text: str) -> None:
    is_new = paths.create_file(file, text)
    click.echo(f"{'written' if is_new else 'kept as it is'}: {file}")


def _is_wanted(identity: Path) -> bool:
    """Ask, where somebody is there to answer."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        return click.confirm("Write an identity.txt, the words every session starts with?")
    click.echo(f"not written: {identity} (--yes writes one to edit)")
    return False


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def config(*, as_json: bool) -> None:
    """Show every setting, its value and where that came from."""
    settings = list(configuration.load().settings())
    if as_json:
        click.echo(json.dumps([asdict(setting) for setting in settings], ensure_ascii=False))
    elif sys.stdout.isatty():
        _print_table(settings)
    else:
        for setting in settings:
            click.echo("\t".join((setting.key, *_cells(setting))))


def _cells(setting: configuration.Setting) -> tuple[str, str, str]:
    return _text(setting.value), setting.source, setting.help


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _print_table(settings: list[configuration.Setting]) -> None:
    from rich.console import Console  # costs 60 ms, and a pipe needs none of it
    from rich.table import Table
    from rich.text import Text

    table = Table("key", "value", "source", "what it does", box=None, pad_edge=False)
    for setting in settings:  # Text: a value may hold brackets, which rich takes for markup
        table.add_row(Text(setting.key), *(Text(cell) for cell in _cells(setting)))
    Console().print(table)
