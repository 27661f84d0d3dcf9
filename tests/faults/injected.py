"""A daemon whose machine fails on demand: `python -m tests.faults.injected FOLDER`.

A fault is on while a file of its name is in FOLDER. All of them come through the watcher's own
seams: a Disk, a source of events, an observer.

Owns: the faults, and how a test switches them.
Never: asserts; changes code under test but through those seams (the palace's full disk excepted).
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from watchdog.observers import Observer

from mempalace.cli.logs import log_to_stderr
from mempalace.store import palace as palace_module
from mempalace.transcripts.files import OnError
from tests.faults import programs
from tests.faults.programs import Program, until
from watcher import events as events_module
from watcher.daemon import Daemon
from watcher.disk import Disk
from watcher.events import Dirty, Events

ROOT = Path(__file__).parents[2]


class Faults:
    """The switches, from either side."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def on(self, name: str, value: str = "") -> None:
        new = self.folder / f".{name}"
        new.write_text(value)
        new.rename(self.folder / name)

    def off(self, name: str) -> None:
        (self.folder / name).unlink()

    def value(self, name: str) -> str | None:
        try:
            return (self.folder / name).read_text()
        except FileNotFoundError:
            return None

    @contextmanager
    def watching(self, log: Path, env: Mapping[str, str] | None = None) -> Iterator[Program]:
        """The daemon that obeys them, once it follows its roots."""
        here = {"PYTHONPATH": str(ROOT), **(env or {})}
        command = (sys.executable, "-P", "-m", "tests.faults.injected")
        usual, programs.COMMAND = programs.COMMAND, command
        try:
            daemon = Program(self.folder, log=log, env=here)
        finally:
            programs.COMMAND = usual
        with daemon:
            until(lambda: daemon.has_ended or "watch.start" in daemon.output())
            assert not daemon.has_ended, daemon.output()
            yield daemon


class Failing(Disk):
    """Fails, lies and counts."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults
        self._walks = 0

    def walk(self, root: str, on_error: OnError) -> Iterator[tuple[str, os.stat_result]]:
        self._walks += 1
        (self._faults.folder / "walks").write_text(str(self._walks))
        if self._faults.value("unreadable") is not None:
            on_error(PermissionError(errno.EACCES, "Permission denied", root))
            return iter(())
        return super().walk(root, on_error)

    def filesystem(self, path: str) -> str:
        return self._faults.value("filesystem") or super().filesystem(path)

    def may_watch(self) -> bool:
        return self._faults.value("no-watches") is None and super().may_watch()

    def now(self) -> float:
        return super().now() + float(self._faults.value("clock") or 0)


class FailingEvents(Events):
    """Limits that are reached, events that do not come, emitters that die."""

    def __init__(self, faults: Faults, dirty: Dirty, disk: Disk) -> None:
        super().__init__(dirty, disk, self._observe)
        self._faults = faults

    def _observe(self) -> Any:
        faults = self._faults

        class Limited(Observer):  # type: ignore[misc, valid-type] # which one depends on the system
            def schedule(self, *arguments: Any, **more: Any) -> Any:
                if (number := faults.value("limit")) is not None:
                    raise OSError(int(number), os.strerror(int(number)))
                return super().schedule(*arguments, **more)

        return Limited()

    def arm(self, roots: Any) -> list[str]:
        if self._faults.value("kill-emitters") is not None and self._observer is not None:
            self._faults.off("kill-emitters")
            for emitter in self._observer.emitters:
                emitter.stop()
                emitter.join()
        return super().arm(roots)


def main(folder: str) -> None:
    faults = Faults(Path(folder))
    log_to_stderr()
    events_module._RETRY_SECONDS = 1.0
    hear, usual = events_module._Handler.dispatch, palace_module.Palace.transaction

    def dispatch(self: Any, event: Any) -> None:
        if faults.value("deaf") is None:
            hear(self, event)

    @contextmanager
    def transaction(self: palace_module.Palace) -> Iterator[sqlite3.Connection]:
        if faults.value("full") is not None:
            raise palace_module.PalaceFull(f"the disk with {self.path} is full", "free some space")
        with usual(self) as db:
            yield db

    events_module._Handler.dispatch = dispatch  # type: ignore[method-assign]
    palace_module.Palace.transaction = transaction  # type: ignore[method-assign]
    Daemon(
        disk=Failing(faults), events=lambda dirty, disk: FailingEvents(faults, dirty, disk)
    ).run()


if __name__ == "__main__":
    main(sys.argv[1])
