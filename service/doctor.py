"""`mempalace doctor`: what is wrong on this machine, and the command that mends it (R7).

Owns: the checks and their order.
Never: mends anything itself, writes to the palace or below a root (R4): the canary is a folder of
its own beside the home.
Called by: mempalace.cli.doctor.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from mempalace.config import Config
from mempalace.errors import MemPalaceError, NotThereYet
from mempalace.status import Root, Stock, take_stock
from mempalace.store import aside
from mempalace.store.heartbeat import last_pause
from mempalace.store.palace import Palace, PalaceDamaged
from service import installs
from service.finding import Finding, note, well, wrong
from service.proof import FileProof, prove
from service.vectors import vectors
from service.words import Words
from watcher.disk import Disk
from watcher.events import Dirty, Events
from watcher.health import Following
from watcher.limits import Limits, filesystem, is_silent, limits
from watcher.roots import roots

_CANARY_SECONDS = 5.0  # an event that has not come by then does not come
_SOON_DAYS = 7
_DAY = 86_400
_LEAST_FREE = 100 * 1024 * 1024  # bytes; a full-text merge may want that much for a moment
_WATCHES_WANTED = 524_288
_INSTANCES_WANTED = 1_024
_FILES_NAMED = 20
_EXCHANGES_NAMED = 20
_ID_SHOWN = 12  # characters of an exchange's id
_INDEXES = ("talk", "tools")  # by the number of the stream


def examine(
    config: Config, *, deep: bool = False, on_file: Callable[[FileProof], None] | None = None
) -> Iterator[Finding]:
    """Every finding, in the order of the checks. Raises NotThereYet where there is no palace."""
    stock = _stock(config)
    if isinstance(stock, Finding):
        yield stock
    else:
        yield from _daemon(config, stock)
        yield from _roots(stock)
        yield from _unsaved(stock)
    yield from _database(config)
    yield from _set_aside(config)
    yield from _room(config)
    yield from _headroom(config)
    yield _canary(config)
    yield from vectors(config)
    yield from installs.installs()
    yield from installs.home(config.home)
    if deep:
        yield from _proof(config, on_file or (lambda _proof: None))


def _stock(config: Config) -> Stock | Finding:
    try:
        return take_stock(config)
    except NotThereYet:
        raise
    except MemPalaceError as error:  # border: what `status` cannot tell, the other checks may
        return wrong("palace", error.what, error.hint)


# --- the watcher ----------------------------------------------------------------------------------


def _daemon(config: Config, stock: Stock) -> Iterator[Finding]:
    pause = last_pause(config.home, stock.now)
    if pause is not None:
        yield wrong("watcher", f"it runs, but can store nothing: {pause.state}", _free(config))
    elif not stock.daemon.up:
        since = f" since {_when(stock.daemon.seen_at)}" if stock.daemon.seen_at else ""
        yield note("watcher", f"nothing follows the transcripts{since}", "mempalace watch")
    else:
        yield well("watcher", f"process {stock.daemon.pid}: {stock.daemon.state}")
        for told in stock.notices:
            if told.startswith("rescan owed"):
                yield note("watcher", told)


def _roots(stock: Stock) -> Iterator[Finding]:
    for root in stock.roots:
        if root.state == "missing":
            yield note("roots", f"{root.path} does not exist; it is picked up when it appears")
            continue
        for reason in root.reasons:
            yield wrong("roots", reason, _mend_root(root, reason))
        for oddity in root.oddities:
            yield note("roots", oddity)
        kind = filesystem(root.path)
        if is_silent(kind) and root.state != Following.POLLING:
            yield note("roots", f"{root.path} is on {kind}, which is polled")
        if not root.reasons:
            yield well("roots", f"{root.path}: {root.files:,} files, {root.state}")
    for path, why in stock.failed_files.items():
        yield wrong("roots", f"{path} could not be read: {why}", f"chmod u+r {quote(path)}")


def _mend_root(root: Root, reason: str) -> str:
    if "not read yet" in reason:
        return "mempalace backfill"
    return f"chmod -R u+rX {quote(root.path)}"


def _unsaved(stock: Stock) -> Iterator[Finding]:
    """What is lost first if nobody reads it: Claude Code deletes old transcripts."""
    unread = [root for root in stock.roots if root.oldest_unread_at is not None]
    if not unread:
        yield well("unsaved", "every transcript on disk is accounted for")
    if stock.owed:
        yield note(
            "unsaved",
            f"{stock.owed:,} records of forked sessions wait for their parent's transcript;"
            " `mempalace backfill PATH` reads one that is below no root",
        )
    for root in unread:
        told = (
            f"{root.unread_bytes:,} bytes of {root.unread_files:,} files in {root.path} are not"
            f" saved; the oldest, {root.oldest_unread_file}, waits since"
            f" {_when(root.oldest_unread_at)}"
        )
        if root.purged_at is not None:
            told += f"; the first of them is purged on {_when(root.purged_at)}"
        is_soon = root.purged_at is not None and root.purged_at - stock.now < _SOON_DAYS * _DAY
        grade = wrong if is_soon or root.reasons else note
        yield grade("unsaved", told, "mempalace backfill")


# --- the palace -----------------------------------------------------------------------------------


def _database(config: Config) -> Iterator[Finding]:
    """SQLite's own check, and that the full-text index knows each drawer and no other."""
    path = config.home / "palace.db"
    mend = aside.command(str(path))
    try:
        with Palace.reader(config.home) as palace, palace.reading() as db:
            told = [str(row[0]) for row in db.execute("PRAGMA quick_check(5)")]
            if told != ["ok"]:
                yield wrong("database", f"palace.db is damaged: {'; '.join(told)}", mend)
                return
            lost = {name: _not_indexed(db, name, stream) for stream, name in enumerate(_INDEXES)}
    except (PalaceDamaged, sqlite3.Error) as error:
        yield wrong("database", f"palace.db cannot be checked: {error}", mend)
        return
    except MemPalaceError as error:  # not readable now: that is no reason to set it aside
        yield wrong("database", f"palace.db cannot be checked: {error}", error.hint)
        return
    for name, count in lost.items():
        if count:
            yield wrong("full text", f"{count:,} drawers differ from the index `{name}`", mend)
    if not any(lost.values()):
        yield well("database", "palace.db is whole, and its full-text index knows every drawer")


