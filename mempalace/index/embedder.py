"""Texts in, unit vectors out.

Owns: the tokenizer, the onnxruntime session, and the cache of the int8 model that is built at first
use. A text is embedded alone, never in a batch: int8 arithmetic scales its inputs by the largest in
the batch, so that batch mates would change a vector (cosine 0.993), and batches of 4 and 8 are no
faster (45 texts a second alone, 44 and 34 in batches). So the same text gives the same bits,
whatever is embedded with it and on however many threads.
Never: downloads, or imports numpy, onnxruntime or tokenizers before an Embedder is made.
Called by: mempalace.cli.librarian, which hands an Embedder to mempalace.index.librarian.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mempalace import paths
from mempalace.errors import MemPalaceError
from mempalace.index import weights
from mempalace.index.weights import DIMENSION, TOKENS, ModelMissing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "all-MiniLM-L6-v2"

# The arithmetic by name. Count up what changes the vectors: graph, tokenising, pooling.
_INT8 = "int8-1"
_AS_SHIPPED = "as-shipped-1"

# The tokenizer need not see more of a text: 254 tokens between the two that frame them, none of a
# word longer than 100 characters (`max_input_chars_per_word`; longer ones are one "unknown"), and a
# space after each. Only where words are longer, or gaps wider, is anything lost.
_CHARACTERS = (TOKENS - 2) * (100 + 1)


def fingerprint(recipe: str = _INT8) -> str:
    """What vectors are made with, in 16 hexadecimal digits. Other vectors must be made anew.

    A hash of the packaged model, the tokenizer and the arithmetic's name: the same on all machines
    and known without loading anything.
    """
    parts = (weights.MODEL_SHA256, weights.TOKENIZER_SHA256, recipe)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class Embedder:
    """all-MiniLM-L6-v2 on this machine. Threads may share one.

    `cache` is a folder for the int8 model, made where it is missing; where it cannot be written,
    the model is built each time (0.2 seconds). Where the int8 model cannot be built or run, the
    packaged one runs as it is, a third as fast; `fallback` says why, and the fingerprint differs.

    `threads` is how many texts are embedded at a time; a single text always takes one.

    Raises ModelMissing where the model, or what runs it, is missing or not what it should be.
    """

    name = NAME
    dimension = DIMENSION

    def __init__(self, cache: Path, *, threads: int = 1) -> None:
        try:
            import numpy as np  # noqa: F401 - here, so that what is missing is told here
            import onnxruntime  # type: ignore[import-untyped]  # noqa: F401
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ModelMissing(
                f"the embedding model cannot run: {error}", "install mempalace again"
            ) from error
        self._threads = threads
        self._tokenizer = Tokenizer.from_buffer(weights.tokenizer())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKENS)
        self.fallback: str | None = None
        try:
            self._session = _session(_cached(cache) or _built(cache))
        except ModelMissing:
            raise
        except Exception as error:  # noqa: BLE001 - the border to onnx and onnxruntime, which
            # raise what they like on a platform or in a version that cannot do it
            self.fallback = f"{type(error).__name__}: {error}"
            self._session = _session(weights.packaged())

    @property
    def fingerprint(self) -> str:
        """What this one's vectors are made with; see `fingerprint` of this module."""
        return fingerprint(_AS_SHIPPED if self.fallback else _INT8)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector of length 1 for each text, in their order: (len(texts), DIMENSION) float32.

        The mean over a text's first 256 tokens. Any string will do: an empty one has a vector too,
        and half a surrogate pair counts as a question mark.
        """
        import numpy as np

        vectors = np.empty((len(texts), DIMENSION), np.float32)
        if self._threads == 1 or len(texts) == 1:
            for row, text in enumerate(texts):
                vectors[row] = self._vector(text)
            return vectors
        # Texts side by side, each on one thread: 87 a second on two cores, where two threads for
        # each text gave 67.
        with ThreadPoolExecutor(self._threads, thread_name_prefix="embed") as pool:
            for row, vector in enumerate(pool.map(self._vector, texts)):
                vectors[row] = vector
        return vectors

    def _vector(self, text: str) -> NDArray[np.float32]:
        import numpy as np

        head = text[:_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
        # Not in a batch: the tokenizer would start a thread for each core, and keep them.
        tokens = np.array([self._tokenizer.encode(head).ids], np.int64)
        feed = {"input_ids": tokens}
        if self.fallback:
            feed |= {
                "attention_mask": np.ones_like(tokens),
                "token_type_ids": np.zeros_like(tokens),
            }
        hidden: NDArray[np.float32] = self._session.run(None, feed)[0][0]
        mean = hidden.mean(axis=0)
        vector: NDArray[np.float32] = mean / np.linalg.norm(mean)
        return vector


def _session(model: Path | bytes) -> Any:
    """An onnxruntime session on one thread, the caller's, and without an arena, which would keep
    the memory of the longest text for ever."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4  # what fails is raised; it need not stand on stderr as well
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _cached(cache: Path) -> Path | None:
    """The int8 model in the cache. Its name holds its hash, and it is hashed at each start (20 ms
    for 23 MB): whatever tore or changed it, it is not used."""
    for file in cache.glob(f"{fingerprint()}-*.onnx"):
        with contextlib.suppress(OSError):  # gone meanwhile, or not to be read: build it anew
            if file.stem == f"{fingerprint()}-{weights.digest(file)}":
                return file
    return None


def _built(cache: Path) -> Path | bytes:
    """The int8 model, built and kept; its bytes where it cannot be kept. Raises ModelMissing, and
    whatever onnx raises.

    It appears in the cache whole or not at all, under the hash of its content: processes that build
    it at the same time write the same file.
    """
    model = weights.int8_model(weights.packaged())
    file = cache / f"{fingerprint()}-{hashlib.sha256(model).hexdigest()}.onnx"
    try:
        paths.create_folder(cache)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            fresh = Path(scratch, file.name)
            paths.keep_private(fresh)
            fresh.write_bytes(model)
            fresh.replace(file)
        for other in cache.glob("*.onnx"):
            if other != file:
                other.unlink(missing_ok=True)  # damaged, or of another version
    except (OSError, MemPalaceError):
        return model
    return file
