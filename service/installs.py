"""Is this MemPalace alone, and is its home its owner's alone?

Owns: the search for a second `mempalace` in PATH, a second version of the distribution, an older
MemPalace in the same home (docs/design.md §8), and files that others may read (R12).
Never: runs what it finds, changes a mode or a file.
Called by: service.doctor.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from shlex import quote

from mempalace import paths
from service.finding import Finding, note, well, wrong

_NAME = "mempalace"
_OURS = (
    paths.PALACE_DB, paths.CONFIG_YAML, paths.IDENTITY_TXT, paths.WATCH_LOCK, paths.WATCH_PAUSE,
)  # fmt: skip
# What versions before 4 keep in ~/.mempalace.
_OLDER = ("config.json", "palace", "knowledge_graph.sqlite3", "wing_config.json", "people_map.json")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def installs() -> Iterator[Finding]:
    """Which `mempalace` runs when somebody types it, and which versions are installed."""
    ours = Path(sys.prefix) / "bin" / _NAME
    first = next(iter(_in_path()), None)
    if first is not None and not _is_same(first, ours):
        yield wrong(
            "installs",
            f"`{_NAME}` in PATH is {first}, another installation than this one ({ours})",
            f'export PATH={quote(str(ours.parent))}:"$PATH"',
        )
    versions = {str(one.locate_file("")): one.version for one in distributions(name=_NAME)}
    if len(set(versions.values())) > 1:
        told = ", ".join(f"{version} in {place}" for place, version in versions.items())
        yield wrong(
            "installs",
            f"more than one version is installed here: {told}",
            f"{sys.executable} -m pip uninstall {_NAME}",
        )
    elif first is None or _is_same(first, ours):
        yield well("installs", "one installation of MemPalace, this one")


def _in_path() -> Iterator[Path]:
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = Path(folder) / _NAME
        if folder and candidate.is_file() and os.access(candidate, os.X_OK):
            yield candidate


def _is_same(one: Path, other: Path) -> bool:
    """A link into our environment is ours as well."""
    return one == other or one.resolve() == other.resolve()


def home(folder: Path) -> Iterator[Finding]:
    """Who may read the home, and who else lives in it."""
    if folder.stat().st_mode & _OTHERS:
        yield wrong(
            "permissions", f"others may look into {folder}", f"chmod 700 {quote(str(folder))}"
        )
    is_closed = True
    beside = {path.name for path in folder.glob(f"{paths.PALACE_DB}?*")}  # logs; what is set aside
    for name in (*_OURS, *sorted(beside)):
        path = folder / name
        if path.exists() and path.stat().st_mode & _OTHERS:
            is_closed = False
            yield wrong("permissions", f"others may read {path}", f"chmod 600 {quote(str(path))}")
    if is_closed and not folder.stat().st_mode & _OTHERS:
        yield well("permissions", f"{folder} is its owner's alone")
    older = [name for name in _OLDER if (folder / name).exists()]
    if older:
        yield note(
            "older palace",
            f"an older MemPalace lives in {folder} as well ({', '.join(older)}); it is left as it"
            " is, only palace.db, vectors/, inbox/ and config.yaml are touched",
            "mempalace backfill",
        )
