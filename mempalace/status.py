"""What is stored, what is behind, what is wrong: the whole state of a palace in one value.

Owns: what `degraded` means (docs/design.md), and that nothing is silently blind (R7).
Never: opens a transcript (mempalace.unread does, for a time); writes; imports the watcher: what
that knows it leaves in the palace.
Called by: the command `status`, MemoryStack.status.
"""

from __future__ import annotations

import errno
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mempalace.config import DEFAULT, Config
from mempalace.store import debts, sweep
from mempalace.store.accounting import Account, Accounts
from mempalace.store.checkpoints import HIDDEN
from mempalace.store.heartbeat import Heartbeat, last_heartbeat, last_pause
from mempalace.store.palace import Palace
from mempalace.store.vectors import Progress, progress
from mempalace.transcripts import registry
from mempalace.transcripts.files import walk
from mempalace.unread import purge_days, unread_since

_UNKNOWN = "unknown:"  # begins the rule that counts a record of an unknown type
_DAY = 86_400
_PLACES_SHOWN = 100  # of what is quarantined
_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Daemon:
    """The watcher, as its last note has it. Times are seconds since 1970."""

    up: bool
    pid: int | None
    started_at: float | None
    seen_at: float | None
    state: str


@dataclass(frozen=True, slots=True)
class Wing:
    """What a wing holds. Headless exchanges count; retired ones do not."""

    name: str
    exchanges: int
    headless: int
    talk_drawers: int
    tools_drawers: int


