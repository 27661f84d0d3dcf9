"""The librarian's socket: one JSON value a line in, one a line out.

Owns: the socket's file, its mode, a thread a connection, and what a request looks like.
Never: opens the palace for writing; decides when the librarian leaves.
Called by: mempalace.index.librarian.
"""

from __future__ import annotations

import json
import os
import socketserver
import sqlite3
import threading
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mempalace import __version__, paths
from mempalace.errors import MemPalaceError
from mempalace.index import client
from mempalace.store.palace import Palace

_LONGEST_LINE = 16 * 1024 * 1024  # bytes: a million exchanges, packed
_SILENT_SECONDS = 60.0  # a connection that asks nothing is closed
_MOST_WANTED = 10_000

Vector = NDArray[np.float32]


class Answers(Protocol):
    """What the server needs of the librarian; every method may be called from any thread."""

    home: str

    def question(self, text: str) -> Vector | None:
        """The question's vector, None while the index is warming."""

    def nearest(
        self,
        db: sqlite3.Connection,
        question: Vector,
        limit: int,
        exchanges: NDArray[np.int64] | None,
    ) -> list[tuple[int, float]]: ...

    def scores(self, question: Vector, drawers: list[int]) -> dict[int, float]: ...

    def state(self) -> dict[str, Any]: ...

    def reindex(self) -> None: ...

    def stop(self) -> None: ...


class Server:
    """Serves from threads of its own between `open` and `close`."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._address = client.address(answers.home)

    def open(self) -> None:
        """The caller holds the librarian's lock, so a socket that is there is nobody's."""
        folder = os.path.dirname(self._address)
        paths.create_folder(folder)
        if os.stat(folder).st_uid != os.getuid():
            raise MemPalaceError(f"{folder} belongs to somebody else", "remove it")
        try:
            os.unlink(self._address)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise MemPalaceError(
                f"{self._address} is in the way: {error.strerror}", "move it away"
            ) from error
        self._server = _Sockets(self._address, _handler(self._answers))
        os.chmod(self._address, paths.FILE_MODE)  # the folder is closed to others anyway
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop accepting and remove the socket; whoever is being answered gets the answer."""
        try:
            os.unlink(self._address)
        except OSError:
            pass  # it is gone, or may not be removed: nobody answers there any more
        self._server.shutdown()
        self._server.server_close()


class _Sockets(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128


def _handler(answers: Answers) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        timeout = _SILENT_SECONDS

        def handle(self) -> None:
            with _Conversation(answers) as conversation:
                try:
                    while line := self.rfile.readline(_LONGEST_LINE):
                        answer = json.dumps(conversation.answer(line))
                        self.wfile.write(answer.encode() + b"\n")
                except OSError:
                    pass  # it has gone, or says nothing

    return Handler


class _Conversation:
    """One connection: the question that was asked last, and a reader of the palace."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._question: Vector | None = None
        self._palace: Palace | None = None

    def __enter__(self) -> _Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        if self._palace is not None:
            self._palace.close()

    def answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            do: Callable[[dict[str, Any]], dict[str, Any]] = {
                "find": self._find, "score": self._score, "state": self._state,
                "reindex": self._reindex,
            }[request["do"]]  # fmt: skip
            return do(request)
        except MemPalaceError as error:
            return {"error": error.what, "hint": error.hint}
        except Exception as error:  # noqa: BLE001 - border: a bad request must not end the server
            return {"error": f"unexpected {type(error).__name__}"}

    def _find(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("version") != __version__:
            self._answers.stop()  # an older program than the one that asks
            return {"state": "warming"}
        self._question = self._answers.question(str(request["text"]))
        if self._question is None:
            return {"state": "warming"}
        if self._palace is None:
            self._palace = Palace.reader(self._answers.home)
        packed = request.get("exchanges")
        exchanges = None if packed is None else np.frombuffer(b64decode(packed), np.int64)
        limit = max(1, min(_MOST_WANTED, int(request["limit"])))
        with self._palace.reading() as db:
            found = self._answers.nearest(db, self._question, limit, exchanges)
        return {"state": "ready", "found": found}

    def _score(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._question is None:
            return {"state": "warming"}
        scores = self._answers.scores(self._question, [int(n) for n in request["drawers"]])
        return {"state": "ready", "scores": list(scores.items())}

    def _state(self, _request: dict[str, Any]) -> dict[str, Any]:
        return self._answers.state()

    def _reindex(self, _request: dict[str, Any]) -> dict[str, Any]:
        self._answers.reindex()
        return self._answers.state()
