"""The way to the librarian: ask it, wake it, or do without it.

Owns: where its lock and socket are, the protocol (one JSON value a line, an answer for each), and
starting it. Everything a user waits for is bounded; whatever fails here, keywords answer.
Never: imports numpy, onnxruntime or chromadb: the watcher imports this module.
Called by: mempalace.search, the watcher, the commands.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from array import array
from base64 import b64encode
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from mempalace import paths
from mempalace.errors import MemPalaceError

ASKED_FOR = "asked for"  # why the index is filled anew, where somebody wanted it
WAIT_SECONDS = 0.5  # for an answer: a search must not hang on a librarian that hangs
_LONGEST_ADDRESS = 100  # bytes; sun_path has 104 on macOS, 108 on Linux
_STARTING_SECONDS = 20.0


_children: list[Any] = []  # processes that this one has started: a parent must ask for their end


class NoLibrarian(MemPalaceError):
    """It does not answer, or none may run here."""


class Connection:
    """A conversation with the librarian of a home. Raises NoLibrarian where there is none."""

    def __init__(self, home: str | os.PathLike[str], *, wait: float = WAIT_SECONDS) -> None:
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:
            raise _unreachable(error) from error
        try:
            self._socket.settimeout(wait)
            self._socket.connect(address(home))
        except OSError as error:
            self._socket.close()
            raise _unreachable(error) from error
        self._stream = self._socket.makefile("rb")

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def send(self, do: str, **what: Any) -> None:
        """Ask for something; `answer` waits for what comes of it."""
        try:
            self._socket.sendall(json.dumps({"do": do, **what}).encode() + b"\n")
        except OSError as error:
            raise _unreachable(error) from error

    def answer(self) -> dict[str, Any]:
        """The answer to the oldest question that has none yet."""
        try:
            line = self._stream.readline()
            answer = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError) as error:
            raise _unreachable(error) from error
        if not isinstance(answer, dict):
            raise NoLibrarian("the librarian has gone", "ask again")
        return answer

    def ask(self, do: str, **what: Any) -> dict[str, Any]:
        self.send(do, **what)
        return self.answer()


def packed(numbers: Sequence[int]) -> str:
    """Many numbers as one JSON string: 64-bit integers in this machine's byte order."""
    return b64encode(array("q", numbers).tobytes()).decode()


def address(home: str | os.PathLike[str]) -> str:
    """The socket's path: in the home, or, where that is too long for the system, in a folder of the
    user's own under the runtime directory."""
    path = os.path.join(home, paths.LIBRARIAN_SOCKET)
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        return path
    import hashlib

    name = hashlib.sha256(os.fsencode(os.path.abspath(home))).hexdigest()[:16]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if not os.path.isdir(runtime) or len(os.fsencode(runtime)) > 60:
        runtime = f"/tmp/mempalace-{os.getuid()}"  # noqa: S108 - made 0700 by its owner, or refused
    return os.path.join(runtime, f"mempalace-{name}.sock")


def is_running(home: str | os.PathLike[str]) -> bool:
    """Does a librarian of this home hold its lock, or is one starting?"""
    import fcntl

    try:
        descriptor = os.open(os.path.join(home, paths.LIBRARIAN_LOCK), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def start(home: str | os.PathLike[str], *, for_questions: bool = True, after: float = 0.0) -> None:
    """Start a librarian unless one runs; do not wait for it. One that is started for questions
    opens the index at once; it may be told to begin `after` some seconds, before which it touches
    nothing. Raises NoLibrarian where no process may be started here."""
    reap()
    if is_running(home):
        return
    import subprocess

    log = os.path.join(home, paths.LIBRARIAN_LOG)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        with open(os.open(log, flags, paths.FILE_MODE), "ab") as stream:
            child = subprocess.Popen(
                [
                    sys.executable, "-P", "-m", "mempalace", "librarian",
                    *(["--open"] if for_questions else []), f"--after={after}",
                ],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream,
                env={**os.environ, paths.HOME_VARIABLE: os.path.abspath(home)},
                cwd="/", start_new_session=True,
            )  # fmt: skip
        _children.append(child)
    except OSError as error:
        raise NoLibrarian(
            f"no librarian can be started here: {error.strerror or type(error).__name__}",
            "search goes on with keywords",
        ) from error


def reap() -> None:
    """Take leave of librarians that this process has started and that have ended."""
    _children[:] = [child for child in _children if child.poll() is None]


def wake(home: str | os.PathLike[str], *, after: float = 0.0) -> None:
    """There is something to embed: start a librarian; one that runs looks by itself."""
    try:
        start(home, for_questions=False, after=after)
    except NoLibrarian:
        pass  # the next one who can will do it


def connect(home: str | os.PathLike[str], *, wait: float) -> Connection:
    """Start a librarian where none runs, and wait until it answers. Raises NoLibrarian."""
    import time

    end = time.monotonic() + _STARTING_SECONDS
    has_started = False
    while True:
        try:
            return Connection(home, wait=wait)
        except NoLibrarian:
            reap()
            is_alive = bool(_children) or is_running(home)
            if time.monotonic() > end or (has_started and not is_alive):
                raise
        if not has_started:
            start(home)
            has_started = True
        time.sleep(0.05)


def _unreachable(error: Exception) -> NoLibrarian:
    return NoLibrarian(
        f"the librarian does not answer ({type(error).__name__})", "search goes on with keywords"
    )
