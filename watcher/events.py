"""File events as hints: which paths may have changed, and whether anything may have been missed.

Owns: the observer, the bounded set of dirty paths, the waking of the daemon's loop, and what is
known of the health of each root.
Never: looks at what kind of change it was (kinds differ between systems), reads a file, is
believed: the reconcile scan is the truth (R7).
Called by: watcher.daemon.
"""

from __future__ import annotations

import os
import select
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

_MOST_PATHS = 8192  # beyond this a scan is cheaper than the list
# Our own reading of a file raises `opened` and `closed_no_write`: they would feed themselves.
_HINTS = frozenset({"created", "modified", "moved", "closed", "deleted"})


class Dirty:
    """Paths that may have changed since the last look; bounded, and shared between threads.

    A pipe wakes whoever waits, also from a signal handler, where a lock must not be taken.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: dict[str, None] = {}
        self._overflowed = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def add(self, path: str) -> None:
        with self._lock:
            if len(self._paths) >= _MOST_PATHS:
                self._overflowed = True
            else:
                self._paths[path] = None
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

    def take(self) -> tuple[list[str], bool]:
        """Everything that is dirty, and whether more was than fits: then a scan is owed."""
        with self._lock:
            paths, overflowed = list(self._paths), self._overflowed
            self._paths.clear()
            self._overflowed = False
        return paths, overflowed

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


@dataclass(slots=True)
class _Root:
    """One root: its watch, the folder that it stands on, and why it has none."""

    path: str
    watch: ObservedWatch | None = None
    identity: tuple[int, int] | None = None
    trouble: str = ""


@dataclass(slots=True)
class Events:
    """Watches the roots as well as the system allows, and says where it does not."""

    dirty: Dirty
    _roots: dict[str, _Root] = field(default_factory=dict)
    _observer: BaseObserver | None = None

    def arm(self, roots: Iterable[str]) -> bool:
        """Watch every root that is there; call it again and again: a root that came, went or was
        made anew is noticed, and so is a watch that died. True if anything was armed: then
        something may have been missed, and a scan is owed."""
        wanted = dict.fromkeys(roots)
        for path in [path for path in self._roots if path not in wanted]:
            self._disarm(self._roots.pop(path))
        armed = [self._arm_one(self._roots.setdefault(path, _Root(path))) for path in wanted]
        return any(armed)

    def states(self) -> dict[str, str]:
        """Each root and how it is followed: watching, missing, or polling with the reason."""
        return {
            root.path: root.trouble or ("watching" if root.watch else "missing")
            for root in self._roots.values()
        }

    def stop(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(timeout=5)
            self._observer = None

    def _arm_one(self, root: _Root) -> bool:
        try:
            status = os.stat(root.path)
        except OSError as error:
            self._disarm(root)
            absent = isinstance(error, (FileNotFoundError, NotADirectoryError))
            root.trouble = "" if absent else f"unreadable: {error.strerror}"
            return False
        identity = (status.st_dev, status.st_ino)
        if root.watch is not None and root.identity == identity and self._is_alive(root.watch):
            return False
        self._disarm(root)
        try:
            root.watch = self._running().schedule(_Handler(self.dirty), root.path, recursive=True)
        except OSError as error:  # border: ENOSPC and EMFILE are the system's limits on watches
            root.trouble = f"polling: no file events ({error.strerror or error})"
            return False
        root.identity, root.trouble = identity, ""
        return True

    def _disarm(self, root: _Root) -> None:
        if root.watch is not None and self._observer is not None:
            try:
                self._observer.unschedule(root.watch)
            except (KeyError, OSError):
                pass  # its emitter is gone already
        root.watch, root.identity = None, None

    def _is_alive(self, watch: ObservedWatch) -> bool:
        """`observer.is_alive()` proves nothing: it outlives its emitters (TAILING.md, M8)."""
        emitters = self._observer.emitters if self._observer is not None else set()
        return any(emitter.watch == watch and emitter.is_alive() for emitter in emitters)

    def _running(self) -> BaseObserver:
        if self._observer is None:
            # Its threads warn of each nested folder, with hundreds of kilobytes and every path.
            warnings.filterwarnings("ignore", module=r"watchdog\.")
            self._observer = Observer()
            self._observer.start()
        return self._observer
