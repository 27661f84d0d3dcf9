"""Chroma's folder: ids and vectors, disposable (ADR 0007).

What palace.db knows of it is one note: clean or dirty, and, where it is clean, the number of the
last vector in it, how many there are, and a manifest of the folder. Dirty is noted before the first
addition and ended by closing the folder. On anything that is not as it was left (a dirty note, a
file that differs, another version, a child process that dies opening it) the folder is emptied and
filled from the blobs. Nothing in it is ever repaired.

Owns: Chroma, and the only import of it.
Never: embeds; holds a text; is open in two processes (the librarian's lock sees to that).
Called by: mempalace.index.librarian.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mempalace import paths
from mempalace.errors import MemPalaceError
from mempalace.index.discard import remove
from mempalace.store.palace import Palace
from mempalace.store.vectors import PROJECTION_NOTE

if TYPE_CHECKING:
    import numpy as np
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from numpy.typing import NDArray

log = logging.getLogger("mempalace.librarian")

DRAWERS = "mempalace_drawers"
_FORMAT = 1  # of what is kept there; another one is filled anew
_PROBE_SECONDS = 60.0
_BATCH = 1_000  # ids at once; Chroma takes 5,461 at most
_SYNC = 2_000  # additions between two writes of the graph


class Torn(MemPalaceError):
    """The folder cannot be used as it is; it must be filled anew."""


@dataclass(slots=True)
class State:
    """What palace.db knows of the folder."""

    format: int = 0
    chroma: str = ""
    model: str = ""  # the fingerprint
    is_clean: bool = False
    upto: int = 0  # the number of the last vector in it
    count: int = 0
    manifest: dict[str, list[int]] = field(default_factory=dict)  # name -> size, mtime_ns


class Projection:
    """The folder of one model, open. `open` raises Torn where only `create` can help; so does every
    method at any time, because files may be changed by others at any time."""

    def __init__(self, palace: Palace, folder: str, model: str) -> None:
        self._palace = palace
        self._folder = folder
        self._model = model
        self._client: ClientAPI | None = None
        self._collection: Collection | None = None
        self._is_dirty = False
        self._left: dict[str, list[int]] = {}  # the manifest that palace.db has
        self.upto = 0

    # --- life -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open what is there, if it is as it was left, and if a child that opens it lives."""
        state = self._state()
        if state is None:
            raise Torn("there is none", "")
        if not state.is_clean:
            raise Torn("its last owner did not close it", "")
        if (state.format, state.chroma, state.model) != (_FORMAT, _version(), self._model):
            raise Torn("another version made it", "")
        if _manifest(self._folder) != state.manifest:
            raise Torn("its files were changed", "")
        if _probe(self._folder) != state.count:
            raise Torn("it cannot be opened, or does not hold what it should", "")
        self._connect()
        self.upto = state.upto
        self._is_dirty = False
        self._save(is_clean=True)  # opening touches a file of Chroma's

    def create(self) -> None:
        """Empty the folder, whatever is in it, and begin anew."""
        self._save(is_clean=False)
        self._disconnect()
        _empty(self._folder)
        self._connect()
        self.upto = 0
        self._is_dirty = True

    def close(self) -> None:
        """Close the folder; from now on it is clean."""
        if self._collection is None:
            return
        count = self.count()
        self._disconnect()
        if self._is_dirty:
            self._save(is_clean=True, count=count)
            self._is_dirty = False

    def _connect(self) -> None:
        with _explained():
            self._client = client(self._folder)
            self._collection = self._client.get_or_create_collection(
                DRAWERS,
                embedding_function=None,
                configuration={
                    "hnsw": {"space": "cosine", "sync_threshold": _SYNC, "batch_size": _BATCH}
                },
            )
            self._warm_up()

    def _warm_up(self) -> None:
        """The first question loads the graph."""
        collection = self._collection_now()
        if collection.count():
            first = collection.get(limit=1, include=["embeddings"])["embeddings"]
            if first is not None:
                collection.query(query_embeddings=first[:1], n_results=1, include=[])

    def _disconnect(self) -> None:
        if self._client is not None:
            with _explained():
                self._client.close()  # type: ignore[attr-defined]  # the clients have it
        self._client = self._collection = None

    # --- what is in it ----------------------------------------------------------------------------

    def add(self, ids: Sequence[str], vectors: NDArray[np.float32], upto: int) -> None:
        """Add or replace vectors, (len(ids), dimension); `upto` is the number of the last one."""
        self._be_dirty()
        with _explained():
            for at in range(0, len(ids), _BATCH):
                self._collection_now().upsert(
                    ids=list(ids[at : at + _BATCH]), embeddings=vectors[at : at + _BATCH]
                )
        self.upto = upto

    def remove(self, ids: Sequence[str]) -> None:
        """Remove what is in it of these."""
        if ids:
            self._be_dirty()
            with _explained():
                self._collection_now().delete(ids=list(ids))

    def nearest(self, question: NDArray[np.float32], limit: int) -> list[str]:
        """The ids that are nearest, as the graph finds them, best first."""
        with _explained():
            found = self._collection_now().query(
                query_embeddings=question[None], n_results=limit, include=[]
            )
        return found["ids"][0]

    def count(self) -> int:
        with _explained():
            return self._collection_now().count()

    def was_changed(self) -> bool:
        """Has somebody else changed the files of a folder that is open and clean?"""
        return not self._is_dirty and _manifest(self._folder) != self._left

    @property
    def is_dirty(self) -> bool:
        """Would a kill now cost a rebuild?"""
        return self._is_dirty

    def _collection_now(self) -> Collection:
        if self._collection is None:
            raise Torn("it is closed", "")
        return self._collection

    # --- what palace.db knows of it ---------------------------------------------------------------

    def _be_dirty(self) -> None:
        if not self._is_dirty:
            self._save(is_clean=False)
            self._is_dirty = True

    def _state(self) -> State | None:
        text = self._palace.note(PROJECTION_NOTE)
        try:
            return None if text is None else State(**json.loads(text))
        except (ValueError, TypeError):
            return None

    def _save(self, *, is_clean: bool, count: int | None = None) -> None:
        state = State(_FORMAT, _version(), self._model, is_clean)
        if is_clean:
            state.upto = self.upto
            state.count = self.count() if count is None else count
            state.manifest = self._left = _manifest(self._folder)
        self._palace.set_note(PROJECTION_NOTE, json.dumps(asdict(state)))


