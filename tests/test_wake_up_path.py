"""`mempalace wake-up`: the shortest path, and what it must not need (R9)."""

import os
import subprocess
import sys
import time

import pytest

from mempalace.errors import WrongUsage
from mempalace.layers import main
from tests.command import mempalace
from tests.palace_builder import PalaceBuilder
from tests.waking import moments, woken


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


class TestFastPath:
    """R9: it imports little, waits for nothing and needs no permission to write."""

    def test_it_imports_nothing_that_it_does_not_need(self, builder):
        builder.session().prompt("A question that tells something")
        builder.file()
        program = (
            "import sys; from mempalace.__main__ import main; main(['wake-up']); "
            "print(*sys.modules, file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-S", "-c", program],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        loaded = set(done.stderr.split())
        heavy = {
            "click", "rich", "chromadb", "yaml", "platformdirs", "orjson", "pathlib", "dataclasses",
            "re", "json", "typing", "enum", "urllib.parse", "inspect", "hashlib", "logging",
            "mempalace.config", "mempalace.model", "mempalace.search", "mempalace.store.palace",
        }  # fmt: skip
        assert "A question that tells" in done.stdout
        assert loaded & heavy == set()

    def test_questions_are_answered_from_an_index(self, builder):
        builder.file()
        plans = []
        with builder.palace.reading() as db:
            for where in ("wing = 1 AND ", ""):
                plans += db.execute(
                    "EXPLAIN QUERY PLAN SELECT n, session, room, key_sentence, started_at"
                    f" FROM exchanges WHERE {where}retired IS NULL AND headless = 0"
                    " ORDER BY importance DESC, started_at DESC"
                ).fetchall()
        details = [plan[3] for plan in plans]
        assert [detail.split("INDEX ")[1].split(" ")[0] for detail in details] == [
            "exchanges_by_moment",
            "exchanges_by_time",
        ]

    def test_a_read_only_home_answers(self, builder, palace_home):
        builder.session().prompt("A question that tells something")
        builder.file()
        builder.palace.close()
        for path in palace_home.iterdir():
            path.chmod(0o400)
        palace_home.chmod(0o500)
        try:
            assert moments(mempalace("wake-up").stdout.splitlines())
        finally:
            palace_home.chmod(0o700)

    def test_a_locked_palace_answers_at_once(self, builder):
        builder.session().prompt("A question that tells something")
        builder.file()
        with builder.palace.transaction() as db:
            db.execute("DELETE FROM exchanges WHERE 0")
            started = time.monotonic()
            assert moments(mempalace("wake-up").stdout.splitlines())
        assert time.monotonic() - started < 5

    @pytest.mark.parametrize("option", ["-h", "--help"])
    def test_help_needs_no_palace(self, option):
        done = mempalace("wake-up", option)
        assert done.returncode == 0
        assert done.stdout.startswith("Usage: mempalace wake-up [--wing WING] [")

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--wing"],
            ["extra"],
            ["--room", "x"],
            ["-w", "x", "y"],
            ["--event", "lunch"],
            ["--session"],
        ],
    )
    def test_wrong_usage_exits_2(self, arguments):
        done = mempalace("wake-up", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "hint: " in done.stderr

    def test_the_slow_path_prints_the_same(self, builder, tmp_path):
        builder.session().prompt("A question that tells something")
        fast = woken(builder, cwd=tmp_path)[1:]
        slow = mempalace("--debug", "wake-up", cwd=tmp_path).stdout.splitlines()[1:]
        assert slow == fast

    def test_a_wing_that_is_no_unicode_is_unknown(self, builder):
        done = mempalace("wake-up", "--wing", os.fsdecode(b"\xff"))
        assert done.returncode == 3

    def test_main_refuses_what_it_does_not_know(self):
        with pytest.raises(WrongUsage):
            main(["--no-such"])
