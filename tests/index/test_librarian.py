"""The librarian as a process: one, on demand, and never in anybody's way."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from mempalace import __version__
from mempalace.errors import NotThereYet
from mempalace.index import client
from mempalace.index import librarian as librarian_module
from mempalace.index.client import Connection, NoLibrarian
from mempalace.index.librarian import Librarian
from mempalace.store import vectors
from mempalace.store.palace import Palace
from tests.command import COMMAND, mempalace, mempalace_json
from tests.index.quick import Quick
from tests.palace_builder import PalaceBuilder
from tests.transcripts.builder import Session

PATIENCE = 30.0  # seconds
ROOT = Path(__file__).parents[2]
SEARCH = """
import sys
from mempalace.cli import main
sys.exit(main(["search", "basket"]))
"""


def until(what: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


@pytest.fixture
def filled(palace_home, monkeypatch) -> Iterator[Path]:
    """A palace with a few exchanges; whatever runs in it ends with the test."""
    monkeypatch.setenv("MEMPALACE_INDEX_VECTORS", "true")
    with PalaceBuilder(palace_home) as building:
        session = building.session()
        session.prompt("Why is the basket empty?").answer("The cookie expired at midnight.")
        session.prompt("How do we send invoices?").answer("By a queue, once each.")
    yield palace_home
    for one in librarians(palace_home):
        one.kill()


def librarians(home: Path) -> list[psutil.Process]:
    """The processes that work in this home: a child that only opens Chroma counts for nothing."""
    found = []
    for one in psutil.process_iter():
        try:
            is_one = {"librarian", "tests.index.quick"} & set(one.cmdline())
            if is_one and str(home) in (one.environ().get("MEMPALACE_HOME"), one.cmdline()[-1]):
                found.append(one)
        except psutil.Error:
            continue
    return found


@contextmanager
def start_quick(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A librarian with a model that costs nothing; it is killed at the end if it lives."""
    with (home / "quick.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.index.quick", str(home)], cwd=ROOT, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def waiting(home: Path) -> int:
    with Palace.reader(home) as palace:
        return vectors.waiting(palace.db)


def make_due(home: Path) -> None:
    with Palace.writer(home) as palace, palace.transaction() as db:
        db.execute("UPDATE outbox SET due_at = 0")


def state(home: Path) -> dict[str, object]:
    with Connection(home, wait=5.0) as connection:
        return connection.ask("state")


class TestSearch:
    """The real model: what has no word in common is found."""

    def test_a_cold_search_answers_at_once_and_the_next_one_by_meaning(self, filled):
        make_due(filled)
        first = mempalace_json("search", "shopping cart loses its items")
        assert first["degraded"] == ["keywords only: vectors are warming"]
        until(lambda: not waiting(filled) and state(filled)["is_loaded"])
        second = mempalace_json("search", "shopping cart loses its items")
        assert second["degraded"] == []
        best = second["results"][0]
        assert best["text"].startswith("Why is the basket empty?")
        assert best["matched_via"] == ["drawer"]
        assert 0 < best["score"] <= 1

    def test_what_both_find_says_so(self, filled):
        make_due(filled)
        mempalace("search", "warm up")
        until(lambda: not waiting(filled) and state(filled)["is_loaded"])
        found = mempalace_json("search", "invoices queue")["results"]
        assert found[0]["text"].startswith("How do we send invoices?")
        assert set(found[0]["matched_via"]) == {"keyword", "drawer"}
        # below a filter: nothing of another wing, and nothing where nothing passes
        assert mempalace_json("search", "invoices", "--wing", "shop")["results"]
        assert not mempalace_json("search", "invoices", "--since", "2027-01-01")["results"]

    def test_ten_searches_at_once_on_a_cold_home_start_one(self, filled):
        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(lambda _: mempalace("search", "basket"), range(10)))
        assert {answer.returncode for answer in answers} == {0}
        assert all("basket" in answer.stdout for answer in answers)
        until(lambda: len(librarians(filled)) == 1 and client.is_running(filled))
        log = (filled / "librarian.log").read_text()
        assert log.count("librarian.start") == 1

    def test_tools_are_found_by_keywords_and_need_none(self, filled):
        assert mempalace_json("search", "basket", "--kind", "tools")["degraded"] == []
        assert not librarians(filled)


