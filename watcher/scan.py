"""What a walk over the roots has found to read, and the files that are gone (R4).

Owns: the one look at everything that the daemon takes for the truth, and marking gone files.
Never: opens a transcript, or decides itself what is unread (mempalace.store.accounting does).
Called by: watcher.daemon.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mempalace.config import Config
from mempalace.store import checkpoints
from mempalace.store.accounting import Account, Accounts
from mempalace.store.palace import Palace
from mempalace.transcripts import registry
from watcher.disk import Disk

_HARMLESS = (errno.EINVAL, errno.ELOOP)  # named like a transcript, but no file


@dataclass(slots=True)
class Scan:
    """What was found: files with something to read, and what could not be looked at."""

    files: list[Account] = field(default_factory=list)
    bytes: int = 0  # unread
    oldest: float | None = None  # of the files with unread bytes; seconds since 1970
    unreadable: dict[str, str] = field(default_factory=dict)  # root -> what of it, and why


def scan(palace: Palace, config: Config, disk: Disk, roots: Iterable[str]) -> Scan:
    """Look at every file below the roots that are there."""
    found = Scan()
    here: list[str] = []
    blind: list[str] = []  # nothing below them is judged
    with palace.reading() as db:
        accounts = Accounts(db, config, registry.versions(), waiting=checkpoints.waiting(db))
    present: set[int] = set()
    back: list[tuple[None, int]] = []
    for root in roots:
        errors: list[OSError] = []
        for path, look in disk.walk(root, errors.append):
            one = accounts.of(path, look)
            if one.known is not None and not one.is_excluded:
                present.add(one.known.n)
                if one.known.is_gone:
                    back.append((None, one.known.n))
            if one.is_behind:
                _add(found, one)
        here.append(root)
        blind += _explain(found, root, errors)
    _mark(palace, accounts, _below(here), _below(blind), present, back, disk.now())
    return found


def _add(found: Scan, one: Account) -> None:
    found.files.append(one)
    if one.unread:
        found.bytes += one.unread
        seen = one.mtime_ns / 1e9
        found.oldest = seen if found.oldest is None else min(found.oldest, seen)


def _explain(found: Scan, root: str, errors: Sequence[OSError]) -> list[str]:
    """Note what could not be looked at; gives the places whose files are neither here nor gone."""
    serious = [error for error in errors if error.errno not in _HARMLESS]
    for error in serious:
        if not isinstance(error, FileNotFoundError):
            found.unreadable.setdefault(root, f"{error.filename}: {error.strerror}")
    return [str(error.filename) for error in serious]


def _below(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(folder.rstrip(os.sep) + os.sep for folder in folders)


def _mark(
    palace: Palace,
    accounts: Accounts,
    below: tuple[str, ...],
    blind: tuple[str, ...],
    present: set[int],
    back: Sequence[tuple[None, int]],
    now: float,
) -> None:
    """Note which files are gone and which are back."""
    gone = [
        (int(now * 1_000_000), known.n)
        for path, known in accounts.known.items()
        if not known.is_gone
        and known.n not in present
        and path.startswith(below)
        and not path.startswith(blind)
    ]
    if gone or back:
        with palace.transaction() as db:
            db.executemany("UPDATE files SET gone_at = ? WHERE n = ?", [*gone, *back])