@dataclass(slots=True)
class Root:
    """A folder that is followed. `state`: watching, polling, degraded, missing, unreadable; well
    where nobody follows it."""

    path: str
    source: str
    state: str = "well"
    reasons: list[str] = field(default_factory=list)  # why it is degraded
    oddities: list[str] = field(default_factory=list)  # what is strange there, but loses nothing
    files: int = 0
    excluded_files: int = 0
    unread_files: int = 0
    stale_files: int = 0
    bytes_on_disk: int = 0
    bytes_accounted: int = 0
    unread_bytes: int = 0
    oldest_unread_at: float | None = None
    oldest_unread_file: str | None = None
    purged_at: float | None = None  # when Claude Code deletes the unread file that it deletes first


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a file that is no record."""

    path: str
    offset: int
    length: int
    reason: str


@dataclass(slots=True)
class Stock:
    """Everything that `status` tells. Times are seconds since 1970."""

    home: str
    now: float
    daemon: Daemon
    degraded: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    wings: list[Wing] = field(default_factory=list)
    sessions: int = 0
    retired: int = 0
    forgotten: int = 0  # names by which forgotten records are kept out
    sweep_owed: bool = False  # traces of forgotten words may be left in unused places
    roots: list[Root] = field(default_factory=list)
    files: int = 0
    gone_files: int = 0
    failed_files: dict[str, str] = field(default_factory=dict)  # path -> why
    quarantine: dict[str, int] = field(default_factory=dict)  # reason -> places
    quarantined: list[Place] = field(default_factory=list)  # the first of them
    excluded_since: list[str] = field(default_factory=list)  # sessions stored before they were
    left_out: dict[str, int] = field(default_factory=dict)  # rule -> records
    unknown_types: dict[str, int] = field(default_factory=dict)  # name -> records
    owed: int = 0  # records that forks have left to a parent that was not read yet
    index: Progress | None = None  # how far embedding is; None where vectors are off


def take_stock(config: Config, now: Callable[[], float] = time.time) -> Stock:
    """Look at the palace and the roots of `config`. Raises NotThereYet where there is none."""
    with Palace.reader(config.home) as palace, palace.reading() as db:
        beat = last_heartbeat(db)
        moment = now()
        pause = last_pause(config.home, moment)
        stock = Stock(str(config.home), moment, _daemon(beat, pause, moment))
        _count(db, stock)
        stock.owed = debts.count(db)
        stock.index = progress(db, moment) if config.vectors else None
        stock.excluded_since = _excluded_since(db, config)
        accounts = Accounts(db, config, registry.versions())
    followed = _followed(beat) if stock.daemon.up and pause is None else {}
    for source, folders in followed_roots(config):
        for root in map(str, folders):
            stock.roots.append(_look_at(root, source, accounts, followed.get(root, "")))
    if pause is not None:
        stock.degraded.append(f"nothing can be stored: {pause.state}")
    elif stock.daemon.up and beat is not None and beat.rescan:
        stock.notices.append(f"rescan owed: {beat.rescan}")
    _judge(stock, config)
    return stock


def followed_roots(config: Config) -> tuple[tuple[str, tuple[Path, ...]], ...]:
    """Each source and the folders in which its transcripts are followed."""
    return (("claude-code", config.claude_code_roots), ("codex", config.codex_roots))


def as_values(stock: Stock) -> dict[str, Any]:
    """The stock as `status --json` shows it: times as ISO 8601, sums added."""
    values = asdict(stock)
    values["now"] = _iso(stock.now)
    values["daemon"] |= {key: _iso(values["daemon"][key]) for key in ("started_at", "seen_at")}
    for root in values["roots"]:
        root |= {key: _iso(root[key]) for key in ("oldest_unread_at", "purged_at")}
    values["totals"] = {
        key: sum(wing[key] for wing in values["wings"])
        for key in ("exchanges", "headless", "talk_drawers", "tools_drawers")
    }
    values["lag_seconds"] = lag_seconds(stock)
    return values


def lag_seconds(stock: Stock) -> float:
    """The age of the oldest unread byte; 0 where there is none."""
    oldest = [root.oldest_unread_at for root in stock.roots if root.oldest_unread_at is not None]
    return round(max(0.0, stock.now - min(oldest)), 1) if oldest else 0.0


def _iso(seconds: float | None) -> str | None:
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


# --- the palace -----------------------------------------------------------------------------------


def _daemon(beat: Heartbeat | None, pause: Heartbeat | None, now: float) -> Daemon:
    if pause is not None:
        return Daemon(True, pause.pid, pause.started_at, pause.seen_at, "paused")
    if beat is None or not beat.seen_at:
        return Daemon(up=False, pid=None, started_at=None, seen_at=None, state="not running")
    up = beat.is_up(now)
    return Daemon(up, beat.pid, beat.started_at, beat.seen_at, beat.state if up else "down")


def _followed(beat: Heartbeat | None) -> dict[str, str]:
    """How the watcher follows each root."""
    roots = json.loads(beat.roots) if beat is not None else {}
    return {k: str(v) for k, v in roots.items()} if isinstance(roots, dict) else {}


def _count(db: sqlite3.Connection, stock: Stock) -> None:
    rows = db.execute(
        "SELECT COALESCE(w.name, '-'), COUNT(*), SUM(e.headless), SUM(e.talk_drawers),"
        " SUM(e.tools_drawers) FROM exchanges e LEFT JOIN wings w ON w.id = e.wing"
        " WHERE e.retired IS NULL GROUP BY e.wing ORDER BY 2 DESC, 1"
    )
    stock.wings = [Wing(*row) for row in rows]
    stock.retired = _one(db, "SELECT COUNT(*) FROM exchanges WHERE retired IS NOT NULL")
    stock.forgotten = _one(db, "SELECT COUNT(*) FROM tombstones")
    stock.sweep_owed = sweep.is_owed(db)
    stock.sessions = _one(db, "SELECT COUNT(*) FROM sessions")
    stock.files = _one(db, "SELECT COUNT(*) FROM files")
    stock.gone_files = _one(db, "SELECT COUNT(*) FROM files WHERE gone_at IS NOT NULL")
    stock.failed_files = dict(
        db.execute(
            "SELECT path, COALESCE(failure, 'unknown') FROM files"
            " WHERE failures > 0 AND gone_at IS NULL ORDER BY path"
        ).fetchall()
    )
    stock.quarantine = dict(
        db.execute("SELECT reason, COUNT(*) FROM quarantine GROUP BY 1 ORDER BY 2 DESC").fetchall()
    )
    stock.quarantined = [
        Place(*row)
        for row in db.execute(
            "SELECT f.path, q.offset, q.length, q.reason FROM quarantine q"
            " JOIN files f ON f.n = q.file ORDER BY f.mtime_ns DESC, q.offset LIMIT ?",
            (_PLACES_SHOWN,),
        )
        if not row[0].startswith(HIDDEN)
    ]
    for rule, count in db.execute(
        "SELECT rule, SUM(count) FROM tallies GROUP BY rule ORDER BY 2 DESC, 1"
    ):
        name = rule.removeprefix(_UNKNOWN)
        if name == rule:
            stock.left_out[rule] = count
        else:
            stock.unknown_types[name.strip()] = count


def _excluded_since(db: sqlite3.Connection, config: Config) -> list[str]:
    """Sessions with exchanges that `exclude` would keep out if they were said now (R5)."""
    if not config.exclude:
        return []
    rows = db.execute(
        "SELECT id, cwd FROM sessions WHERE n IN (SELECT session FROM exchanges) ORDER BY id"
    )
    return [
        session for session, cwd in rows if config.excludes(cwd=cwd, path=None, session=session)
    ]


def _one(db: sqlite3.Connection, statement: str) -> int:
    return int(db.execute(statement).fetchone()[0])


# --- the roots ------------------------------------------------------------------------------------


def _look_at(path: str, source: str, accounts: Accounts, followed: str) -> Root:
    """Walk one root and hold it against what is known."""
    root = Root(path, source)
    errors: list[OSError] = []
    unread: list[Account] = []
    for file, look in walk(path, errors.append):
        one = accounts.of(file, look)
        if one.is_excluded:
            root.excluded_files += 1
            continue
        root.files += 1
        root.bytes_on_disk += one.size
        root.bytes_accounted += one.size - one.unread
        if one.known is not None and one.known.is_stale:
            root.stale_files += 1
        if one.unread:
            root.unread_files += 1
            root.unread_bytes += one.unread
            unread.append(one)
    _date_unread(root, unread)
    _explain(root, errors, followed)
    return root


def _date_unread(root: Root, unread: list[Account]) -> None:
    days = purge_days(root.path) if root.source == "claude-code" else None
    for one in unread:
        since = unread_since(one)
        if root.oldest_unread_at is None or since < root.oldest_unread_at:
            root.oldest_unread_at, root.oldest_unread_file = since, one.path
        if days is not None:
            purged_at = one.mtime_ns / 1e9 + days * _DAY
            root.purged_at = min(purged_at, root.purged_at or purged_at)


def _explain(root: Root, errors: list[OSError], followed: str) -> None:
    """What could not be looked at, and how the watcher follows the root."""
    for error in errors:
        if error.filename == root.path:
            is_missing = isinstance(error, FileNotFoundError)
            root.state = "missing" if is_missing else "unreadable"
        if root.state != "missing":
            what = f"{error.filename}: {error.strerror}"
            harmless = error.errno in (errno.EINVAL, errno.ELOOP)  # no file at all
            (root.oddities if harmless else root.reasons).append(what)
    if followed.startswith("unreadable") and not root.reasons:
        root.reasons.append(f"the watcher may not read it: {followed.partition(': ')[2]}")
    elif followed not in ("", "watching", "missing"):
        root.oddities.append(f"{root.path}: {followed}")  # polling, and why
        root.state = followed.partition(":")[0] if root.state == "well" else root.state


# --- what is wrong --------------------------------------------------------------------------------


def _judge(stock: Stock, config: Config) -> None:
    """Degraded: what was said may be missing. The rest that is worth telling is a notice."""
    for root in stock.roots:
        oldest = root.oldest_unread_at
        if oldest is not None and stock.now - oldest > 2 * config.reconcile_seconds:
            root.reasons.append(
                f"{root.path}: {root.unread_bytes:,} bytes of {root.unread_files:,} files are"
                " not read yet"
            )
        stock.degraded += root.reasons[:_NAMES_SHOWN]
        if root.state in ("well", "polling") and root.reasons:
            root.state = "degraded"
        elif root.state == "well" and stock.daemon.up:
            root.state = "watching"
    stock.degraded += list(_failures(stock))
    stock.notices += list(_notices(stock, config))


def _failures(stock: Stock) -> Iterator[str]:
    for path, why in list(stock.failed_files.items())[:_NAMES_SHOWN]:
        yield f"{path} could not be read: {why}"
    more = len(stock.failed_files) - _NAMES_SHOWN
    if more > 0:
        yield f"and {more:,} more files could not be read"


def _notices(stock: Stock, config: Config) -> Iterator[str]:
    if not stock.daemon.up:
        yield "nothing follows the transcripts now; `mempalace watch` does"
    if stock.index is not None and stock.index.problem:
        yield f"nothing is embedded: {stock.index.problem}"
    if stock.sweep_owed:
        yield "traces of forgotten words may be left in palace.db; `mempalace forget` wipes them"
    if stock.owed:
        yield f"{stock.owed:,} records of forked sessions wait for their parent's transcript"
    if stock.excluded_since:
        yield (
            f"{len(stock.excluded_since):,} sessions that are excluded now were filed before;"
            f" `mempalace forget --session {stock.excluded_since[0]}` removes the first"
        )
    is_alone = all(root.state == "missing" for root in stock.roots)
    for root in stock.roots:
        if root.state == "missing" and (
            is_alone or config.sources[f"roots.{root.source}"] != DEFAULT
        ):
            yield f"{root.path} does not exist; it is picked up when it appears"
        yield from root.oddities[:_NAMES_SHOWN]
        if root.stale_files:
            yield f"{root.stale_files:,} files in {root.path} are read once more in idle time"
