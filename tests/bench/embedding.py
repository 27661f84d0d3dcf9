"""Our embedder beside Chroma's default embedding function, in turns, in one process.

Chroma's function would download its model, so it is given the packaged weights in float32, under
the names that it looks for, and in the graph that is fastest for them: attention and norms fused,
as onnxruntime does by itself with the export that Chroma publishes. (The packaged graph as it is
would be slower still.) All else is Chroma's own code: every text padded to 256 tokens, batches of
32, a session with onnxruntime's defaults, so on all cores. Texts are cut from this repository.
Memory and loading are those of processes that do nothing else.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.bench.measure import Row

_REPOSITORY = Path(__file__).parents[2]
_CHARACTERS = 800  # a drawer
_BATCH = 32  # Chroma's
_ROUNDS = 5
_QUERY_ROUNDS = 10
_QUERIES = [
    "why does the login test fail on tuesdays",
    "where did we decide to use redis",
    "sqlite database is locked",
    "how do I run the migration against staging",
    "the error with the expired token",
    "what was wrong with the retry loop",
    "benchmark of the parser",
    "who owns the deploy script",
]
_CHROMA = "Chroma's function, packaged weights in float32,"


def run(scratch: Path) -> Iterator[Row]:
    cache, chroma = scratch / "model", scratch / "chroma"
    built = _child("ours", cache)
    yield Row("embedder, first use: build and load", built["load_ms"], "ms")
    yield Row("embedder, first use: most memory", built["megabytes"], "MB")
    ours = _child("ours", cache)
    yield Row("embedder: load", ours["load_ms"], "ms", "allowed, ms", 150)
    yield Row("embedder: most memory", ours["megabytes"], "MB", "allowed, MB", 300)
    _child("export", chroma)
    theirs = _child("chroma", chroma)
    yield Row("embedder: most memory", ours["megabytes"], "MB", f"{_CHROMA} MB",
              theirs["megabytes"])  # fmt: skip
    speed = _child("race", cache, chroma)
    for who in ("one thread", "all cores"):
        yield Row(f"texts of {_CHARACTERS} characters, {who}", speed[who]["texts"], "texts/s",
                  f"{_CHROMA} texts/s", speed["chroma"]["texts"])  # fmt: skip
    ours_ms, theirs_ms = speed["one thread"]["query_ms"], speed["chroma"]["query_ms"]
    yield Row("a query, p50", ours_ms, "ms", f"{_CHROMA} ms", theirs_ms)
    yield Row("queries one by one", 1000 / ours_ms, "a second", f"{_CHROMA} a second",
              1000 / theirs_ms)  # fmt: skip
    yield Row("cosine to the packaged model, mean", speed["mean cosine"], "", "wanted", 0.99)
    yield Row("cosine to the packaged model, least", speed["least cosine"], "")


def _child(what: str, *folders: Path) -> Any:
    """What one of the functions below finds, in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.embedding", what, *map(str, folders)]
    env = os.environ | {"ANONYMIZED_TELEMETRY": "False", "ORT_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        command, env=env, cwd=_REPOSITORY, stdout=subprocess.PIPE, check=True, text=True
    )
    return json.loads(done.stdout)


# --- in a process of its own --------------------------------------------------------------------

Embed = Callable[[list[str]], Any]


def _ours(cache: Path) -> dict[str, float]:
    import numpy as np  # noqa: F401 - not part of the time to load
    import onnxruntime  # type: ignore[import-untyped]  # noqa: F401
    import tokenizers  # noqa: F401

    started = time.perf_counter()
    from mempalace.index.embedder import Embedder

    embed = Embedder(cache).embed
    load_ms = (time.perf_counter() - started) * 1000
    embed(_texts()[:_BATCH])
    return {"load_ms": load_ms, "megabytes": _megabytes()}


def _export(folder: Path) -> None:
    """What Chroma's function looks for; it asks for the empty files, and never opens them."""
    from mempalace.index import weights

    home = folder / "onnx"
    home.mkdir(parents=True)
    for name in ("config.json", "special_tokens_map.json", "tokenizer_config.json", "vocab.txt"):
        (home / name).touch()
    (home / "tokenizer.json").write_bytes(weights.tokenizer())
    (home / "model.onnx").write_bytes(_float32(weights.int8_model(weights.packaged())))