def client(folder: str) -> ClientAPI:
    """Chroma on a folder, its telemetry off."""
    import chromadb
    from chromadb.config import Settings

    paths.create_folder(folder)
    return chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))


def _version() -> str:
    from importlib.metadata import version

    return version("chromadb")


class _explained:  # noqa: N801 - it is used like contextlib.suppress
    """Chroma raises what it likes on files that are not whole, and its Rust part panics, which is
    no Exception: all of it means Torn."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _trace: object) -> None:
        is_ours = isinstance(error, (MemPalaceError, KeyboardInterrupt, SystemExit))
        if error is not None and not is_ours:
            log.warning("projection.torn", extra={"error": type(error).__name__})
            raise Torn(f"Chroma failed: {type(error).__name__}", "") from error


# --- the folder -----------------------------------------------------------------------------------


def _manifest(folder: str) -> dict[str, list[int]]:
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            try:
                look = os.lstat(path)
            except FileNotFoundError:
                continue
            found[os.path.relpath(path, folder)] = [look.st_size, look.st_mtime_ns]
    return found


def _empty(folder: str) -> None:
    """Move what is there aside, so that nothing of it is met again, and delete it."""
    aside = f"{folder}.old"
    remove(aside)
    if os.path.lexists(folder):
        os.replace(folder, aside)
    remove(aside)


def _probe(folder: str) -> int | None:
    """How many vectors a child process finds in the folder; None where it fails or dies: what is
    torn may end the process that opens it."""
    arguments = [sys.executable, "-P", "-m", "mempalace.index.probe", folder]
    try:
        done = subprocess.run(
            arguments, capture_output=True, timeout=_PROBE_SECONDS, check=False, text=True
        )
        return int(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def look(folder: str) -> int:
    """Open the folder and ask it something: what the child does. The number of vectors in it."""
    collection: Any = client(folder).get_collection(DRAWERS, embedding_function=None)
    found = collection.get(limit=1, include=["embeddings"])
    if len(found["ids"]):
        collection.query(query_embeddings=[found["embeddings"][0]], n_results=10, include=[])
    return int(collection.count())
