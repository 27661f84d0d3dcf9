"""What every test gets without asking: a home of its own.

Owns: the isolation of the environment, and the guard of the real ~/.claude.
Never: holds builders or assertions of one subject; they live beside their tests.
"""

import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A gate must say the same of the same code; at a desk and in `make soak` chance goes on looking.
settings.register_profile("gate", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("gate")

_REAL_HOMES = {pwd.getpwuid(os.getuid()).pw_dir, os.environ.get("HOME", "")} - {"", "/"}
_REAL_CLAUDE = {f"{home}/{name}" for home in _REAL_HOMES for name in (".claude", ".config/claude")}
if "CLAUDE_CONFIG_DIR" in os.environ:
    _REAL_CLAUDE.add(os.environ["CLAUDE_CONFIG_DIR"].rstrip("/"))
_PROTECTED = tuple(sorted(_REAL_CLAUDE | {f"{folder}/" for folder in _REAL_CLAUDE}))
_EVENTS = {"open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "os.chmod"}

_touched: list[str] = []


def _watch_real_claude(event: str, arguments: tuple[object, ...]) -> None:
    if event not in _EVENTS or not arguments:
        return
    first = arguments[0]
    path = os.fspath(first) if isinstance(first, os.PathLike) else first
    text = os.fsdecode(path) if isinstance(path, (str, bytes)) else ""
    if text in _PROTECTED or text.startswith(tuple(p for p in _PROTECTED if p.endswith("/"))):
        _touched.append(f"{event} {text}")


sys.addaudithook(_watch_real_claude)  # for the life of the process: hooks cannot be removed


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test a HOME, a palace's home and agents' folders of its own; return the HOME."""
    for name in list(os.environ):
        if name.startswith(("MEMPALACE_", "XDG_", "CLAUDE_")):
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    places = {
        "HOME": folder,
        "MEMPALACE_HOME": folder / "palace",
        "CLAUDE_CONFIG_DIR": folder / ".claude",
        "XDG_CACHE_HOME": folder / ".cache",
        "XDG_CONFIG_HOME": folder / ".config",
        "XDG_DATA_HOME": folder / ".local" / "share",
        "XDG_RUNTIME_DIR": folder / ".run",
        "XDG_STATE_HOME": folder / ".local" / "state",
    }
    for name, place in places.items():
        monkeypatch.setenv(name, str(place))
    monkeypatch.setenv("MEMPALACE_INDEX_VECTORS", "false")  # a test that is about them turns it on
    _touched.clear()
    yield folder
    assert not _touched, f"the real transcripts were touched: {_touched}"


@pytest.fixture
def palace_home(home: Path) -> Path:
    """The folder that MEMPALACE_HOME names; it does not exist yet."""
    return home / "palace"


@pytest.fixture
def touched_real_claude() -> list[str]:
    """What the guard has seen in this test; clear it where the touch was the point."""
    return _touched
