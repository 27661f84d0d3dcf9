"""The room of a project file: its folders first, then its name, then what it says.

Owns: which folder names mean which room (those of MemPalace 3), and the order of asking.
Never: opens a file, knows wings; rooms of conversations are weighed in derive.
Called by: project mining, `init`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

GENERAL = "general"
_CONTENT_READ = 2_000  # characters
_SHORTEST_FOLDER = 3  # letters of a top-level folder that becomes a room of its own name

# room → names of folders (those of MemPalace 3).
FOLDERS: dict[str, tuple[str, ...]] = {
    room: tuple(names.split())
    for room, names in {
        "frontend": "frontend front-end client ui views components pages",
        "backend": "backend back-end server api routes services controllers models database db",
        "documentation": "docs doc documentation wiki readme notes",
        "design": "design designs mockups wireframes assets storyboard",
        "costs": "costs cost budget finance financial pricing invoices accounting",
        "meetings": "meetings meeting calls meeting_notes standup minutes",
        "team": "team staff hr hiring employees people",
        "research": "research references reading papers",
        "planning": "planning roadmap strategy specs requirements",
        "testing": "tests test testing qa",
        "scripts": "scripts tools utils",
        "configuration": "config configs settings infrastructure infra deploy",
    }.items()
}
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")


def normal(name: str) -> str:
    """A name as rooms are compared: lower case, one `_` for any of blank, `-` and `_`."""
    return re.sub(r"[\s_-]+", "_", name.strip().lower()).strip("_")


_ROOM_OF_FOLDER = {normal(name): room for room, names in FOLDERS.items() for name in names}


def room_of_folder(name: str) -> str | None:
    """The room that a top-level folder stands for: a known one, or one of its own name."""
    key = normal(name)
    known = _ROOM_OF_FOLDER.get(key)
    if known:
        return known
    return key if sum(map(str.isalpha, key)) >= _SHORTEST_FOLDER and name[:1] != "." else None


def detect_rooms(folders: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Room → keywords, for the top-level folders of a project; what `init` proposes."""
    found: dict[str, set[str]] = {}
    for folder in folders:
        room = room_of_folder(folder)
        if room:
            found.setdefault(room, set(FOLDERS.get(room, ()))).add(folder)
    return {room: tuple(sorted({normal(name) for name in names})) for room, names in found.items()}


def room_of_file(relative_path: str, text: str, rooms: Mapping[str, Iterable[str]]) -> str:
    """The room of a file of a project whose rooms are given as name → keywords."""
    keys = {
        normal(word): room
        for room, words in rooms.items()
        for word in (room, *words)
        if word.strip()
    }
    *folders, name = [part for part in relative_path.replace("\\", "/").split("/") if part] or [""]
    for folder in folders:
        room = keys.get(normal(folder))
        if room:
            return room
    stem = normal(name.rsplit(".", 1)[0] if "." in name[1:] else name)
    if stem in keys:
        return keys[stem]
    for part in stem.split("_"):
        if part in keys:
            return keys[part]
    return _by_content(text[:_CONTENT_READ], keys)


def _by_content(text: str, keys: Mapping[str, str]) -> str:
    counts: dict[str, int] = {}
    for word in _WORD.findall(text.lower()):
        room = keys.get(word.replace("-", "_"))
        if room:
            counts[room] = counts.get(room, 0) + 1
    return max(counts, key=lambda room: counts[room]) if counts else GENERAL
