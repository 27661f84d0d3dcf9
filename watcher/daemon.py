"""The watcher's life: one instance, signals, live files before history, a heartbeat.

Owns: the loop and its clocks. Events say where to look soon; a reconcile scan every
`watch.reconcile_seconds` (sooner where events do not tell everything, at once where they were lost
or the clock jumped) is the truth; what grew lately comes before what is old; every piece is one
short transaction, so that SIGTERM is obeyed between two of them.
Never: parses, stores or decides what a file is, or how well it is followed.
Called by: mempalace.cli.watch.
"""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePath
from types import FrameType

from mempalace import config as configuration
from mempalace import paths
from mempalace.config import Config
from mempalace.errors import MemPalaceError
from mempalace.filing.derivation import judge_all_stale, judge_stale
from mempalace.store.palace import Palace, PalaceDamaged, PalaceMoved
from mempalace.store.single import only_one
from mempalace.transcripts import registry
from watcher.capture import Capture
from watcher.clock import Clocks
from watcher.debts import call_in
from watcher.disk import Disk
from watcher.events import POLL_SECONDS, Dirty, Events
from watcher.health import Following, Health, PauseFile, Sight
from watcher.nudge import Nudge
from watcher.roots import Folders, roots
from watcher.scan import Scan, scan
from watcher.work import COLD_SECONDS, Work

log = logging.getLogger("mempalace.watch")

_SETTLE_SECONDS = 0.05  # lines written together are read together
_LIVE_PIECES = 8  # of one file before the next live file has its turn
_RETRY_SECONDS = 5.0  # after a full disk or a lock that somebody keeps
_MOVE_SECONDS = 1.0  # whoever moves a palace away moves its log as well
_HEARTBEAT_SECONDS = 15.0
_TURN_SECONDS = 1.0  # of reading live files, before we look around again
_POLL_SHARE = 0.005  # of the time, at most, goes into the scans of a root that is polled


