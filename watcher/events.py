"""File events as hints: which paths may have changed, and whether anything may have been missed.

Owns: the observer, the bounded set of dirty paths, the waking of the daemon's loop, and how each
root is followed: a watch that died or stands on a folder that is gone is made anew, a limit that
was reached is tried again now and then, and where changes are found that no event told of, the
root is polled (docs/adr/0005).
Never: looks at what kind of change it was (kinds differ between systems), reads a file, is
believed: the reconcile scan is the truth (R7).
Called by: watcher.daemon.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, EventEmitter, ObservedWatch

from watcher.disk import Disk
from watcher.health import Following, Sight
from watcher.limits import is_silent

log = logging.getLogger("mempalace.watch")

_MOST_PATHS = 8192  # beyond this a scan is cheaper than the list
# Our own reading of a file raises `opened` and `closed_no_write`: they would feed themselves.
_HINTS = frozenset({"created", "modified", "moved", "closed", "deleted"})
# watchdog tells of a full queue of the system in its log alone, and names nobody who lost what.
_TELLTALES = ("watchdog.observers.inotify", "watchdog.observers.inotify_c")
_UNTOLD = "changes are found that no file event told of"
POLL_SECONDS = 10.0  # between two scans where events do not tell everything
_RETRY_SECONDS = 60.0  # before limits that were reached are tried again
_DOUBT_SECONDS = 600.0  # before a root whose events did not come is armed anew once more
_IN_FLIGHT_SECONDS = 5.0  # an event that has not come by then does not come


class Dirty:
    """Paths that may have changed since the last look; bounded, and shared between threads.

    A pipe wakes whoever waits, also from a signal handler, where a lock must not be taken.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: dict[str, None] = {}
        self._lost = ""
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def add(self, path: str) -> None:
        with self._lock:
            if len(self._paths) >= _MOST_PATHS:
                self._lost = "more changed at once than is kept in mind"
            else:
                self._paths[path] = None
        self.wake()

    def lose(self, why: str) -> None:
        """Events were lost before they came here."""
        with self._lock:
            self._lost = why
        self.wake()

    def wake(self) -> None:
        """Interrupt `wait`; safe in a signal handler."""
        try:
            os.write(self._writer, b"!")
        except BlockingIOError:
            pass  # it is full of wake-ups already

    def wait(self, seconds: float) -> None:
        """Return when something was added, or `wake` was called, or after `seconds`."""
        ready, _, _ = select.select([self._reader], [], [], max(0.0, seconds))
        if ready:
            try:
                while os.read(self._reader, 4096):
                    pass
            except BlockingIOError:
                pass

    def take(self) -> tuple[list[str], str]:
        """Everything that is dirty; and why more may be, '' where nothing was lost: else a scan is
        owed."""
        with self._lock:
            paths, lost = list(self._paths), self._lost
            self._paths.clear()
            self._lost = ""
        return paths, lost

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


class _Handler(FileSystemEventHandler):
    def __init__(self, dirty: Dirty) -> None:
        self._dirty = dirty

    def dispatch(self, event: FileSystemEvent) -> None:
        if event.event_type not in _HINTS:
            return
        if event.is_directory and event.event_type == "modified":
            return  # its entries raise events of their own
        for path in (event.src_path, event.dest_path):
            if path:
                self._dirty.add(os.fsdecode(path))


class _Telltale(logging.Filter):
    """Hears of a full queue of the system. The record itself goes no further: we say it better."""

    def __init__(self, dirty: Dirty) -> None:
        super().__init__()
        self._dirty = dirty

    def filter(self, record: logging.LogRecord) -> bool:
        if "overflow" not in str(record.msg):
            return True
        self._dirty.lose("the system's queue of file events was full")
        return False


_MISSING = Sight(Following.MISSING)


@dataclass(slots=True)
class _Root:
    """One root: its watch, the folder that it stands on, and why it is not simply watched."""

    path: str
    watch: ObservedWatch | None = None
    identity: tuple[int, int] | None = None
    sight: Sight = _MISSING
    retry_at: float | None = None  # when the watch is to be made anew, well or not
    is_doubted: bool = False  # changes were found that no event told of