class TestForgetting:
    """R4: Chroma keeps the bytes of what it deletes; its folder is filled anew."""

    def bytes_of(self, home: Path, drawer: str) -> bytes:
        with Palace.reader(home) as palace:
            (blob,) = palace.db.execute(
                "SELECT v.vector FROM vectors v JOIN drawers d ON d.n = v.drawer"
                " WHERE d.text LIKE ?", (drawer + "%",)
            ).fetchone()  # fmt: skip
        return np.frombuffer(blob, np.float16).astype(np.float32).tobytes()

    def holds(self, home: Path, what: bytes) -> bool:
        files = [path for path in (home / "vectors").rglob("*") if path.is_file()]
        return any(what[:400] in path.read_bytes() for path in files)

    @pytest.mark.parametrize("is_running", [True, False])
    def test_no_byte_of_a_forgotten_vector_is_left(self, filled, is_running):
        make_due(filled)
        with start_quick(filled) as process:
            until(lambda: client.is_running(filled) and not waiting(filled))
            with client.connect(filled, wait=5.0) as connection:
                connection.ask("reindex")
            until(lambda: state(filled)["is_in_step"])
            if not is_running:
                process.terminate()
                process.wait(PATIENCE)
            gone, kept = self.bytes_of(filled, "Why"), self.bytes_of(filled, "How")
            assert self.holds(filled, gone) == is_running or not is_running
            with Palace.reader(filled) as palace:
                (named,) = palace.db.execute(
                    "SELECT e.id FROM exchanges e JOIN drawers d ON d.exchange = e.n"
                    " WHERE d.text LIKE 'Why%'"
                ).fetchone()
            done = mempalace("forget", named, "--yes")
            assert done.returncode == 0, done.stderr
            assert not self.holds(filled, gone)
            if is_running:
                until(lambda: state(filled)["is_in_step"] and state(filled)["vectors"] == 1)
                process.terminate()
                process.wait(PATIENCE)
                assert not self.holds(filled, gone)
                assert kept != gone
            else:
                assert not (filled / "vectors").exists()


class TestWaiting:
    """A command that is asked to wait does."""

    def test_backfill_stays_until_all_is_embedded(self, filled, tmp_path):
        session = Session("5f0c7a60-0000-4000-8000-000000000001").user("one").text("two")
        (tmp_path / f"{session.session}.jsonl").write_bytes(session.bytes())
        done = mempalace("backfill", "--wait", str(tmp_path))
        assert done.returncode == 0, done.stderr
        assert "3 drawers embedded in" in done.stdout
        assert waiting(filled) == 0
        assert mempalace("reindex").stdout.startswith("3 vectors in the index")
        assert mempalace_json("search", "two")["degraded"] == []


