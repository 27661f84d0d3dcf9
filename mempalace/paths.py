"""Where the palace lives and who may read it.

Owns: the resolution of the home, the names in it, and the modes of what is created there (R12).
Never: reads a file, or imports pathlib, typing or re: wake-up imports this module, and each of
    them costs 4 to 10 ms of its 100. So paths are plain strings here; wrap them where it is free.
Called by: config, store, wake-up, and every program that creates a file in the home.
"""

from __future__ import annotations

import os

from mempalace.errors import BadConfig, MemPalaceError

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Mapping

HOME_VARIABLE = "MEMPALACE_HOME"

PALACE_DB = "palace.db"
CONFIG_YAML = "config.yaml"
IDENTITY_TXT = "identity.txt"
WATCH_LOCK = "watch.lock"
WATCH_PAUSE = "watch.pause"
INBOX = "inbox"
VECTORS = "vectors"
LIBRARIAN_LOCK = "librarian.lock"
LIBRARIAN_SOCKET = "librarian.sock"
LIBRARIAN_LOG = "librarian.log"

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_OTHERS = 0o077  # the bits that let group and world in


def home(env: Mapping[str, str] | None = None) -> str:
    """The absolute path of the palace's home; it need not exist.

    $MEMPALACE_HOME, else ~/.mempalace where that exists, else the platform's data directory.
    An empty variable counts as unset.
    """
    env = os.environ if env is None else env
    if chosen := env.get(HOME_VARIABLE):
        return os.path.abspath(expand(chosen, env))
    classic = expand("~/.mempalace", env)
    if os.path.isdir(classic):
        return classic
    import platformdirs  # costs 15 ms: only where the two cheap answers fail

    return platformdirs.user_data_dir("mempalace", appauthor=False)


def expand(path: str, env: Mapping[str, str] | None = None) -> str:
    """`path` with a leading `~` replaced by the home directory that `env` names."""
    user_home = (os.environ if env is None else env).get("HOME")
    if user_home and (path == "~" or path.startswith("~/")):
        return user_home.rstrip("/") + path[1:]
    return os.path.expanduser(path)


def create_home(folder: str | os.PathLike[str]) -> None:
    """Make the home, the owner's alone.

    A folder that exists is closed to others only if it is empty or holds a palace already:
    $MEMPALACE_HOME may point at a folder that other people and programs use too.
    """
    create_folder(folder)
    try:
        is_ours = set(os.listdir(folder)) <= {INBOX} or os.path.exists(
            os.path.join(folder, PALACE_DB)
        )
        if is_ours:
            _close_to_others(folder)
    except OSError as error:
        raise _unusable(folder, error) from error


def create_folder(folder: str | os.PathLike[str]) -> None:
    """Make a folder 0700, and what is missing above it; one that exists stays as it is."""
    try:
        os.makedirs(folder, mode=FOLDER_MODE, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error


def create_file(path: str | os.PathLike[str], text: str) -> bool:
    """Write a new file 0600 in UTF-8; False, and nothing written, where there is one already."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return False
    except OSError as error:
        raise _unusable(path, error) from error
    with open(descriptor, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)
    return True


def keep_private(path: str | os.PathLike[str]) -> None:
    """Make sure that a file exists and is 0600.

    For files that somebody else opens: SQLite gives `-wal` and `-shm` the mode of the database,
    so this call before the first connect covers all three.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, FILE_MODE))
        _close_to_others(path)
    except OSError as error:
        raise _unusable(path, error) from error


def _close_to_others(path: str | os.PathLike[str]) -> None:
    mode = os.stat(path).st_mode
    if mode & _OTHERS:
        os.chmod(path, mode & 0o7777 & ~_OTHERS)


def _unusable(path: str | os.PathLike[str], error: OSError) -> MemPalaceError:
    hint = f"check that it can be written, or choose another home with {HOME_VARIABLE}"
    what = f"cannot create {os.fspath(path)}: {error.strerror or type(error).__name__}"
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return BadConfig(what, hint)
    return MemPalaceError(what, hint)
