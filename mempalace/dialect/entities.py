"""Who is named in a text, and the three letters that stand for a name.

Owns: the codes, the entities.json that gives them, and a modest guess at names nobody gave.
Never: looks beyond the text at hand (mempalace.mining knows the palace's entities).
Called by: mempalace.dialect.encoder.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from mempalace.dialect.page import UNKNOWN_ENTITY, is_code
from mempalace.dialect.text import is_technical
from mempalace.dialect.words import NO_NAMES, PERSON_VERBS, STOP_WORDS
from mempalace.errors import BadConfig

_SHAPE = 'it looks like {"entities": {"Alice": "ALC"}}, with names to leave out in "skip_names"'
_CAPITALISED = re.compile(r"[^\W\d_a-z]\w+")
_BEFORE = re.compile(r"(?<=[\w,;])[ ]$")  # what stands before a word inside a sentence
_NEXT_WORD = re.compile(r" ([a-z]+)\b")
_VOWELS = frozenset("AEIOU")


def read_config(path: str | os.PathLike[str]) -> tuple[dict[str, str], frozenset[str]]:
    """The codes and the names to leave out of an entities.json. Raises BadConfig."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadConfig(f"{path}: cannot be read: {error.strerror}", "check the path") from error
    except UnicodeDecodeError as error:
        raise BadConfig(f"{path}: not UTF-8", _SHAPE) from error
    except (ValueError, RecursionError) as error:
        at = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadConfig(f"{path}{at}: not valid JSON", _SHAPE) from error
    if not isinstance(value, dict):
        raise BadConfig(f"{path}: not an object", _SHAPE)
    nested = bool(value) and not all(isinstance(code, str) for code in value.values())
    unknown = sorted(value.keys() - {"entities", "skip_names"}) if nested else []
    if unknown:
        raise BadConfig(f"{path}: `{unknown[0]}` is neither a code nor a known key", _SHAPE)
    codes = value.get("entities", {}) if nested else value
    skipped = value.get("skip_names", []) if nested else []
    if not isinstance(codes, dict):
        raise BadConfig(f"{path}: `entities` is not an object", _SHAPE)
    if not isinstance(skipped, list) or not all(isinstance(name, str) for name in skipped):
        raise BadConfig(f"{path}: `skip_names` is not a list of names", _SHAPE)
    check_codes(codes, f"{path}: ")
    return codes, frozenset(skipped)


def check_codes(codes: Mapping[str, object], where: str = "") -> None:
    """Raise BadConfig for what is no name or no code."""
    for name, code in codes.items():
        if not name.strip():
            raise BadConfig(f"{where}an entity without a name", _SHAPE)
        if not isinstance(code, str) or not is_code(code):
            raise BadConfig(f"{where}the code of `{name}` is not three capital letters", _SHAPE)


def code_for(name: str, taken: frozenset[str]) -> str:
    """The first letter and the next two consonants, else the first three letters: ALC, KAI, BOX.

    A code that a configured name has already would mislead, and is `???` instead.
    """
    letters = [letter for letter in name.upper() if letter.isalnum()]
    if not letters:
        return UNKNOWN_ENTITY
    consonants = [letter for letter in letters[1:] if letter not in _VOWELS]
    short = letters[:1] + consonants[:2] if len(consonants) >= 2 else letters[:3]
    code = "".join(short).ljust(3, "X")
    return code if is_code(code) and code not in taken else UNKNOWN_ENTITY


class Names:
    """Finds names in texts: those that were given, and what looks like one."""

    def __init__(self, given: Mapping[str, str], skipped: frozenset[str]) -> None:
        self._given = dict(given)
        self._taken = frozenset(given.values())
        self._skipped = skipped
        longest_first = sorted(map(re.escape, given), key=len, reverse=True)
        self._pattern = (
            re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)") if given else None
        )

    def code(self, name: str) -> str:
        """The three letters for this name."""
        return self._given[name] if name in self._given else code_for(name, self._taken)

    def in_text(self, text: str) -> list[str]:
        """The names in a text: given ones first, then the most frequent, then the earliest."""
        counts = Counter(self._pattern.findall(text) if self._pattern else ())
        given = [name for name, _ in counts.most_common()]
        parts = {part for name in given for part in name.split()}
        guessed = Counter(name for name in self._guesses(text) if name not in parts)
        return given + [name for name, _ in guessed.most_common()]

    def _guesses(self, text: str) -> list[str]:
        found = []
        for match in _CAPITALISED.finditer(text):
            name = match.group()
            plain = name.lower()
            if plain in STOP_WORDS or plain in NO_NAMES or name in self._skipped:
                continue
            if is_technical(name) or not name[1:].islower():
                continue
            before = text[max(0, match.start() - 2) : match.start()]
            after = _NEXT_WORD.match(text, match.end())
            did_something = after is not None and after.group(1) in PERSON_VERBS
            if _BEFORE.search(before) or did_something:
                found.append(name)
        return found