class TestWithout:
    """Whatever it may not do, a search answers from keywords and exits with 0."""

    def search(self, home: Path, program: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program + SEARCH], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert "Why is the" in done.stdout
        return done.stdout

    def test_no_process_may_be_started(self, filled):
        out = self.search(filled, (
            "import subprocess\n"
            "def no(*_, **__): raise PermissionError(1, 'no')\n"
            "subprocess.Popen = no"
        ))  # fmt: skip
        assert "note: keywords only: no librarian can be started here" in out
        assert not librarians(filled)

    def test_no_socket_may_be_made(self, filled):
        out = self.search(filled, (
            "import socket\n"
            "def no(*_, **__): raise PermissionError(1, 'no')\n"
            "socket.socket = no"
        ))  # fmt: skip
        assert "note: keywords only" in out

    def test_a_librarian_that_hangs_is_not_waited_for(self, filled):
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.bind(client.address(filled))
            deaf.listen()
            began = time.monotonic()
            out = self.search(filled, "")
            assert time.monotonic() - began < 20
        assert "note: keywords only: the librarian does not answer" in out

    @pytest.mark.parametrize("name", ["librarian.sock", "librarian.lock", "librarian.log"])
    @pytest.mark.parametrize("what", ["folder", "fifo"])
    def test_something_is_in_the_way_and_search_says_so(self, filled, name, what):
        path = filled / name
        path.mkdir() if what == "folder" else os.mkfifo(path)
        mempalace("search", "basket")
        if (name, what) in (("librarian.lock", "fifo"), ("librarian.sock", "fifo")):
            until(lambda: client.is_running(filled))  # these can be used, or be replaced
            return
        until(lambda: "warming" not in self.search(filled, ""))
        assert "note: keywords only: " in self.search(filled, "")
        assert not librarians(filled)

    def test_a_sandbox_without_sockets_starts_nothing(self, filled):
        out = self.search(filled, (
            "import socket\n"
            "def no(*_, **__): raise PermissionError(1, 'no')\n"
            "socket.socket.connect = no\n"
        ))  # fmt: skip
        assert "note: keywords only: the librarian does not answer (PermissionError)" in out
        assert not librarians(filled)

    def test_vectors_are_off(self, filled, monkeypatch):
        monkeypatch.setenv("MEMPALACE_INDEX_VECTORS", "false")
        assert "vectors are off" in mempalace("search", "basket").stdout
        assert not librarians(filled)
        done = mempalace("reindex")
        assert (done.returncode, "vectors are off" in done.stderr) == (78, True)

    def test_a_missing_model_is_named_and_not_tried_again_at_once(self, filled, tmp_path):
        """As where the package was removed: the librarian says why, search repeats it."""
        (tmp_path / "shadow").mkdir()
        (tmp_path / "shadow" / "tokenizers.py").write_text("raise ImportError('none here')")
        env = {"PYTHONPATH": str(tmp_path / "shadow")}
        done = mempalace("librarian", env=env)
        assert done.returncode == 78
        assert "none here" in done.stderr
        out = mempalace("search", "basket").stdout
        assert "note: keywords only: the embedding model cannot run: none here" in out
        assert not librarians(filled)
        status = mempalace("status")
        assert "note: nothing is embedded: the embedding model cannot run" in status.stdout
        log = filled / "librarian.log"
        log.write_text("")
        done = mempalace("reindex", env=env)
        assert (done.returncode, "none here" in done.stderr) == (1, True)
        assert log.read_text().count("librarian.problem") == 1  # it was tried once
        done = mempalace("backfill", "--wait", str(tmp_path), env=env)
        assert (done.returncode, "note: there is no librarian" in done.stdout) == (0, True)


