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
from watcher.disk import Disk
from watcher.roots import Folders, Found, roots, transcripts_at


@dataclass(slots=True)
class Summary:
    """What a backfill did, or, for a dry run, would do."""

    files: int = 0  # to look at
    files_done: int = 0
    files_read: int = 0
    files_unchanged: int = 0
    bytes_total: int = 0
    bytes_read: int = 0
    exchanges_new: int = 0
    exchanges_known: int = 0
    drawers: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    not_read: dict[str, str] = field(default_factory=dict)  # path -> why

    @property
    def unknown_types(self) -> dict[str, int]:
        """Record types that no format knows, by name."""
        prefix = "unknown:"
        named = ((rule, n) for rule, n in self.left_out.items() if rule.startswith(prefix))
        return {rule.removeprefix(prefix): n for rule, n in named}

    def add(self, path: str, outcome: Outcome) -> None:
        """Count one piece."""
        self.bytes_read += outcome.bytes_read
        self.exchanges_new += outcome.filed.exchanges_new
        self.exchanges_known += outcome.filed.exchanges_known
        self.drawers += outcome.filed.drawers
        self.left_out += outcome.filed.left_out
        self.quarantined += outcome.quarantined
        if outcome.result in (Result.FAILED, Result.UNRECOGNISED, Result.EXCLUDED):
            self.not_read[path] = outcome.reason or outcome.result.value


class Backfill:
    """One pass over history. Iterate `run` and show the summary as it grows."""

    def __init__(self, palace: Palace, config: Config, disk: Disk) -> None:
        self._config = config
        self._capture = Capture(palace, config, disk, folder_of=Folders(palace))
        self.summary = Summary()

    def run(self, paths: Sequence[str]) -> Iterator[Summary]:
        """Read everything at `paths`, or below the roots where there are none."""
        summary = self.summary
        found = self._files(paths)
        summary.files, summary.bytes_total = len(found), sum(one.size for one in found)
        yield summary
        for one in found:
            read = 0
            for outcome in self._read(one.path):
                summary.add(one.path, outcome)
                read += outcome.bytes_read
                yield summary
            summary.files_done += 1
            if read:
                summary.files_read += 1
            elif one.path not in summary.not_read:
                summary.files_unchanged += 1
        yield summary

    def _files(self, paths: Sequence[str]) -> list[Found]:
        def note(error: OSError) -> None:
            name = error.filename or "?"
            self.summary.not_read[str(name)] = error.strerror or str(error)

        if paths:
            return transcripts_at(paths, note)
        here = [root for root in roots(self._config) if os.path.isdir(root)]
        return transcripts_at(here, note)

    def _read(self, path: str) -> Iterator[Outcome]:
        """All pieces of a file. A one-shot command takes every file for cold (DESIGN.md §5)."""
        while True:
            outcome = self._capture.read(path, cold=True, reread=True)
            yield outcome
            if not outcome.more:
                return
