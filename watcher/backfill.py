"""History into the palace: newest first, resumable after any interruption.

Owns: the order of files, the summary, the dry run.
Never: keeps a list of what is done: the checkpoints in palace.db are that list, so a second run
reads nothing twice, and the daemon may work on the same files at the same time.
Called by: mempalace.cli.backfill, mempalace.cli.mine.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mempalace.config import Config
from mempalace.store.palace import Palace
from watcher.capture import Capture, Outcome, Result
from watcher.debts import call_in
from watcher.disk import Disk
from watcher.roots import Folders, Found, roots, transcripts_at

_UNKNOWN = "unknown:"


@dataclass(slots=True)
class Summary:
    """What a backfill did, or, for a dry run, would do."""

    files: int = 0  # to look at
    files_done: int = 0
    files_read: int = 0
    files_unchanged: int = 0
    bytes_total: int = 0
    bytes_done: int = 0  # of bytes_total: read, or known already
    bytes_read: int = 0
    exchanges_new: int = 0
    exchanges_known: int = 0
    drawers: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    excluded: int = 0  # files
    failed: int = 0  # roots and named folders that could not be looked into
    not_read: dict[str, str] = field(default_factory=dict)  # path -> why, the excluded ones aside

    is_unfinished: bool = False  # another process read the same files, or one grew meanwhile

    @property
    def unknown_types(self) -> dict[str, int]:
        """Record types that no format knows, by name."""
        named = ((rule, n) for rule, n in self.left_out.items() if rule.startswith(_UNKNOWN))
        return {rule.removeprefix(_UNKNOWN): n for rule, n in named}

    @property
    def rules(self) -> dict[str, int]:
        """What was left out by which rule."""
        return {r: n for r, n in self.left_out.items() if not r.startswith(_UNKNOWN)}

    def add(self, path: str, outcome: Outcome) -> None:
        """Count one piece."""
        self.bytes_read += outcome.bytes_read
        self.exchanges_new += outcome.filed.exchanges_new
        self.exchanges_known += outcome.filed.exchanges_known
        self.drawers += outcome.filed.drawers
        self.left_out += outcome.filed.left_out
        self.quarantined += outcome.quarantined
        if outcome.result in (Result.FAILED, Result.UNRECOGNISED):
            self.not_read[path] = outcome.reason or outcome.result.value
        self.excluded += outcome.result is Result.EXCLUDED and not outcome.more

    def close(self, one: Found, read: int, *, is_excluded: bool) -> None:
        """Count a file that is done with."""
        self.files_done += 1
        if read:
            self.files_read += 1
        elif one.path not in self.not_read and not is_excluded:
            self.files_unchanged += 1


class Backfill:
    """One pass over history. Iterate `run` and show the summary as it grows."""

    def __init__(self, palace: Palace, config: Config, disk: Disk) -> None:
        self._config = config
        self._palace = palace
        self._disk = disk
        self._capture = Capture(palace, config, disk, folder_of=Folders(palace))
        self.summary = Summary()

    def run(self, paths: Sequence[str]) -> Iterator[Summary]:
        """Read everything at `paths`, or below the roots where there are none."""
        summary = self.summary
        found = self._files(paths)
        yield summary
        for one in found:
            before, read, excluded = summary.bytes_done, 0, summary.excluded
            for outcome in self._read(one.path):
                summary.add(one.path, outcome)
                read += outcome.bytes_read
                summary.bytes_done = before + min(read, one.size)
                yield summary
            summary.bytes_done = before + one.size
            summary.close(one, read, is_excluded=summary.excluded > excluded)
        for path in call_in(self._palace, self._config, self._disk):
            for outcome in self._read(path):
                summary.add(path, outcome)
                yield summary
        yield summary

    def _files(self, paths: Sequence[str]) -> list[Found]:
        return _files(self._config, paths, self.summary)

    def _read(self, path: str) -> Iterator[Outcome]:
        """All pieces of a file. A one-shot command takes every file for cold (docs/design.md)."""
        while True:
            outcome = self._capture.read(path, cold=True, reread=True)
            yield outcome
            if not outcome.more:
                self.summary.is_unfinished |= outcome.unfinished
                return


def _files(config: Config, paths: Sequence[str], summary: Summary) -> list[Found]:
    def note(error: OSError) -> None:
        name = str(error.filename or "?")
        summary.not_read[name] = error.strerror or str(error)
        summary.failed += name in map(os.path.abspath, here)

    here = paths or [root for root in roots(config) if os.path.lexists(root)]
    found = transcripts_at(here, note)
    summary.files, summary.bytes_total = len(found), sum(one.size for one in found)
    return found


def preview(config: Config, disk: Disk, paths: Sequence[str]) -> Iterator[Summary]:
    """The dry run: a backfill of the same files into a copy of nothing but the checkpoints' keys.

    It works on a scratch palace in memory that knows every record of the real one by its keys, so
    that new and known are told apart by the code that would store them, and is thrown away.
    """
    with Palace.scratch(config.home) as palace:
        yield from Backfill(palace, config, disk).run(paths)
