"""One exchange or wing by the name that a user gives it.

Owns: ids by prefix, wings by any spelling of their name, and what is said where nothing fits.
Never: searches text.
Called by: mempalace.search.find, the commands that take an id or a wing.
"""

from __future__ import annotations

import re
import sqlite3

from mempalace.errors import NotThereYet, WrongUsage
from mempalace.ids import slug

_LEAST = 6  # characters of an id, docs/design.md
_SHOWN = 5  # of the ids that a prefix may mean
_ID = re.compile(r"([0-9a-z]+)(?:-[a-z]*(?:-\d*)?)?")


def exchange_named(db: sqlite3.Connection, given: str) -> int:
    """The number of the exchange whose id begins like this; a drawer's id means its exchange.

    Raises WrongUsage where it is too short, no id or means several, NotThereYet where it means
    none. A retired exchange is found as well: its words are kept.
    """
    match = _ID.fullmatch(given.strip().lower())
    if match is None:
        raise WrongUsage(f"`{given}` is no id", "`mempalace search` shows one under each hit")
    prefix = match.group(1)
    if len(prefix) < _LEAST:
        raise WrongUsage(f"`{given}` is too short", f"give {_LEAST} characters of an id or more")
    rows = db.execute(
        "SELECT n, id FROM exchanges WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        (prefix, prefix + "~", _SHOWN + 1),  # `~` comes behind every letter and digit
    ).fetchall()
    if not rows:
        raise NotThereYet(
            f"no exchange has an id that begins with `{prefix}`",
            "`mempalace search` shows ids; what was forgotten is gone",
        )
    if len(rows) > 1 and rows[0][1] != prefix:
        shown = ", ".join(row[1] for row in rows[:_SHOWN])
        more = " and more" if len(rows) > _SHOWN else ""
        raise WrongUsage(f"`{prefix}` may be {shown}{more}", "give more characters of it")
    return int(rows[0][0])


def wing_called(db: sqlite3.Connection, given: str) -> int:
    """The wing of this name in any spelling: `my-app` is `my_app`. Raises NotThereYet."""
    wings = db.execute("SELECT id, name FROM wings ORDER BY name").fetchall()
    for n, name in wings:
        if slug(name) == slug(given):
            return int(n)
    raise unknown("wing", given, [name for _, name in wings])


def session_called(db: sqlite3.Connection, given: str) -> int:
    """The session of this id, or the only one whose id begins like this."""
    wanted = given.strip().encode("utf-8", "replace").decode()  # an argument may be no Unicode
    rows = db.execute(
        "SELECT n, id FROM sessions WHERE id = ?1 OR (LENGTH(?1) >= ?2 AND id >= ?1 AND id < ?3)"
        " ORDER BY id = ?1 DESC, id LIMIT ?4",
        (wanted, _LEAST, wanted + "\U0010ffff", _SHOWN + 1),
    ).fetchall()
    if not rows:
        raise NotThereYet(f"there is no session `{given}` yet", "`mempalace sessions` lists them")
    if len(rows) > 1 and rows[0][1] != wanted:
        shown = ", ".join(row[1] for row in rows[:_SHOWN])
        raise WrongUsage(f"`{given}` may be {shown}", "give more characters of it")
    return int(rows[0][0])


def source_called(db: sqlite3.Connection, given: str) -> str:
    """The source of this name. Raises NotThereYet."""
    sources = [row[0] for row in db.execute("SELECT DISTINCT source FROM sessions ORDER BY 1")]
    for source in sources:
        if slug(source) == slug(given):
            return str(source)
    raise unknown("source", given, sources)


def unknown(what: str, given: str, known: list[str]) -> NotThereYet:
    """The error for a name that the palace does not have, with those that it has."""
    listed = ", ".join(known) if known else "none so far"
    return NotThereYet(f"there is no {what} `{given}` yet", f"known {what}s: {listed}")
