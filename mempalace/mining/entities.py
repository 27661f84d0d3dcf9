"""Who and what an exchange names: people, projects, tools, files, identifiers, packages.

Owns: telling a name from a word by its shape and place.
Never: counts over more than it was given (per-wing counts are the store's).
Called by: derive, closets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from mempalace.mining.names import (
    DOMAINS,
    EXTENSIONS,
    INSTALLERS,
    INSTALLS,
    NOBODY,
    PEOPLE,
    PERSON_AFTER,
    PERSON_BEFORE,
    TOOLS,
)

Entity = tuple[str, str]  # (kind, name)
_LONGEST = 120  # characters of a name: what is longer is data
LIMIT = 12  # entities of one exchange

_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SPACE = r"\s,;()\[\]{}\"“”`*<>|=!?"
# A token that may be a name: it has a capital, or what joins the parts of a path or an identifier.
_CANDIDATE = re.compile(rf"(?<![^{_SPACE}])[^{_SPACE}A-Z_/@.]*(?:[A-Z_/@]|\.(?=\w))[^{_SPACE}]*")
_LOWER = re.compile(r"(?<![\w./-])[a-z][a-z0-9-]+(?![\w/])")
_INSTALLED = re.compile(
    rf"\b(?:{'|'.join(sorted(INSTALLERS))})\s+(?:{'|'.join(sorted(INSTALLS))})\s+(?:-\S+\s+)*([\w@][\w@/.-]*)"
)
_AFTER = re.compile(r"\s?(\w+)")
_EDGES = ".:…'’-–—#"
_LEADING = _EDGES.replace(".", "")  # a dot may begin the name of a file
_BEFORE_A_SENTENCE = frozenset(".!?:…\n-–—•#>|)")
_SNAKE = re.compile(r"_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}")
_CAMEL = re.compile(r"(?:[a-z]+[0-9]*[A-Z]|[A-Z]+[a-z0-9]+[A-Z])[A-Za-z0-9]*")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_PATH = re.compile(r"(?:~|\.{1,2}|[\w.@+-]+)?(?:/[\w.@+-]+)+/?")
_LINE_NUMBER = re.compile(r":\d+(?:[-:]\d+)*$")
_SCOPED = re.compile(r"@[a-z0-9][\w.-]*/[a-z0-9][\w.-]*")
_PINNED = re.compile(r"([A-Za-z][\w.-]*)@\d[\w.]*")
_HANDLE = re.compile(r"@[A-Za-z][\w-]+")
_NAME = re.compile(r"[A-Z][a-zà-öø-ÿ]+(?:-[A-Z][a-z]+)?")
_NO_PROSE = re.compile(
    r"[ >]*(?:#|\||\*\*)|    |\t"
)  # headings, tables, code: capitals are style there
_NEXT_NAME = re.compile(r" ([A-Z][a-zà-öø-ÿ]+)(?![\w/.]\w)")
_VERSION = re.compile(r"\d+$")
# How telling a kind is: a file or a person says more of an exchange than a language does.
_TELLS = {
    "person": 3.0,
    "package": 2.5,
    "file": 2.0,
    "project": 1.2,
    "identifier": 1.5,
    "tool": 1.0,
}


def entities_of(
    texts: Sequence[str], names: Mapping[str, str] | None = None, limit: int = LIMIT
) -> tuple[Entity, ...]:
    """The entities of a prompt and its answers, most telling first; the prompt counts twice."""
    total = count(texts[:1], names)
    total.update(dict(total))
    total.update(count(texts[1:], names))
    return most_telling(total, limit)


def most_telling(counted: Mapping[Entity, int], limit: int = LIMIT) -> tuple[Entity, ...]:
    """The first `limit` by kind and count; ties in the order in which they were met."""
    ranked = sorted(counted, key=lambda entity: -_TELLS[entity[0]] * (1 + counted[entity]) ** 0.5)
    return tuple(ranked[:limit])


def count(texts: Iterable[str], names: Mapping[str, str] | None = None) -> Counter[Entity]:
    """How often each entity is named."""
    found: Counter[Entity] = Counter()
    at_start: Counter[str] = Counter()  # capitalised only because a sentence begins there
    for text in texts:
        if "```" in text:
            text = _FENCED.sub("\n", text)
        if names:
            given = _known(tuple(names))
            for match in given.finditer(text):
                found["person", _as_given(match.group(), names)] += 1
            text = given.sub(";", text)
        _scan(text, found, at_start)
    for name, times in at_start.items():
        if ("project", name) in found:
            found["project", name] += times
        elif ("person", name) in found:
            found["person", name] += times
    return found


@lru_cache(maxsize=8)
def _known(names: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)


def _as_given(found: str, names: Mapping[str, str]) -> str:
    return next((name for name in names if name.lower() == found.lower()), found)


def _scan(text: str, found: Counter[Entity], at_start: Counter[str]) -> None:
    for name in _LOWER.findall(text):
        if name in TOOLS:
            found["tool", TOOLS[name]] += 1
    for installer in _INSTALLED.finditer(text) if " " in text else ():
        found["package", installer[1].rstrip(".,")] += 1
    end = 0
    for match in _CANDIDATE.finditer(text):
        if match.start() < end:
            continue
        word = match.group().rstrip(_EDGES).lstrip(_LEADING)
        if word.endswith(("'s", "’s")):
            word = word[:-2]
        if not 1 < len(word) <= _LONGEST:
            continue
        if _NAME.fullmatch(word) and word.lower() not in TOOLS:
            end = _named(text, match.start(), match.end(), word, found, at_start)
        else:
            entity = _shaped(word)
            if entity:
                found[entity] += 1


def _shaped(word: str) -> Entity | None:
    """What a word is by its shape alone."""
    tool = TOOLS.get(word.lower())
    if tool:
        return "tool", tool
    if "@" in word and "/" not in word:
        pinned = _PINNED.fullmatch(word)
        if pinned:
            return "package", pinned[1]
        return ("person", word[1:]) if _HANDLE.fullmatch(word) else None
    if "/" in word or "." in word:
        return _file_or_dotted(_LINE_NUMBER.sub("", word))
    if "_" in word:
        return ("identifier", word) if _SNAKE.fullmatch(word) else None
    return ("identifier", word) if _CAMEL.fullmatch(word) else None


def _file_or_dotted(word: str) -> Entity | None:
    if "://" in word:
        return None
    if _SCOPED.fullmatch(word):
        return "package", word
    stem, _, extension = word.rpartition(".")
    is_file = bool(stem or word.startswith(".")) and extension.lower() in EXTENSIONS
    if "/" in word:
        # `and/or` and `feat/login` are no files: a path has an extension, a root or a last slash.
        if _PATH.fullmatch(word) and (is_file or word[0] in "/~." or word[-1] == "/"):
            return "file", word
        return None
    if is_file and not _VERSION.match(stem):
        return "file", word
    if _DOTTED.fullmatch(word) and extension not in DOMAINS and min(map(len, word.split("."))) > 1:
        return "identifier", word
    return None


def _named(
    text: str, start: int, end: int, word: str, found: Counter[Entity], at_start: Counter[str]
) -> int:
    """Count the capitalised name that begins here; where it ends."""
    line = text.rfind("\n", 0, start) + 1
    if word.lower() in NOBODY or text.count("**", line, start) % 2 or _NO_PROSE.match(text, line):
        return end
    before = text[max(0, start - 24) : start].rstrip(" \t*_`\"'([“")
    begins = not before or before[-1] in _BEFORE_A_SENTENCE or before[-1].isdigit()
    name = word
    # Nothing but one blank stands between two words of one name.
    while text[end - 1].isalpha() and (following := _NEXT_NAME.match(text, end)):
        if following[1].lower() in NOBODY:
            break
        name, end = f"{name} {following[1]}", following.end()
    after = _AFTER.match(text, end)
    if (
        word.lower() in PEOPLE
        or (after and after[1] in PERSON_AFTER)
        or (not begins and before.rsplit(None, 1)[-1].lower() in PERSON_BEFORE)
    ):
        found["person", name] += 1
    elif begins:
        at_start[name] += 1
    else:
        found["project", name] += 1
    return end