class TestLife:
    """Locks, sockets, signals, idleness."""

    def test_a_second_one_leaves(self, filled):
        with start_quick(filled) as first:
            until(lambda: client.is_running(filled))
            with start_quick(filled) as second:
                assert second.wait(PATIENCE) == 75
            first.terminate()
            assert first.wait(PATIENCE) == 0

    def test_sigterm_leaves_a_clean_index_and_no_socket(self, filled):
        make_due(filled)
        with start_quick(filled) as process:
            until(lambda: client.is_running(filled) and not waiting(filled))
            with client.connect(filled, wait=5.0) as connection:
                connection.ask("reindex")
            until(lambda: state(filled)["is_in_step"])
            process.terminate()
            assert process.wait(PATIENCE) == 0
        assert not Path(client.address(filled)).exists()
        with Palace.reader(filled) as palace:
            note = json.loads(palace.note("projection") or "")
        assert (note["is_clean"], note["count"]) == (True, 2)

    def test_one_that_was_killed_leaves_nothing_in_the_way(self, filled):
        make_due(filled)
        with start_quick(filled) as process:
            until(lambda: client.is_running(filled) and not waiting(filled))
            process.send_signal(signal.SIGKILL)
        assert Path(client.address(filled)).exists()  # it could not remove it
        with pytest.raises(NoLibrarian):
            Connection(filled)
        with start_quick(filled) as process:
            until(lambda: client.is_running(filled))
            with client.connect(filled, wait=5.0) as connection:
                assert connection.ask("state")["pid"] == process.pid
            process.terminate()

    def test_nothing_is_anybody_elses(self, filled):
        """R12."""
        make_due(filled)
        with start_quick(filled) as process:
            until(lambda: client.is_running(filled) and not waiting(filled))
            with client.connect(filled, wait=5.0) as connection:
                connection.ask("reindex")
            until(lambda: state(filled)["is_in_step"])
            for path in [filled, *filled.rglob("*")]:
                if path.name != "quick.log":
                    assert not path.stat().st_mode & 0o077, path
            process.terminate()

    def test_a_home_whose_path_is_too_long_for_a_socket(self, filled, tmp_path):
        far = tmp_path / ("f" * 90) / "palace"
        far.parent.mkdir()
        filled.rename(far)
        with start_quick(far) as process:
            until(lambda: client.is_running(far))
            address = client.address(far)
            assert len(os.fsencode(address)) <= 103
            assert not address.startswith(str(tmp_path))
            with client.connect(far, wait=5.0) as connection:
                assert connection.ask("state")["pid"] == process.pid
            assert Path(address).parent.stat().st_mode & 0o077 == 0
            process.terminate()
            assert process.wait(PATIENCE) == 0
        assert not Path(address).exists()

    def test_without_a_palace_it_leaves_and_makes_none(self, palace_home, monkeypatch):
        monkeypatch.setenv("MEMPALACE_INDEX_VECTORS", "true")
        done = mempalace("librarian")
        assert (done.returncode, done.stdout) == (0, "")
        assert not palace_home.exists()

    def test_it_leaves_when_its_home_is_removed(self, filled, tmp_path):
        with start_quick(filled) as process:
            until(lambda: client.is_running(filled))
            filled.rename(tmp_path / "elsewhere")
            assert process.wait(PATIENCE) == 0

    def test_one_of_another_version_leaves(self, filled):
        with start_quick(filled) as process:
            until(lambda: client.is_running(filled))
            with client.connect(filled, wait=5.0) as connection:
                answer = connection.ask("find", version="0.0.1", text="basket", limit=5)
            assert answer == {"state": "warming"}
            assert process.wait(PATIENCE) == 0

    @pytest.mark.parametrize(
        "line", [b"\n", b"{\n", b"[]\n", b'{"do": "dance"}\n', b'{"do": "find"}\n', b"\xff\n"]
    )
    def test_a_bad_request_is_answered_and_harms_nobody(self, filled, line):
        with start_quick(filled) as process:
            until(lambda: client.is_running(filled))
            with client.connect(filled, wait=5.0) as connection:
                connection._socket.sendall(line)
                assert connection.answer().keys() & {"error", "state"}
                assert connection.ask("state")["pid"] == process.pid
            process.terminate()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class TestLeaving:
    """In this process, by a clock of the test's."""

    @pytest.fixture(autouse=True)
    def looks_often(self, monkeypatch):
        monkeypatch.setattr(librarian_module, "_LOOK_SECONDS", 0.01)

    def test_without_work_it_leaves_after_a_minute(self, filled):
        make_due(filled)
        clock = Clock()
        librarian = Librarian(filled, [Quick], clock=clock)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(librarian.run)
            until(lambda: running.done() or not waiting(filled))
            clock.now += librarian_module.IDLE_SECONDS - 1
            time.sleep(0.2)
            assert not running.done()
            clock.now += 2
            running.result(PATIENCE)

    def test_with_the_index_open_it_stays_ten_minutes_from_the_last_question(self, filled):
        clock = Clock()
        librarian = Librarian(filled, [Quick], clock=clock)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(librarian.run)
            with client.connect(filled, wait=5.0) as connection:
                connection.ask("find", version=__version__, text="basket", limit=1)
            until(lambda: state(filled)["is_in_step"])
            clock.now += librarian_module.IDLE_SECONDS + 1
            time.sleep(0.2)
            with client.connect(filled, wait=5.0) as connection:
                connection.ask("find", version=__version__, text="basket", limit=1)
            clock.now += librarian_module.QUESTION_SECONDS - 1
            time.sleep(0.2)
            assert not running.done()
            clock.now += 2
            running.result(PATIENCE)

    def test_a_palace_that_is_not_there_is_no_work(self, palace_home):
        with pytest.raises(NotThereYet):
            Librarian(palace_home, [Quick]).run()


