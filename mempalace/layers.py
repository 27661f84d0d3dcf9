"""The memory stack: what a session starts with (L0, L1), and what it can ask for (L2, L3).

Owns: the text of each layer, the guess which wing a folder belongs to, and the fast path of
`mempalace wake-up`.
Never: waits, locks, writes, or imports before it must: sqlite3 and our light modules are all that
`main` needs (R9), because every session of an agent begins with it.
Called by: mempalace.__main__ and the command `wake-up`; MemoryStack by whoever uses the library.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time

from mempalace import paths
from mempalace.errors import EXIT_OK, WrongUsage
from mempalace.store.connect import read_only
from mempalace.store.moments import most_important, opening
from mempalace.trouble import capture_trouble
from mempalace.wording import CONTROLS, date, harmless, safe, shortened

TYPE_CHECKING = False  # typing itself costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

HEADING = "## L1 — ESSENTIAL STORY"
OVERFLOW = "  ... (more in L3 search)"
_HOW_TO_SEARCH = (
    'To find anything that was ever said: `mempalace search{} "…"`; '
    "`mempalace show ID` prints an exchange whole."
)
_MOMENTS = 15
_OF_ONE_SESSION = 2
_MOMENT_CHARACTERS = 200
_STORY_CHARACTERS = 3_200
_LOOKED_AT = 4_000  # exchanges looked through for moments: a palace of one session ends it too
_OPENED = 200  # of them, prompts read
_LEAST_BYTES = 16  # a shorter prompt ("yes", "go on") tells nothing; bytes, so that CJK counts
_SNIPPET = 300  # characters of a drawer in L2 and L3
_RECALLED = 10  # drawers in L2
_SESSION_SHOWN = 8  # characters of a session's id

USAGE = """\
Usage: mempalace wake-up [--wing WING] [--session ID --event EVENT]

  Print what a session starts with: who you are (identity.txt) and the moments that matter most, of
  the project of the current folder where the palace knows it, else of all.

Options:
  --wing WING    Of this project, person or topic.
  --session ID   The session that begins. After a compaction, what it was about is told as well.
  --event EVENT  Why it begins: startup, resume, clear or compact.
  -h, --help     Show this message and exit.
