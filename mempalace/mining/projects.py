"""Which project does a folder belong to?

Owns: the git project of a working folder, worktrees counted as their main repository, and what is
guessed for folders that are gone (docs/design.md).
Never: writes, asks git (a subprocess a folder is too slow), knows wings.
Called by: filing, once for each new folder; wake-up's guess goes through what filing stored.
"""

from __future__ import annotations

import os
import re

# Where tools put worktrees inside the repository that they belong to.
_NESTED_WORKTREE = re.compile(r"^(.+?)/(?:\.worktrees|\.claude/worktrees|\.git/worktrees)/.+$")


def project_root(cwd: str) -> str | None:
    """The main folder of the git project that holds `cwd`, or None where there is none.

    Works for folders that are gone as far as what is above them is still there.
    """
    folder = os.path.normpath(cwd)
    nested = _NESTED_WORKTREE.match(folder)
    if nested:
        folder = nested.group(1)
        if not os.path.isdir(folder):
            return folder  # gone as well, but the name says whose worktree it was
    home = os.path.expanduser("~")
    while True:
        found = _repository(folder)
        if found and (folder != home or cwd == home):  # a home under version control is no project
            return found
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _repository(folder: str) -> str | None:
    """`folder` where it is a repository, its main repository where it is a worktree."""
    git = os.path.join(folder, ".git")
    if os.path.isdir(git):
        return folder
    try:
        with open(git, encoding="utf-8", errors="replace") as stream:
            pointer = stream.read(4096)
    except OSError:
        return None
    if not pointer.startswith("gitdir:"):
        return None
    target = os.path.normpath(os.path.join(folder, pointer.removeprefix("gitdir:").strip()))
    main, marker, _ = target.partition(f"{os.sep}.git{os.sep}worktrees{os.sep}")
    return main if marker else folder  # a submodule is a project of its own


def names_for(root: str) -> list[str]:
    """Names for a project folder, the shortest first: `shop`, `acme shop`, `work acme shop`…"""
    parts = [part for part in root.split("/") if part] or ["root"]
    return [" ".join(parts[-count:]) for count in range(1, len(parts) + 1)]