class Events:
    """Watches the roots as well as the system allows, and says where it does not."""

    def __init__(
        self, dirty: Dirty, disk: Disk, observer: Callable[[], BaseObserver] = Observer
    ) -> None:
        self._dirty = dirty
        self._disk = disk
        self._make_observer = observer
        self._observer: BaseObserver | None = None
        self._roots: dict[str, _Root] = {}
        self._telltale = _Telltale(dirty)
        self._suspects: dict[str, float] = {}  # found changed without an event -> when

    # --- arming -----------------------------------------------------------------------------------

    def arm(self, roots: Iterable[str]) -> list[str]:
        """Watch every root that is there; call it again and again: a root that came, went or was
        made anew is noticed, and so is a watch that died. Gives the roots that were armed now: in
        these something may have been missed, and a scan is owed."""
        wanted = dict.fromkeys(roots)
        for path in [path for path in self._roots if path not in wanted]:
            self._disarm(self._roots.pop(path))
        return [path for path in wanted if self._arm_one(self._roots.setdefault(path, _Root(path)))]

    def sights(self) -> dict[str, Sight]:
        """Each root and how it is followed."""
        return {root.path: root.sight for root in self._roots.values()}

    def is_polling(self) -> bool:
        """Must the scan come more often than usual, because events do not tell everything?"""
        return any(root.sight.following is Following.POLLING for root in self._roots.values())

    def stop(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(timeout=5)
            self._observer = None
        for name in _TELLTALES:
            logging.getLogger(name).removeFilter(self._telltale)

    def _arm_one(self, root: _Root) -> bool:
        try:
            identity = self._disk.folder(root.path)
        except OSError as error:
            self._disarm(root)
            is_absent = isinstance(error, FileNotFoundError)
            reason = f"{root.path}: {error.strerror}"
            root.sight = _MISSING if is_absent else Sight(Following.UNREADABLE, reason)
            return False
        now = self._disk.monotonic()
        if root.identity == identity and (root.retry_at is None or now < root.retry_at):
            if root.watch is None or self._is_alive(root.watch):
                return False
            log.warning("events.died", extra={"root": root.path})
        self._disarm(root)
        root.identity = identity
        self._watch(root, now)
        return True

    def _watch(self, root: _Root, now: float) -> None:
        """Ask for events. Whatever comes of it, the scan sees this root."""
        root.retry_at = None
        try:
            root.watch = self._running().schedule(_Handler(self._dirty), root.path, recursive=True)
        except OSError as error:  # border: ENOSPC and EMFILE are the system's limits on watches
            self._poll(root, f"no file events: {error.strerror or error}", now + _RETRY_SECONDS)
            return
        kind = self._disk.filesystem(root.path)
        if is_silent(kind):
            self._poll(root, f"{kind} does not tell of changes made elsewhere", None)
        elif not self._disk.may_watch():  # a folder that could not be watched is not told of
            why = "the limit of watches is reached, some folders may have no events"
            self._poll(root, why, now + _RETRY_SECONDS)
        elif root.is_doubted:
            self._poll(root, _UNTOLD, now + _DOUBT_SECONDS)
        else:
            root.sight = Sight(Following.WATCHING)

    def _poll(self, root: _Root, reason: str, retry_at: float | None) -> None:
        sight = Sight(Following.POLLING, reason)
        if root.sight != sight:
            log.warning("events.polling", extra={"root": root.path, "why": reason})
        root.sight, root.retry_at = sight, retry_at

    def _disarm(self, root: _Root) -> None:
        if root.watch is not None and self._observer is not None:
            try:
                self._observer.unschedule(root.watch)
            except (KeyError, OSError):
                pass  # its emitter is gone already
        root.watch, root.identity = None, None

    def _is_alive(self, watch: ObservedWatch) -> bool:
        """`observer.is_alive()` proves nothing: it outlives its emitters."""
        if self._observer is None or not self._observer.is_alive():
            return False
        emitters = [one for one in self._observer.emitters if one.watch == watch]
        return any(one.is_alive() and not _forget_dead_reader(one) for one in emitters)

    def _running(self) -> BaseObserver:
        if self._observer is not None and not self._observer.is_alive():
            self._observer = None  # without it no event comes here, however many emitters live
        if self._observer is None:
            # Its threads warn of each nested folder, with hundreds of kilobytes and every path.
            warnings.filterwarnings("ignore", module=r"watchdog\.")
            for name in _TELLTALES:
                logging.getLogger(name).addFilter(self._telltale)
            self._observer = self._make_observer()
            self._observer.start()
        return self._observer

    # --- do events come? --------------------------------------------------------------------------

    def told(self, path: str) -> None:
        """An event has told of this file."""
        self._suspects.pop(path, None)

    def judge(self, untold: Iterable[str], told: Iterable[str]) -> None:
        """After a scan: `untold` are files that it found changed and of which no event told before
        it, `told` files of which events told since the scan before. A root with changes that
        events did not tell of in time is polled, until they do."""
        now = self._disk.monotonic()
        late = [path for path, at in self._suspects.items() if now - at >= _IN_FLIGHT_SECONDS]
        for path in late:
            del self._suspects[path]
        for path in untold:
            if len(self._suspects) < _MOST_PATHS:
                self._suspects.setdefault(path, now)
        told = list(told)
        for root in self._roots.values():
            folder = root.path.rstrip(os.sep) + os.sep
            if root.watch is None:
                continue
            if any(path.startswith(folder) for path in late):
                self._doubt(root, now)
            elif root.is_doubted and any(path.startswith(folder) for path in told):
                root.is_doubted, root.retry_at = False, None
                root.sight = Sight(Following.WATCHING)

    def forgive(self) -> None:
        """Where a scan was owed anyway, what it finds proves nothing against events."""
        self._suspects.clear()

    def _doubt(self, root: _Root, now: float) -> None:
        """Polled, and made anew at once, in case it is only the watch that is broken."""
        if root.sight.following is Following.WATCHING:
            root.is_doubted = True
            self._poll(root, _UNTOLD, now)


def _forget_dead_reader(emitter: EventEmitter) -> bool:
    """watchdog 7 reads for all emitters in one thread, and never replaces it when it has died."""
    reader = getattr(emitter, "_inotify_fd", None)
    if not isinstance(reader, threading.Thread) or reader.is_alive():
        return False
    shared: Any = type(reader)
    if getattr(shared, "_instance", None) is reader:
        shared._instance = None
    return True