def _float32(int8_model: bytes) -> bytes:
    """The same graph with the weights in float32, for batches of texts with a mask."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load_model_from_string(int8_model)
    graph = model.graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    quantized = {}  # what DynamicQuantizeLinear gives: what it takes

    def unfolded(weight: str, scales: str, zero_point: str) -> str:
        array = (arrays[weight].astype("float32") - arrays[zero_point]) * arrays[scales]
        graph.initializer.append(numpy_helper.from_array(array, f"{weight}_float"))
        return f"{weight}_float"

    nodes = [helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.INT32)]
    for node in graph.node:
        given, output = node.input, node.output[0]
        if node.op_type == "DynamicQuantizeLinear":
            quantized[output] = given[0]
        elif node.op_type == "DynamicQuantizeMatMul":
            product = [given[0], unfolded(given[1], given[2], given[3])]
            nodes.append(helper.make_node("MatMul", product, [f"{output}_product"]))
            nodes.append(helper.make_node("Add", [f"{output}_product", given[4]], [output]))
        elif node.op_type == "QAttention":
            operands = [quantized[given[0]], unfolded(given[1], given[4], given[7]), given[2]]
            heads = node.attribute[0].i
            nodes.append(
                helper.make_node("Attention", [*operands, "mask"], [output],
                                 domain="com.microsoft", num_heads=heads)
            )  # fmt: skip
        else:
            nodes.append(node)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    made = helper.make_graph(nodes, "float32", inputs, graph.output, graph.initializer)
    return bytes(
        helper.make_model(
            made, ir_version=model.ir_version, opset_imports=model.opset_import
        ).SerializeToString()
    )


def _chroma(folder: Path) -> dict[str, float]:
    _chromas(folder)(_texts()[:_BATCH])
    return {"megabytes": _megabytes()}


def _race(cache: Path, folder: Path) -> dict[str, Any]:
    from mempalace.index.embedder import Embedder

    runners: dict[str, Embed] = {
        "one thread": Embedder(cache).embed,
        "all cores": Embedder(cache, threads=os.cpu_count() or 1).embed,
        "chroma": _chromas(folder),
    }
    texts = _texts()
    text_seconds: dict[str, list[float]] = {who: [] for who in runners}
    query_seconds: dict[str, list[float]] = {who: [] for who in runners}
    for embed in runners.values():
        embed(texts[:2])
    for number in range(_ROUNDS):
        batch = texts[number * _BATCH :][:_BATCH]
        for who, embed in runners.items():
            text_seconds[who].append(_seconds(embed, batch))
    for query in _QUERIES * _QUERY_ROUNDS:
        for who, embed in runners.items():
            query_seconds[who].append(_seconds(embed, [query]))
    found: dict[str, Any] = {
        who: {
            "texts": _ROUNDS * _BATCH / sum(text_seconds[who]),
            "query_ms": statistics.median(query_seconds[who]) * 1000,
        }
        for who in runners
    }
    sys.modules["onnx"] = None  # type: ignore[assignment]  # so that it runs as shipped
    packaged = Embedder(cache / "none").embed(texts)
    cosines = (runners["one thread"](texts) * packaged).sum(axis=1)
    baseline = [float(a @ b) for a, b in zip(runners["chroma"](texts), packaged, strict=True)]
    assert min(baseline) > 0.9999, "the baseline is another model"
    return found | {"mean cosine": float(cosines.mean()), "least cosine": float(cosines.min())}


def _chromas(folder: Path) -> Embed:
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    ONNXMiniLM_L6_V2.DOWNLOAD_PATH = folder
    return ONNXMiniLM_L6_V2()


def _texts() -> list[str]:
    """What developers write: pages and code of this repository, in pieces as long as a drawer."""
    pages = [*_REPOSITORY.glob("docs/**/*.md"), *_REPOSITORY.glob("mempalace/**/*.py")]
    talk = "\n".join(page.read_text() for page in sorted(pages))
    cuts = [talk[start:][:_CHARACTERS] for start in range(0, len(talk), _CHARACTERS)]
    return cuts[:: len(cuts) // (_ROUNDS * _BATCH)][: _ROUNDS * _BATCH]


def _seconds(embed: Embed, texts: list[str]) -> float:
    started = time.perf_counter()
    embed(texts)
    return time.perf_counter() - started


def _megabytes() -> float:
    """The most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


if __name__ == "__main__":
    what, *folders = sys.argv[1:]
    measure: dict[str, Callable[..., Any]] = {
        "ours": _ours, "export": _export, "chroma": _chroma, "race": _race,
    }  # fmt: skip
    print(json.dumps(measure[what](*map(Path, folders))))
