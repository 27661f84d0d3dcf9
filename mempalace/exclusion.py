"""What a pattern of `exclude` hits (R10).

Owns: globs over working folders, paths, session ids, and Claude Code's encoding of folders.
Never: knows where the patterns come from.
Called by: mempalace.config.
"""

from __future__ import annotations

import fnmatch
import os
import re
from functools import lru_cache


@lru_cache(maxsize=64)
def _compile(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """One expression for whole values, and one for single components of them."""
    whole: list[str] = []
    single: list[str] = []
    for pattern in patterns:
        base = pattern.rstrip("/")
        whole += [fnmatch.translate(base), fnmatch.translate(base + "/*")]
        if base and "/" not in base:
            single.append(fnmatch.translate(base))
    return re.compile("|".join(whole)), re.compile("|".join(single)) if single else None


@lru_cache(maxsize=64)
def _encoded(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """For a folder that is known by Claude Code's encoding of it alone: `-home-me-shop`.

    The encoding is lossy, so this is asked only where no record names the folder itself.
    """
    codes = [re.sub(r"[^A-Za-z0-9*?\[\]-]", "-", p.rstrip("/")) for p in patterns if "/" in p]
    globs = [glob for code in codes for glob in (code, code + "-*")]
    return re.compile("|".join(map(fnmatch.translate, globs)) or r"(?!)")


# 16,384: all files of a large installation, so that a scan asks the expressions once a file
@lru_cache(maxsize=16_384)
def is_excluded(
    patterns: tuple[str, ...], cwd: str | None, path: str | None, session: str | None
) -> bool:
    whole, single = _compile(patterns)
    values = {value for value in (cwd, path, session) if value}
    if cwd and cwd.startswith("/"):
        try:
            values.add(os.path.realpath(cwd))
        except ValueError:  # a transcript may name a folder that no file system can hold
            pass
    if any(whole.match(value.rstrip("/") or "/") for value in values):
        return True
    if cwd and cwd.startswith("-") and _encoded(patterns).match(cwd):
        return True
    if single is None:
        return False
    return any(single.match(part) for value in values for part in value.split("/") if part)