def _given(model: Quick) -> Quick:
    return model


class TestModels:
    """Another model embeds everything anew, and the old one answers until it is done."""

    def run(self, home: Path, *models: Quick, until_: Callable[[Librarian], bool]) -> Librarian:
        librarian = Librarian(home, [partial(_given, one) for one in models])
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(librarian.run)
            until(lambda: running.done() or until_(librarian))
            librarian.stop()
            running.result(PATIENCE)
        return librarian

    def counts(self, home: Path) -> list[tuple[str, int]]:
        with sqlite3.connect(home / "palace.db") as db:
            return db.execute(
                "SELECT fingerprint, COUNT(v.n) FROM models m LEFT JOIN vectors v ON v.model = m.n"
                " GROUP BY m.n ORDER BY m.n"
            ).fetchall()

    def test_all_is_embedded_anew_and_the_old_vectors_go(self, filled):
        make_due(filled)
        self.run(filled, Quick("old"), until_=lambda _: not waiting(filled))
        assert self.counts(filled) == [("old", 2)]
        new = Quick("new")
        self.run(filled, new, until_=lambda _: self.counts(filled) == [("old", 0), ("new", 2)])
        assert new.embedded.total() == 2

    def test_the_old_one_answers_meanwhile(self, filled):
        make_due(filled)
        self.run(filled, Quick("old"), until_=lambda _: not waiting(filled))
        new, old = Quick("new"), Quick("old")
        may_embed = threading.Event()

        def hold() -> None:
            may_embed.wait(PATIENCE)

        new.meanwhile = hold
        librarian = Librarian(filled, [lambda: new, lambda: old], opens=True)

        def found() -> list[object]:
            with client.connect(filled, wait=5.0) as connection:
                answer = connection.ask("find", version=__version__, text="basket", limit=2)
            return list(answer.get("found", []))

        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(librarian.run)
            until(lambda: running.done() or len(found()) == 2)
            assert (new.embedded.total() <= 16, "basket" in old.embedded) == (True, True)
            may_embed.set()
            until(lambda: self.counts(filled) == [("old", 0), ("new", 2)])
            until(lambda: running.done() or len(found()) == 2)
            assert "basket" in new.embedded
            librarian.stop()
            running.result(PATIENCE)


def test_the_watcher_has_none_of_it(filled, tmp_path):
    """On the live process: its memory is what users feel all day."""
    roots = tmp_path / "roots"
    roots.mkdir()
    env = {**os.environ, "MEMPALACE_ROOTS_CLAUDE_CODE": str(roots)}
    with subprocess.Popen([*COMMAND, "watch"], env=env, stderr=subprocess.DEVNULL) as watch:
        until(lambda: librarians(filled))  # something is due, so it started one
        maps = Path(f"/proc/{watch.pid}/maps").read_text()
        watch.terminate()
        assert watch.wait(PATIENCE) == 0
    for name in ("chromadb", "onnxruntime", "numpy", "tokenizers"):
        assert name not in maps


def test_what_the_watcher_files_is_found_by_meaning(filled, tmp_path):
    roots = tmp_path / "roots"
    roots.mkdir()
    env = {**os.environ, "MEMPALACE_ROOTS_CLAUDE_CODE": str(roots)}
    with subprocess.Popen([*COMMAND, "watch"], env=env, stderr=subprocess.DEVNULL) as watch:
        session = Session("5f0c7a60-0000-4000-8000-000000000001")
        session.user("Which shade shall the cabin's shutters have?").text("A dark green.")
        (roots / f"{session.session}.jsonl").write_bytes(session.bytes())

        def is_found() -> bool:
            found = mempalace_json("search", "colour of the window covers", "--limit", "1")
            return any("shutters" in hit["text"] for hit in found["results"])

        until(is_found)
        watch.terminate()
        assert watch.wait(PATIENCE) == 0