class Daemon:
    """Follows the roots until it is told to stop; `once` makes one pass and leaves."""

    def __init__(
        self,
        load: Callable[[], Config] = configuration.load,
        disk: Disk | None = None,
        events: Callable[[Dirty, Disk], Events] = Events,
    ) -> None:
        self._load = load
        self._disk = disk or Disk()
        self._config = load()
        self._dirty = Dirty()
        self._events = events(self._dirty, self._disk)
        self._health = Health()
        self._shown: dict[str, object] = {}  # of our health, in the last heartbeat
        self._work = Work()
        self._stopping = False
        self._reloading = False
        self._started_at = 0.0
        self._last_scan = float("-inf")
        self._scan_took = 0.0
        self._last_beat = float("-inf")
        self._unread_bytes = 0
        self._oldest_unread: float | None = None
        self._pause = PauseFile(self._config.home)
        self._blind: dict[str, str] = {}  # root -> what of it could not be looked at, and why
        self._clocks = Clocks(self._disk)

    # --- life -----------------------------------------------------------------------------------

    def run(self, *, once: bool = False) -> None:
        """Raises Locked where another watcher has this palace, MemPalaceError where its home is
        gone, and where a palace vanishes from under a `once`."""
        if once:
            with self._holding():
                self._pass_once()
            return
        try:
            while not self._stopping:
                self._live()
        finally:
            self._events.stop()
            self._dirty.close()
        log.info("watch.stop")

    def _live(self) -> None:
        """With one palace, until we are told to stop or another one is in its place."""
        try:
            with self._holding():
                self._start()
                try:
                    while not self._stopping:
                        self._turn()
                finally:
                    self._forget_heartbeat()
        except PalaceMoved as error:
            log.warning("palace.moved", extra={"what": error.what})
            self._wait(_MOVE_SECONDS)
            self._begin_anew()

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """The palace of our home, which is made where there is none, and the lock beside it."""
        what = "another watcher is following this palace already"
        hint = "nothing to do; `mempalace status` shows it"
        with Palace.writer(self._config.home, create=True) as palace:
            for told in palace.told:
                log.warning("palace.opened", extra={"what": told})
            lock = only_one(self._config.home, paths.WATCH_LOCK, what=what, hint=hint)
            try:
                self._palace = palace
                self._capture, self._nudge = self._new_capture()
                yield
            finally:
                lock.release(force=True)

    def _start(self) -> None:
        self._pause.prepare()
        if self._started_at:
            return
        self._started_at = self._disk.now()
        self._handle_signals()
        log.info("watch.start", extra={"roots": list(roots(self._config))})

    def _begin_anew(self) -> None:
        """What was read is accounted for in a palace that is no more at its path. A home that is
        gone is not made again: somebody took it away."""
        home = self._config.home
        if not self._stopping and not os.path.isdir(home):
            raise MemPalaceError(
                f"{home} is gone, and the palace with it", "`mempalace watch` makes a new one"
            )
        self._work = Work()
        self._last_beat = float("-inf")
        self._dirty.lose("palace.db is another one now")

    def _handle_signals(self) -> None:
        def stop(_signal: int, _frame: FrameType | None) -> None:
            self._stopping = True
            self._dirty.wake()

        def reload(_signal: int, _frame: FrameType | None) -> None:
            self._reloading = True
            self._dirty.wake()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGHUP, reload)

    def _new_capture(self) -> tuple[Capture, Nudge]:
        palace, config, disk = self._palace, self._config, self._disk
        capture = Capture(palace, config, disk, folder_of=Folders(palace))
        return capture, Nudge(palace, config, disk)

    def _pass_once(self) -> None:
        """Everything that is there now, then leave. A one-shot takes every file for cold."""
        self._scan()
        while (path := self._work.take()) is not None:
            self._read_all(path)
        for path in call_in(self._palace, self._config, self._disk):
            self._read_all(path)
        judge_all_stale(self._palace)
        self._nudge.finish()

    def _read_all(self, path: str) -> None:
        while self._capture.read(path, cold=True, reread=True).more:
            pass

    # --- one turn -------------------------------------------------------------------------------

    def _turn(self) -> None:
        try:
            self._reload()
            self._look_around()
            busy = self._read_live() or self._read_history() or judge_stale(self._palace) > 0
            self._nudge.turn()
            self._note_progress()
            self._beat()
            self._health.paused = ""
            self._pause.clear()
        except (PalaceDamaged, PalaceMoved):
            raise
        except MemPalaceError as error:  # border: a full disk or a lock passes; we go on trying
            self._be_paused(error)
            return
        if not busy:
            self._rest(self._until_next())

    def _note_progress(self) -> None:
        if self._work.live:
            return
        self._health.rescan = ""  # what was owed is found and read
        if self._unread_bytes and not self._work.history:
            self._unread_bytes, self._oldest_unread = 0, None  # what the scan found is read
            self._last_beat = float("-inf")

    def _be_paused(self, error: MemPalaceError) -> None:
        """Nothing can be stored: say so where that still can be said, and try again."""
        if self._health.paused != error.what:
            log.warning("watch.trouble", extra={"what": error.what, "hint": error.hint})
        self._health.paused = error.what
        self._last_scan = float("-inf")  # what was at hand has lost its turn
        self._last_beat = float("-inf")  # the pause ends when the next one is written
        self._pause.tell(
            error.what,
            started_at=self._started_at,
            now=self._disk.now(),
            interval=self._config.reconcile_seconds,
        )
        self._wait(_RETRY_SECONDS)

    def _wait(self, seconds: float) -> None:
        """Whatever events come: they bring no room."""
        end = self._disk.monotonic() + seconds
        while self._disk.monotonic() < end and not (self._stopping or self._reloading):
            self._dirty.wait(end - self._disk.monotonic())

    def _rest(self, seconds: float) -> None:
        """Until something happens. A signal may have come while lines were settling, and its
        wake-up is used up."""
        if not self._stopping and not self._reloading:
            self._dirty.wait(seconds)

    def _reload(self) -> None:
        if not self._reloading:
            return
        self._reloading = False
        try:
            self._config = self._load()
        except MemPalaceError as error:  # border: a typo must not end the daemon
            log.warning("config.refused", extra={"what": error.what, "hint": error.hint})
            return
        self._capture, self._nudge = self._new_capture()
        self._last_scan = float("-inf")
        log.info("config.reload")

    def _look_around(self) -> None:
        """Collect what may have changed: from events, and from a scan where one is due or owed."""
        changed, lost = self._dirty.take()
        if changed and not lost:
            self._dirty.wait(_SETTLE_SECONDS)
            more, lost = self._dirty.take()
            changed += more
        for path in changed:
            self._hear(path)
        is_first = not self._shown
        armed = self._events.arm(roots(self._config))  # before the scan: what comes between counts
        self._health.roots = {**self._events.sights(), **self._unreadable()}
        why = lost or self._clocks.jump()
        if why or (armed and not is_first):
            self._health.rescan = why or f"{armed[0]} is followed anew"
            log.warning("watch.rescan", extra={"why": self._health.rescan})
            self._last_beat = float("-inf")  # it may tell a time that is no more
            self._beat()  # before the scan: it may take a while
        if why or armed or self._disk.monotonic() - self._last_scan >= self._interval():
            self._scan(is_owed=bool(why or armed))

    def _hear(self, path: str) -> None:
        """An event told of a file or a folder."""
        if registry.may_be_transcript(PurePath(path)):
            self._hear_of_file(path)
        elif os.path.isdir(path):  # new or moved: what is in it may have had no events
            for found, _ in self._disk.walk(path, self._note_error):
                self._hear_of_file(found)

    def _hear_of_file(self, path: str) -> None:
        self._work.hear(path)
        self._events.told(path)

    def _interval(self) -> float:
        """Seconds from scan to scan."""
        usual = float(self._config.reconcile_seconds)
        if not self._events.is_polling():
            return usual
        return min(usual, max(POLL_SECONDS, self._scan_took / _POLL_SHARE))

    def _scan(self, *, is_owed: bool = False) -> None:
        """The truth: every file whose bytes or settings differ from its checkpoint."""
        began = self._disk.monotonic()
        call_in(self._palace, self._config, self._disk)  # before the scan, which finds them stale
        found = scan(self._palace, self._config, self._disk, roots(self._config))
        self._work.find(found.files, self._disk.now())
        self._judge_events(found, is_owed=is_owed)
        self._blind = found.unreadable
        self._health.roots = {**self._events.sights(), **self._unreadable()}
        self._unread_bytes, self._oldest_unread = found.bytes, found.oldest
        self._last_scan = self._disk.monotonic()
        self._scan_took = self._last_scan - began

    def _judge_events(self, found: Scan, *, is_owed: bool) -> None:
        """Changes that no event told of are evidence against the events (docs/adr/0005)."""
        behind = frozenset(one.path for one in found.files if one.unread)
        told, untold = self._work.told, frozenset[str]()
        if is_owed or self._work.is_deaf:
            self._events.forgive()
        else:
            untold = behind - self._work.behind - told.keys()
        self._events.judge(untold, told)
        self._work.behind, self._work.told = behind, {}

    def _unreadable(self) -> dict[str, Sight]:
        return {root: Sight(Following.UNREADABLE, why) for root, why in self._blind.items()}

    def _read_live(self) -> bool:
        """A few pieces of each live file; True where there is more at once."""
        cold = self._work.cool(self._disk.monotonic())
        end = self._disk.monotonic() + _TURN_SECONDS
        for path in list(self._work.live):
            if self._stopping:
                return False
            if self._disk.monotonic() >= end:
                break
            del self._work.live[path]
            self._read_one(path, _LIVE_PIECES, is_cold=path in cold)
        return bool(self._work.live)

    def _read_history(self) -> bool:
        if not self._work.history or self._stopping:
            return False
        path = self._work.history.pop()
        if self._read_one(path, 1, is_cold=True):
            self._work.history.append(path)
        return bool(self._work.history)

    def _read_one(self, path: str, pieces: int, *, is_cold: bool) -> bool:
        """Read on in a file; True where there is more."""
        is_cold, grew = is_cold and self._is_still(path), False
        for _ in range(pieces):
            outcome = self._capture.read(path, cold=is_cold, reread=is_cold)
            grew = grew or outcome.bytes_read > 0
            if outcome.filed.drawers:
                self._nudge.stored()
            if not outcome.more or self._stopping:
                break
        else:
            if pieces > 1:
                self._work.live[path] = None
        if outcome.unfinished:
            self._work.warm_up(path, self._disk.monotonic(), grew=grew)
        else:
            self._work.warm.pop(path, None)
        return outcome.more

    def _is_still(self, path: str) -> bool:
        try:
            grew = self._disk.look(path).mtime_ns / 1e9
        except OSError:
            return True
        return abs(self._disk.now() - grew) >= COLD_SECONDS

    def _until_next(self) -> float:
        """Seconds until a clock of ours runs out."""
        now = self._disk.monotonic()
        ends = [
            self._last_scan + self._interval(),
            self._last_beat + _HEARTBEAT_SECONDS,
            self._nudge.at,
            *self._work.warm.values(),
        ]
        return max(0.01, min(ends) - now)

    def _note_error(self, error: OSError) -> None:
        log.warning("folder.unreadable", extra={"why": error.strerror})

    # --- heartbeat ------------------------------------------------------------------------------

    def _beat(self) -> None:
        """Leave a sign of life, at least now and then, and at once where our health has changed."""
        now, health = self._disk.monotonic(), self._health.note()
        if now - self._last_beat < _HEARTBEAT_SECONDS and health == self._shown:
            return
        beat = {
            "pid": os.getpid(),
            "started_at": self._started_at,
            "seen_at": self._disk.now(),
            "state": "reading history" if self._work.history else "watching",
            "reconcile_seconds": self._config.reconcile_seconds,
            "unread_bytes": self._unread_bytes,
            "oldest_unread_at": self._oldest_unread,
            **health,
        }
        self._palace.set_note("daemon", json.dumps(beat))
        self._last_beat, self._shown = now, health

    def _forget_heartbeat(self) -> None:
        with suppress(MemPalaceError):  # border: leaving; `status` sees that the process is gone
            self._palace.set_note("daemon", json.dumps({"pid": 0, "seen_at": 0}))