def _not_indexed(db: sqlite3.Connection, name: str, stream: int) -> int:
    """FTS5's `integrity-check` is a write, and takes the writer's lock for its whole run; what it
    keeps of each row tells a reader as much of what is there."""
    row = db.execute(
        f"SELECT (SELECT COUNT(*) FROM drawers WHERE stream = ?1 AND n NOT IN"  # noqa: S608
        f" (SELECT id FROM {name}_docsize)) + (SELECT COUNT(*) FROM {name}_docsize WHERE id NOT IN"
        " (SELECT n FROM drawers WHERE stream = ?1))",
        (stream,),
    ).fetchone()
    return int(row[0])


def _set_aside(config: Config) -> Iterator[Finding]:
    """What was forgotten in a palace that was set aside must stay forgotten in this one (R4)."""
    for path in aside.set_aside(config.home):
        told = (
            f"{path} was set aside: what only it holds is in no search, and what was forgotten"
            f" since is still in it; `sqlite3 {quote(path)} .recover` reads it; delete it when you"
            " need it no more"
        )
        try:
            with Palace.reader(config.home) as palace, palace.reading() as db:
                pieces = [(aside.unknown(db, k), whole) for k, whole in aside.forgotten_in(path)]
        except MemPalaceError:  # border: the check of the database tells
            pieces = []
        if any(keys for keys, _ in pieces):
            is_owed = f"what was forgotten in {path} is not kept out here yet"
            yield wrong("set aside", is_owed, "mempalace backfill")
        elif not all(is_whole for _, is_whole in pieces):
            told += f"; {aside.comes_back(path)}"
        yield note("set aside", told)


def _room(config: Config) -> Iterator[Finding]:
    found = os.statvfs(config.home)
    free = found.f_bavail * found.f_frsize
    if free < _LEAST_FREE:
        yield wrong("room", f"{free:,} bytes are free in {config.home}", _free(config))
    else:
        yield well("room", f"{free // 1024**2:,} MiB are free")


def _free(config: Config) -> str:
    return f"df -h {quote(str(config.home))}"


# --- events ---------------------------------------------------------------------------------------


def _headroom(config: Config) -> Iterator[Finding]:
    found = limits()
    if found is None:
        return  # this system counts no watches
    wanted = sum(_folders(root) for root in roots(config))
    yield from _judge_headroom(found, wanted)


