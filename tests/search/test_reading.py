"""R9: who may read but not write is answered, with a log and without one.

Run by root, the tests take another user's rights, because root ignores permissions.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mempalace.errors import NotThereYet
from mempalace.store.palace import Palace
from mempalace.store.schema import MIGRATIONS
from tests.palace_builder import PalaceBuilder

NOBODY = 65_534

# Everything is imported before the rights go: another user may not read this environment.
PROGRAM = """
import os, sys
from mempalace.layers import MemoryStack
home, user = sys.argv[1], int(sys.argv[2])
stack = MemoryStack(home)
stack.wake_up(), stack.search("basket")
if os.geteuid() == 0:
    os.setegid(user)
    os.seteuid(user)
try:
    open(home + "/probe", "w")
    sys.exit("this user may write, so nothing is proven")
except PermissionError:
    pass
print(stack.wake_up(), stack.search("basket"))
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A palace that everybody may read, in a folder that other users can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as above:
        Path(above).chmod(0o755)
        folder = Path(above) / "palace"
        with PalaceBuilder(folder) as building:
            building.session().prompt("Why is the basket empty today?")
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o700)


def read_without_rights(shared: Path) -> str:
    for path in shared.iterdir():
        path.chmod(0o444)
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(shared), str(NOBODY)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_a_log(shared):
    assert read_without_rights(shared).count("Why is the basket empty today?") == 2
    assert [path.name for path in shared.iterdir()] == ["palace.db"]


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's writer needs another user")
def test_while_a_writer_has_the_log(shared):
    with Palace.writer(shared) as writer:
        writer.set_note("x", "y")
        assert (shared / "palace.db-wal").stat().st_size > 0
        assert read_without_rights(shared).count("Why is the basket empty today?") == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's writer needs another user")
def test_what_was_just_written_is_seen_where_the_log_can_be_read(shared):
    with PalaceBuilder(shared) as building:
        building.session("s").prompt("Another basket question for you")
        building.file()
        assert "Another basket question for you" in read_without_rights(shared)


def test_a_palace_of_an_older_schema_is_brought_up_to_date_by_a_writer(shared, monkeypatch):
    monkeypatch.setattr("mempalace.store.connect.MIGRATIONS", (*MIGRATIONS, ""))
    with pytest.raises(NotThereYet, match="older MemPalace") as caught:
        Palace.reader(shared)
    assert "mempalace backfill" in caught.value.hint


@pytest.mark.parametrize("name", ["with space", "per%20cent", "what?", "ha#sh", "数据库"])
def test_a_home_may_have_any_name(tmp_path, name):
    with PalaceBuilder(tmp_path / name) as building:
        building.session().prompt("Why is the basket empty today?")
    with Palace.reader(tmp_path / name) as palace:
        assert palace.note("daemon") is None