"""
EVENTS = ("startup", "resume", "clear", "compact")


def main(argv: list[str]) -> int:
    """`mempalace wake-up`, by the shortest path. Errors rise to mempalace.__main__."""
    if "-h" in argv or "--help" in argv:
        _write(USAGE)
        return EXIT_OK
    given = _options(argv)
    event = given.get("--event", "startup")
    if event not in EVENTS:
        raise WrongUsage(f"wake-up knows no event `{event}`", f"the events are {', '.join(EVENTS)}")
    session = given.get("--session")
    text = MemoryStack().wake_up(
        given.get("--wing"), cwd=working_folder(), session=session, event=event
    )
    _write(text)
    return EXIT_OK


def _options(argv: list[str]) -> dict[str, str]:
    """`--name value` and `--name=value`, in any order."""
    given: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        name, is_there, value = word.partition("=")
        found = value if is_there else next(words, None)
        if name not in ("--wing", "--session", "--event") or found is None:
            raise WrongUsage(
                f"wake-up does not understand `{' '.join(argv)}`", "see `mempalace wake-up --help`"
            )
        given[name] = found
    return given


def _write(text: str) -> None:
    """UTF-8 whatever the locale: an agent reads it."""
    data = text.encode("utf-8", "backslashreplace")
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # a replaced stdout
        sys.stdout.write(data.decode())
    else:
        sys.stdout.flush()
        buffer.write(data)


def working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed under our feet
        return None


class MemoryStack:
    """The four layers over one palace. Every call looks anew and leaves nothing open."""

    def __init__(self, home: str | os.PathLike[str] | None = None) -> None:
        self.home = paths.home() if home is None else os.fspath(home)

    def wake_up(
        self,
        wing: str | None = None,
        *,
        cwd: str | None = None,
        session: str | None = None,
        event: str = "startup",
    ) -> str:
        """L0 and L1 as a session gets them; of `wing`, else of the wing of `cwd`, else of all. To a
        `session` that was compacted (`event`) it is told what itself has been about; on the other
        events its context has that already, or it has no past.

        Raises NotThereYet where there is no palace, or no such wing.
        """
        identity = _identity(self.home)
        path = os.path.join(self.home, paths.PALACE_DB)
        db = None
        try:
            db = read_only(path)
            db.execute("BEGIN")  # one moment of the palace, until it is closed
            chosen = _wing_named(db, wing) if wing is not None else _guess_wing(db, cwd)
            story = essential_story(db, chosen)
            if not story and wing is None and chosen is not None:
                chosen, story = None, essential_story(db, None)  # better than nothing
            names = db.execute("SELECT name FROM wings WHERE id = ?", (chosen,)).fetchall()
            option = "".join(f" --wing {name}" for (name,) in names)
            trouble = capture_trouble(db, self.home, time.time())
            past = _past(db, session) if event == "compact" else []
        except sqlite3.DatabaseError as error:
            raise _explained(error, path) from error
        finally:
            if db is not None:
                db.close()
        generated = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        lines = [f'<mempalace-context generated="{generated}">']
        if trouble:
            lines.append(trouble)
        lines += [identity, "", HEADING]
        lines += story or ["  (nothing yet: what is said from now on is kept)"]
        lines += ["", *map(safe, past)] if past else []
        lines += ["", _HOW_TO_SEARCH.format(option), "</mempalace-context>"]
        return "\n".join(lines) + "\n"

    def recall(self, wing: str | None = None, room: str | None = None) -> str:
        """L2: the latest drawers of a wing, a room or both."""
        from mempalace.search import latest
        from mempalace.store.palace import Palace

        with Palace.reader(self.home) as palace:
            hits = latest(palace, wing=wing, room=room, limit=_RECALLED)
        lines = [f"## L2 — ON-DEMAND ({len(hits)} drawers)"]
        lines += [f"  [{hit.room}] {_snippet(hit.text)}  ({_origin(hit)})" for hit in hits]
        return "\n".join(lines if hits else [*lines, "  (nothing here)"]) + "\n"

    def search(self, query: str, wing: str | None = None, room: str | None = None) -> str:
        """L3: the best five exchanges for a question."""
        from mempalace.search import ask, find
        from mempalace.store.palace import Palace

        with Palace.reader(self.home) as palace:
            answer = find(palace, ask(query, wing=wing, room=room))
        lines = [f'## L3 — SEARCH RESULTS for "{query}"']
        for number, hit in enumerate(answer.results, 1):
            lines.append(f"  [{number}] {hit.wing or '-'}/{hit.room} (sim={hit.score:.3f})")
            lines.append(f"      {_snippet(hit.text)}")
            lines.append(f"      src: {_origin(hit)}")
        lines += [] if answer.results else ["  (nothing found)"]
        lines += [f"  note: {reason}" for reason in answer.degraded]
        return "\n".join(lines) + "\n"

    def status(self) -> dict[str, Any]:
        """What `mempalace status --json` shows."""
        from mempalace import config
        from mempalace.status import as_values, take_stock

        return as_values(take_stock(config.load({**os.environ, paths.HOME_VARIABLE: self.home})))


def _explained(error: sqlite3.DatabaseError, path: str) -> Exception:
    from mempalace.store.palace import explanation  # costs 10 ms: only where something is wrong

    return explanation(error, path) or error


def _snippet(text: str) -> str:
    return shortened(" ".join(text.split()), _SNIPPET)


def _origin(hit: Any) -> str:
    when = "" if hit.said_at is None else f", {date(hit.said_at)}"
    return f"{hit.session_id}{when}"


# --- L0 -------------------------------------------------------------------------------------------


def _identity(home: str) -> str:
    path = os.path.join(home, paths.IDENTITY_TXT)
    try:
        with open(path, "rb") as stream:
            text = stream.read().decode("utf-8-sig", "replace").strip("\n")
    except OSError:
        text = ""
    return harmless(text) or f"No identity yet: write who you are to {path}"


# --- L1 -------------------------------------------------------------------------------------------


def essential_story(db: sqlite3.Connection, wing: int | None) -> list[str]:
    """The lines of L1 below its heading; none where there is no moment."""
    rooms: dict[str, list[str]] = {}
    length = len(HEADING) + 1
    is_cut = False
    for room, text, session, at in _moments(db, wing):
        session_id = db.execute("SELECT id FROM sessions WHERE n = ?", (session,)).fetchone()[0]
        when = "" if at is None else f", {date(at)}"
        line = f"  - {text}  ({session_id[:_SESSION_SHOWN]}{when})"
        cost = len(line) + 1 + (0 if room in rooms else len(room) + 3)
        if length + cost > _STORY_CHARACTERS - len(OVERFLOW) - 1:
            is_cut = True
            break
        rooms.setdefault(room, []).append(line)
        length += cost
    lines: list[str] = []
    for room, found in rooms.items():
        lines += [f"[{room}]", *found]
    return [*lines, OVERFLOW] if is_cut else lines


def _moments(db: sqlite3.Connection, wing: int | None) -> list[tuple[str, str, int, int | None]]:
    """(room, text, session, said) of the best exchanges; poor ones only where good ones lack."""
    good: list[tuple[str, str, int, int | None]] = []
    poor: list[tuple[str, str, int, int | None]] = []
    taken: dict[int, int] = {}
    opened = 0
    for looked_at, (exchange, session, room, sentence, at) in enumerate(most_important(db, wing)):
        if len(good) == _MOMENTS or looked_at == _LOOKED_AT or opened == _OPENED:
            break
        if taken.get(session, 0) == _OF_ONE_SESSION:
            continue
        opened += 1
        text = _moment_text(sentence or opening(db, exchange))
        if not text:
            continue
        if _is_poor(text):
            poor.append((room, text, session, at))
            continue
        taken[session] = taken.get(session, 0) + 1
        good.append((room, text, session, at))
    for moment in poor:
        session = moment[2]
        if len(good) < _MOMENTS and taken.get(session, 0) < _OF_ONE_SESSION:
            taken[session] = taken.get(session, 0) + 1
            good.append(moment)
    return good


def _moment_text(words: str) -> str:
    """A sentence or the beginning of a prompt on one line, without what it quotes first."""
    lines = [line.strip() for line in words.split("\n")]
    own = [line for line in lines if line and not line.startswith(">")]
    quoted = [line.lstrip("> ") for line in lines]
    text = " ".join(" ".join(own or quoted).split()).translate(CONTROLS)
    return shortened(harmless(text), _MOMENT_CHARACTERS)


def _is_poor(text: str) -> bool:
    """A bare slash command, or too little to tell anything."""
    is_command = text.startswith("/") and " " not in text
    return is_command or len(text.encode("utf-8", "replace")) < _LEAST_BYTES


def _past(db: sqlite3.Connection, session: str | None) -> list[str]:
    if session is None:
        return []
    from mempalace.session_story import session_story  # most sessions begin without a past

    return session_story(db, session)


# --- which wing -----------------------------------------------------------------------------------


def _wing_named(db: sqlite3.Connection, given: str) -> int:
    plain = given.encode("utf-8", "replace").decode()  # an argument may be no Unicode
    known = db.execute("SELECT id FROM wings WHERE name = ?", (plain,)).fetchone()
    if known is not None:
        return int(known[0])
    from mempalace.search.lookup import wing_called  # costs 20 ms: only for another spelling

    return wing_called(db, given)


def _guess_wing(db: sqlite3.Connection, cwd: str | None) -> int | None:
    """The wing that sessions in this folder have; None where the palace does not know it.

    The nearest folder counts, up to the project's own: what is above a project is another one.
    """
    if not cwd:
        return None
    folders = list(_folders_up(cwd))
    wing = _nearest(db, folders)
    if wing is None and ("worktrees/" in cwd or os.path.isfile(os.path.join(folders[-1], ".git"))):
        from mempalace.mining.projects import project_root  # costs 7 ms: only for a worktree

        root = project_root(cwd)
        wing = None if root is None else _nearest(db, [root])
    return wing


def _folders_up(cwd: str) -> Iterator[str]:
    """The folder and those above it, up to its project's."""
    folder = os.path.normpath(cwd)
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder or os.path.exists(os.path.join(folder, ".git")):
            return
        folder = above


def _nearest(db: sqlite3.Connection, folders: list[str]) -> int | None:
    marks = ",".join("?" * len(folders))
    rows = db.execute(
        f"SELECT path, wing FROM folders WHERE path IN ({marks})"  # noqa: S608 - question marks
        f" UNION ALL SELECT root, id FROM wings WHERE root IN ({marks})",
        [*folders, *folders],
    ).fetchall()
    found: dict[str, int] = dict(reversed(rows))
    return next((found[folder] for folder in folders if folder in found), None)
