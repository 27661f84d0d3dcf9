"""A model that costs nothing: texts with the same words are near each other.

`python -m tests.index.quick HOME [EVERY]` is a librarian that has it; Chroma writes its graph after
EVERY additions. What it embeds is written to HOME/embedded.log first, one text a line.

Owns: the arithmetic, and what a test sees of it: how often each text was embedded.
Never: asserts.
Called by: the tests of the index.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mempalace.cli.logs import log_to_stderr
from mempalace.errors import Locked
from mempalace.index import finder, projection
from mempalace.index.librarian import Librarian

DIMENSION = 384


class Quick:
    """Each word is a direction; a text is the sum of its words."""

    name = "quick"
    dimension = DIMENSION

    def __init__(self, fingerprint: str = "quick 1") -> None:
        self.fingerprint = fingerprint
        self.embedded: Counter[str] = Counter()
        self.meanwhile: Callable[[], None] = lambda: None  # called while a text is embedded

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded.update(texts)
        self.meanwhile()
        return np.array([_vector(self.fingerprint, text) for text in texts], np.float32)


def _vector(model: str, text: str) -> NDArray[np.float32]:
    made = np.zeros(DIMENSION, np.float32)
    for word in re.findall(r"\w+", text.lower()):
        made += _direction(model + word)
    return made / (np.linalg.norm(made) or 1.0)


def _direction(word: str) -> NDArray[np.float32]:
    seed = int.from_bytes(hashlib.md5(word.encode(), usedforsecurity=False).digest()[:8])
    made = np.random.default_rng(seed).standard_normal(DIMENSION, np.float32)
    return made / np.linalg.norm(made)


class _Logging(Quick):
    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with Path(sys.argv[1], "embedded.log").open("a") as log:
            log.write("".join(f"{text}\n" for text in texts))
        return super().embed(texts)


if __name__ == "__main__":
    log_to_stderr()
    if len(sys.argv) > 2:
        projection._SYNC = projection._BATCH = finder._CHUNK = int(sys.argv[2])
    try:
        Librarian(sys.argv[1], [_Logging]).run()
    except Locked:
        sys.exit(75)
