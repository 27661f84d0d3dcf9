"""Where the home is, and who may read what is created in it."""

import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mempalace import paths
from mempalace.errors import BadConfig, MemPalaceError


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def generous_umask():
    before = os.umask(0o000)
    yield
    os.umask(before)


def test_the_variable_names_the_home(tmp_path):
    assert paths.home({"MEMPALACE_HOME": str(tmp_path / "x")}) == str(tmp_path / "x")


def test_the_variable_may_start_with_a_tilde(tmp_path):
    env = {"MEMPALACE_HOME": "~/x", "HOME": str(tmp_path)}
    assert paths.home(env) == str(tmp_path / "x")


def test_a_relative_variable_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert paths.home({"MEMPALACE_HOME": "x/../y"}) == str(tmp_path / "y")


def test_the_classic_folder_is_the_home_where_it_exists(home):
    (home / ".mempalace").mkdir()
    assert paths.home({"HOME": str(home)}) == str(home / ".mempalace")


def test_the_variable_wins_over_the_classic_folder(home):
    (home / ".mempalace").mkdir()
    assert paths.home() == str(home / "palace")


@pytest.mark.skipif(sys.platform != "linux", reason="the data directory is the platform's")
def test_without_either_the_home_is_in_the_platforms_data_directory(home):
    assert paths.home({"HOME": str(home)}) == str(home / ".local/share/mempalace")


def test_an_empty_variable_counts_as_unset(home):
    (home / ".mempalace").mkdir()
    env = {"HOME": str(home), "MEMPALACE_HOME": ""}
    assert paths.home(env) == str(home / ".mempalace")


def test_asking_for_the_home_creates_nothing(home):
    paths.home()
    assert list(home.iterdir()) == []


def test_a_tilde_inside_a_path_is_a_letter():
    assert paths.expand("/a/~/b", {"HOME": "/h"}) == "/a/~/b"


def test_a_new_home_is_the_owners_alone(palace_home):
    paths.create_home(palace_home)
    assert mode_of(palace_home) == 0o700


def test_an_empty_home_is_closed_to_others(palace_home):
    palace_home.mkdir(mode=0o755)
    paths.create_home(palace_home)
    assert mode_of(palace_home) == 0o700


def test_a_home_with_a_palace_is_closed_to_others(palace_home):
    palace_home.mkdir(mode=0o755)
    (palace_home / "palace.db").touch()
    (palace_home / "note").touch()
    paths.create_home(palace_home)
    assert mode_of(palace_home) == 0o700


def test_a_folder_that_others_use_too_keeps_its_mode(palace_home):
    palace_home.mkdir(mode=0o755)
    (palace_home / "somebody-elses").touch()
    paths.create_home(palace_home)
    assert mode_of(palace_home) == 0o755


def test_a_file_in_the_place_of_the_home_is_a_configuration_error(palace_home):
    palace_home.write_text("")
    with pytest.raises(BadConfig, match=str(palace_home)):
        paths.create_home(palace_home)


def test_a_home_below_a_file_is_a_configuration_error(palace_home):
    palace_home.write_text("")
    with pytest.raises(BadConfig):
        paths.create_home(palace_home / "deeper")


def test_a_new_file_is_the_owners_alone_and_holds_the_text(tmp_path):
    file = tmp_path / "f"
    assert paths.create_file(file, "é\r\n")
    assert (mode_of(file), file.read_bytes()) == (0o600, "é\r\n".encode())


def test_a_file_that_exists_is_not_written(tmp_path):
    file = tmp_path / "f"
    file.write_text("mine")
    assert not paths.create_file(file, "yours")
    assert file.read_text() == "mine"


def test_a_link_that_leads_nowhere_is_not_followed(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    assert not paths.create_file(link, "text")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_in_a_missing_folder_is_an_error_with_a_hint(tmp_path):
    with pytest.raises(MemPalaceError, match="cannot create") as caught:
        paths.create_file(tmp_path / "missing" / "f", "text")
    assert "MEMPALACE_HOME" in caught.value.hint


def test_a_file_that_sqlite_will_open_is_created_private(tmp_path):
    paths.keep_private(tmp_path / "palace.db")
    assert mode_of(tmp_path / "palace.db") == 0o600


def test_a_file_that_was_open_to_others_is_closed_and_keeps_its_bytes(tmp_path):
    file = tmp_path / "palace.db"
    file.write_bytes(b"data")
    file.chmod(0o644)
    paths.keep_private(file)
    assert (mode_of(file), file.read_bytes()) == (0o600, b"data")


def test_importing_paths_imports_nothing_slow():
    """Wake-up has 100 ms; each of these modules takes 4 to 20 of them."""
    slow = ("typing", "pathlib", "re", "platformdirs", "dataclasses", "click", "yaml", "enum")
    program = (
        "import sys; before = set(sys.modules); import mempalace.paths, mempalace.__main__\n"
        f"print([name for name in {slow} if name in set(sys.modules) - before])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


def test_a_test_that_opens_the_real_transcripts_is_seen(touched_real_claude):
    real = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".claude" / "no-such-file-of-a-test"
    with pytest.raises(OSError):  # noqa: PT011 - missing or forbidden, as the machine has it
        real.open()
    assert touched_real_claude == [f"open {real}"]
    touched_real_claude.clear()
