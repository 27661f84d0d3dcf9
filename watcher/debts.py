"""Which parents have nothing more to tell: then their forks must (R1, R3).

Owns: the question whether a session's file is there and still unread.
Never: reads a transcript; the forks are read again by whoever reads stale files.
Called by: watcher.daemon, watcher.backfill.
"""

from __future__ import annotations

import os

from mempalace.config import Config
from mempalace.store import checkpoints, debts
from mempalace.store.accounting import Accounts
from mempalace.store.debts import Debt
from mempalace.store.palace import Palace
from mempalace.transcripts import registry
from watcher.disk import Disk
from watcher.lineage import relatives
from watcher.roots import roots


def call_in(palace: Palace, config: Config, disk: Disk) -> list[str]:
    """Make those files stale whose copied turns no parent will tell; gives their paths.

    A parent that is nowhere will not, nor one that was read to its end, nor one that lies where
    nobody reads. One that is excluded keeps its words to itself (R10).
    """
    with palace.reading() as db:
        paid, unpaid = debts.paid(db), debts.unpaid(db)
    for file in paid:
        with palace.transaction() as db:
            debts.settle(db, file)
    if not unpaid:
        return []
    with palace.reading() as db:
        accounts = Accounts(db, config, registry.versions(), waiting=checkpoints.waiting(db))
    called = [debt for debt in unpaid if not _is_waited_for(debt, accounts, config, disk)]
    for debt in called:
        with palace.transaction() as db:
            debts.call_in(db, debt)
    return list(dict.fromkeys(debt.path for debt in called))


def _is_waited_for(debt: Debt, accounts: Accounts, config: Config, disk: Disk) -> bool:
    """Will a file of the parent be read? Not one outside of the roots, unless the fork is outside
    too: then somebody names the files to read, and may name that one next."""
    if config.excludes(cwd=None, path=None, session=debt.session):
        return True
    is_followed = _is_followed(debt.path, config)
    for path in relatives(disk, debt.session, debt.path):
        if is_followed and not _is_followed(path, config):
            continue
        try:
            one = accounts.of(path, os.stat(path))
        except OSError:
            continue
        if one.is_behind or one.is_excluded:
            return True
    return False


def _is_followed(path: str, config: Config) -> bool:
    """Does it lie below a root?"""
    places = (path, os.path.realpath(path))
    folders = [(root, os.path.realpath(root)) for root in roots(config)]
    return any(
        place.startswith(folder.rstrip(os.sep) + os.sep)
        for pair in folders
        for place, folder in zip(places, pair, strict=True)
    )
