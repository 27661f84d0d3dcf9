"""However a file is read, the palace says the same.

Stopping anywhere and starting again, any size of read, any order of files, reading twice: the same
rows, each word once, every stream joined back character for character (R1, R2, R3, R5).
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import watcher.tail
from tests.capturing import Capturing, write
from tests.properties.sessions import Story, Teller
from tests.samples import SAMPLES, claude_code_samples, needs_samples
from tests.transcripts.builder import REJECTED, Session

_TINY = 20_000  # bytes of a file that may be read byte by byte


def _queued() -> Session:
    session = Session().user("go").text("I begin.").call("t1").queue("enqueue", "and this")
    session.queue("enqueue", "half a thou").queue("remove").attachment("and this").text("Yes.")
    session.queue("popAll", "half a thou").queue("enqueue", "later").result("t1", REJECTED + "no")
    session.text("Done.").queue("dequeue").user("later").text("Now.").queue("enqueue", "last words")
    return session


def _pasted() -> Session:
    session = Session().user("go").text("I begin.")
    session.queue("enqueue", "see [Pasted text #1 +2 lines]").queue("dequeue").user("see a\nb\nc")
    session.text("Seen.").queue("enqueue", "one").queue("enqueue", "two").queue("dequeue")
    return session.queue("dequeue").user("one\ntwo").text("Both.")


def _growing() -> Session:
    session = Session().user("go")
    for words in ("I look", "I look at", "I look at it."):
        session.text(words, message="m", parentUuid="p")
    session.text("Old.").text("New.", supersedesUuids=[session.records[-1]["uuid"]])
    return session.user("go").text("Next.", message="n").text("Next.", message="n")


def _headless() -> Session:
    session = Session().text("The end of an answer.").result("t0", "whose call is nowhere")
    session.user("<command-name>/exit</command-name>").user("go").call("t1").text("Meanwhile.")
    return session.result("t1", "ok", "inline").user("search", isSidechain=True).text("Done.")


def _long() -> Session:
    session = Session().user("go " * 900)
    for n in range(6):
        session.text(f"Words {n}. " * 150).call(f"t{n}").result(f"t{n}", "line\r\n" * 300)
    return session


OWN = {
    "queued": _queued, "pasted": _pasted, "growing": _growing, "headless": _headless,
    "long": _long,
}  # fmt: skip


def _samples() -> list[Path]:
    return [path for path in claude_code_samples() if "subagents" not in path.parts]


def _sample_id(path: Path) -> str:
    return str(path.relative_to(SAMPLES / "claude-code"))


def _records(content: bytes) -> list[bytes]:
    *whole, last = content.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _rows(capturing: Capturing) -> list[dict]:
    capturing.check()
    return [row for row in capturing.rows() if not row["retired"]]


def _read_whole(content: bytes, path: Path, home: Path) -> list[dict]:
    path.write_bytes(content)
    with Capturing(home) as capturing:
        capturing.read(path)
        return _rows(capturing)


def _check_stops(content: bytes, folder: Path) -> None:
    path = folder / "5f0c7a60-0000-4000-8000-0000000000a1.jsonl"
    whole = _read_whole(content, path, folder / "whole")
    parts = _records(content)
    for cold in (True, False):
        path.unlink()
        with Capturing(folder / f"stops-{cold}") as capturing:
            for k, part in enumerate(parts):
                with path.open("ab") as file:
                    file.write(part)
                capturing.read(path, cold=cold)
                if k % 3 == 0:
                    capturing.again()
            capturing.read(path)
            assert _rows(capturing) == whole
            capturing.read(path)
            assert _rows(capturing) == whole  # reading twice changes no row


def _check_sizes(content: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "5f0c7a60-0000-4000-8000-0000000000a1.jsonl"
    whole = _read_whole(content, path, folder / "whole")
    for block, piece in ((1, 1), (7, 50), (64, 1_000), (1_000, 3_000)):
        if block == 1 and len(content) > _TINY:
            continue
        monkeypatch.setattr(watcher.tail, "BLOCK", block)
        with Capturing(folder / f"size-{block}") as capturing:
            monkeypatch.setattr(capturing.capture, "_piece", piece)
            monkeypatch.setattr(capturing.capture, "_adapt", lambda *_: None)
            capturing.read(path)
            assert _rows(capturing) == whole, (block, piece)


class TestStops:
    """R5: a checkpoint moves only with what it passed."""

    @pytest.mark.parametrize("name", OWN)
    def test_stopping_after_every_record_gives_the_same_rows(self, name, tmp_path):
        _check_stops(OWN[name]().bytes(), tmp_path)

    @needs_samples
    @pytest.mark.parametrize("sample", _samples(), ids=_sample_id)
    def test_stopping_after_every_record_of_a_sample_gives_the_same_rows(self, sample, tmp_path):
        _check_stops(sample.read_bytes(), tmp_path)


class TestSizes:
    """R8: whatever the size of a read."""

    @pytest.mark.parametrize("name", OWN)
    def test_every_read_size_gives_the_same_rows(self, name, tmp_path, monkeypatch):
        _check_sizes(OWN[name]().bytes(), tmp_path, monkeypatch)

    @needs_samples
    @pytest.mark.parametrize("sample", _samples(), ids=_sample_id)
    def test_every_read_size_of_a_sample_gives_the_same_rows(self, sample, tmp_path, monkeypatch):
        _check_sizes(sample.read_bytes(), tmp_path, monkeypatch)


def _copies() -> list[Session]:
    old = _queued().user("go").text("Again.")
    fork = old.copied(session="5f0c7a60-0000-4000-8000-0000000000b1").user("fork").text("F.")
    resumed = old.copied(session="5f0c7a60-0000-4000-8000-0000000000c1", anew=True)
    return [old, fork, resumed.user("resumed").text("R.")]


class TestOrders:
    """R1: which words are stored does not depend on the order of reading."""

    def _words(self, files: tuple[Path, ...], home: Path, *, live: bool = False) -> list:
        with Capturing(home) as capturing:
            for file in files:
                capturing.read(file, cold=not live)
            for file in files:
                capturing.read(file)
            capturing.check()
            return capturing.words()

    def _check(self, files: list[Path], folder: Path) -> list:
        found = [
            self._words(order, folder / f"{number}-{live}", live=live)
            for number, order in enumerate(itertools.permutations(files))
            for live in (False, True)
        ]
        assert all(words == found[0] for words in found)
        return found[0]

    def test_copies_of_history_add_nothing_in_any_order(self, tmp_path):
        words = self._check([one.write(tmp_path) for one in _copies()], tmp_path)
        assert Counter(text for role, text in words if role == "HUMAN") == Counter(
            {"go": 2, "and this": 1, "later": 1, "last words": 1, "fork": 1, "resumed": 1}
        )

    @needs_samples
    @pytest.mark.parametrize(
        ("pattern", "prompts"),
        [
            ("nasty/fork/*.jsonl", 7),
            ("growth-pair/*.jsonl", 3),
            ("nasty/clear-and-truncate*.jsonl", 6),
        ],
    )
    def test_copies_among_the_samples_add_nothing_in_any_order(self, pattern, prompts, tmp_path):
        files = sorted((SAMPLES / "claude-code").glob(pattern))
        words = self._check(files, tmp_path)
        assert sum(role == "HUMAN" for role, _ in words) == prompts

    @needs_samples
    def test_the_variants_of_one_session_are_one_session_in_any_order(self, tmp_path):
        base = SAMPLES / "claude-code"
        names = ["reappended-history_same-uuids", "torn-then-glued", "glued-two-records"]
        files = [base / "nasty" / f"{name}.jsonl" for name in names]
        words = self._check([base / "cc_rewind-then-compact.jsonl", *files], tmp_path)
        assert sum(role == "HUMAN" for role, _ in words) == 6


class TestStories:
    """R1, R3: exactly once, by a model of the words, under random splits, restarts and orders."""

    @settings(
        max_examples=80,
        deadline=None,  # it writes to disk
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(chance=st.randoms(use_true_random=False))
    def test_every_word_of_a_random_session_is_stored_once(self, chance):
        with TemporaryDirectory() as folder:
            self._tell(Teller(chance).story(), chance, Path(folder))

    def _tell(self, story: Story, chance: random.Random, home: Path) -> None:
        folder = home / "files"
        folder.mkdir()
        left = {folder / f"{one.session}.jsonl": one.bytes() for one in story.files}
        done: list[Path] = []
        with Capturing(home / "palace") as capturing:
            while left:
                path = chance.choice(sorted(left))
                cut = chance.randint(1, max(1, len(left[path]) // 2))
                if chance.random() < 0.3:
                    cut = len(left[path])
                with path.open("ab") as file:
                    file.write(left[path][:cut])
                left[path] = left[path][cut:]
                if not left[path]:
                    del left[path]
                    done.append(path)
                capturing.read(path, cold=chance.random() < 0.5)
                if chance.random() < 0.3:
                    capturing.again()
                if done and chance.random() < 0.2:  # the same file once more, under another name
                    copy = folder / f"copy-{len(list(folder.iterdir()))}.jsonl"
                    write(copy, [chance.choice(done).read_bytes()])
                    capturing.read(copy)
            for path in sorted(folder.iterdir()):
                capturing.read(path)
            capturing.check()
            assert Counter(capturing.words()) == story.words