def _judge_headroom(found: Limits, wanted: int) -> Iterator[Finding]:
    told = (
        f"{wanted:,} folders to watch, {found.watches_taken:,} of {found.watches:,} watches taken"
    )
    mend = "sudo sysctl fs.inotify.{}={}"
    if wanted > found.watches or found.watches_taken >= found.watches:
        more = max(_WATCHES_WANTED, 2 * wanted)
        yield wrong("watches", told, mend.format("max_user_watches", more))
    elif found.instances_taken >= found.instances:
        told = f"{found.instances_taken:,} of {found.instances:,} inotify instances are taken"
        yield wrong("watches", told, mend.format("max_user_instances", _INSTANCES_WANTED))
    else:
        yield well("watches", told)


def _folders(root: str) -> int:
    return sum(1 for _ in os.walk(root))


def _canary(config: Config) -> Finding:
    """Does the file system of the home tell of a change? A root is never tried (R4): what is
    written there tries it (docs/adr/0005)."""
    try:
        with _beside(config.home) as folder:
            has_come = _hears(folder)
    except OSError as error:
        return note("events", f"could not be tried beside {config.home}: {error.strerror}")
    kind = filesystem(str(config.home)) or "this file system"
    if has_come:
        return well("events", f"{kind} tells of changes")
    return note(
        "events",
        f"no event came for a file made beside {config.home} ({kind}); roots there are polled",
        "mempalace status",
    )


@contextmanager
def _beside(home: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix=".mempalace-canary-", dir=home.parent) as folder:
        yield folder


def _hears(folder: str) -> bool:
    dirty, disk = Dirty(), Disk()
    events = Events(dirty, disk)
    try:
        events.arm([folder])
        canary = Path(folder) / "canary"
        canary.touch()
        end = disk.monotonic() + _CANARY_SECONDS
        while disk.monotonic() < end:
            dirty.wait(end - disk.monotonic())
            if str(canary) in dirty.take()[0]:
                return True
        return False
    finally:
        events.stop()
        dirty.close()


# --- the proof ------------------------------------------------------------------------------------


def _proof(config: Config, on_file: Callable[[FileProof], None]) -> Iterator[Finding]:
    errors: list[OSError] = []
    words = Words()
    total = FileProof("")
    files = named = more = 0
    for proof in prove(config, words, errors.append):
        on_file(proof)
        files += 1
        total.add(proof)
        if not (proof.missing or proof.trouble):
            continue
        named += 1
        if named > _FILES_NAMED:
            more += 1
        elif proof.trouble:
            mend = f"chmod u+r {quote(proof.path)}"
            yield wrong("proof", f"{proof.path} cannot be read: {proof.trouble}", mend)
        else:
            told = (
                f"{proof.path}: {proof.missing:,} records are not in the palace, the first at byte"
                f" {proof.first_missing:,}"
            )
            yield wrong("proof", told, f"mempalace mine {quote(proof.path)}")
    if more:
        yield wrong("proof", f"and {more:,} more files", "mempalace backfill")
    differing = words.differing()
    if differing:
        yield wrong("proof", _told_differing(differing), "")
    told = (
        f"{files:,} files read: {total.stored:,} records stored, {total.forgotten:,} forgotten,"
        f" {total.left_out:,} left out by rule, {total.waiting:,} waiting for their parent,"
        f" {total.unread:,} not read yet, {total.missing:,} missing;"
        f" {len(differing):,} exchanges with other words"
    )
    if total.missing or more:
        yield wrong("proof", told, "mempalace backfill")
    elif differing:
        yield wrong("proof", told, "")
    elif total.unread or total.waiting:
        yield note("proof", told, "mempalace backfill" if total.unread else "")
    else:
        yield well("proof", told)


def _told_differing(ids: list[str]) -> str:
    named = ", ".join(one[:_ID_SHOWN] for one in ids[:_EXCHANGES_NAMED])
    more = len(ids) - _EXCHANGES_NAMED
    named += f" and {more:,} more" if more > 0 else ""
    return (
        f"{len(ids):,} exchanges are not stored as their transcripts say them: {named}; keep those"
        " transcripts, and compare with `mempalace show ID`"
    )


def _when(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):  # a file may have any time
        return "an unknown time"
