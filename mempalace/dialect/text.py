"""What the dialect sees in a text: its words, its sentences, and which of them settles something.

Owns: what a word and a sentence are here, and how like a decision a sentence is.
Never: changes a character; a sentence is given as a slice of its text.
Called by: mempalace.dialect.encoder, mempalace.mining.closets.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from mempalace.dialect.words import CLAUSE_BREAKS, DECISION_MARKERS

# `config.yaml`, `src/auth`, `schema-first` and `user_id` are a word each; `don't` ends at its `'`.
_WORD = re.compile(r"[^\W\d_]\w*(?:[-./]\w+)*")
# Chinese and Japanese have no blanks between words. Han characters between the commonest function
# words are taken for words, and runs of katakana; hiragana is mostly grammar.
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_FUNCTION_WORDS = "的了是在和我你他她们这那有不就也都吗呢把被与及或而但很会要能可以个么什为对从到说"
_MIXED_WORD = re.compile(
    rf"(?:(?![{_FUNCTION_WORDS}])[\u3400-\u9fff]){{2,8}}|[\u30a0-\u30ff]{{2,16}}"
    r"|(?:(?![\u3040-\u30ff\u3400-\u9fff])[^\W\d_])"
    r"(?:(?![\u3040-\u30ff\u3400-\u9fff])\w)*(?:[-./][A-Za-z0-9_]+)*"
)
_TECHNICAL = re.compile(r"[a-z][A-Z]|[A-Z]{2}|\w[\d_./]")

# A sentence ends at a newline, or at its mark where a blank follows.
_END = re.compile(r"""\n|[.!?…]+["'”’)\]*_`]*(?=\s|$)|[。！？]""")
_LEADING = re.compile(r"\s*(?:(?:[>#*+•-]+|\d{1,2}[.)])\s+)*[*_`\"'(\[]*")
_TRAILING = " \t\r\n.*_`\"'”’)]:,;"
_CODE_MARKS = re.compile(r"[{}<>|\\=`]|\w\(|://|;$")  # a sentence with one of these is code
_FENCE = re.compile(r"^ *(?:```|~~~).*?(?:^ *(?:```|~~~)|\Z)", re.DOTALL | re.MULTILINE)
_UNSETTLED = 0.25  # what a question or an announcement weighs, next to a plain statement
_ANNOUNCES = ("let me ", "now let me ", "i'll ", "i will ", "i'm going to ")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A slice of a text: where it is, how decision-like, and where its first marker stands."""

    start: int
    end: int
    weight: float = 0.0
    marker: int = -1


def words(text: str) -> list[str]:
    """The words of a text in order, as they are spelled."""
    if text.isascii() or not _IDEOGRAPH.search(text):
        return _WORD.findall(text)
    return _MIXED_WORD.findall(text)


def is_technical(word: str) -> bool:
    """`GraphQL`, `REST`, `user_id`, `config.yaml`, `utf8`: no prose is spelled like this."""
    return not (word.islower() and word.isalpha()) and _TECHNICAL.search(word) is not None


def lower(text: str) -> str:
    """The text in lower case, each character in its place (`İ` would become two)."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(c if len(c.lower()) != 1 else c.lower() for c in text)


def sentences(text: str) -> list[Sentence]:
    """All sentences of a text without their marks and bullets; code has none."""
    fences = _fences(text)
    spans = pairwise([0, *_ends(text)])
    found = (_sentence(text, start, end, fences) for start, end in spans)
    return [sentence for sentence in found if sentence]


def decisive(text: str) -> list[Sentence]:
    """The sentences that sound like a decision, a finding or a rule; the strongest first."""
    hits = sorted(_markers(lower(text)))
    if not hits:
        return []
    ends = _ends(text)
    fences = _fences(text)
    weights: dict[int, int] = {}
    markers: dict[int, int] = {}
    for at, weight in hits:
        index = bisect_right(ends, at)
        weights[index] = weights.get(index, 0) + weight
        markers.setdefault(index, at)
    found = []
    for index, weight in weights.items():
        sentence = _sentence(text, ends[index - 1] if index else 0, ends[index], fences)
        if sentence:
            settled = weight * (_UNSETTLED if _is_unsettled(text, sentence) else 1)
            found.append(replace(sentence, weight=settled, marker=markers[index]))
    return sorted(found, key=lambda sentence: (-sentence.weight, sentence.start))


def clause(text: str, sentence: Sentence, limit: int) -> tuple[int, int] | None:
    """The sentence, or the longest clause around its marker, where that has at most `limit`."""
    start, end = sentence.start, sentence.end
    if end - start <= limit:
        return start, end
    stops, begins = [end], [start]
    for mark in CLAUSE_BREAKS:
        at = text.find(mark, start, end)
        while at >= 0:
            stops.append(at)
            begins.append(at + len(mark))
            at = text.find(mark, at + 1, end)
    marker = max(sentence.marker, start)
    for begin in sorted(begin for begin in begins if begin <= marker):
        fitting = [stop for stop in stops if marker < stop <= begin + limit]
        if fitting:
            return begin, max(fitting)
    return None


def _ends(text: str) -> list[int]:
    """Where the sentences end, the last at the end of the text."""
    return [*(match.end() for match in _END.finditer(text)), len(text)]


def _fences(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _FENCE.finditer(text)] if "```" in text else []


def _sentence(text: str, start: int, end: int, fences: list[tuple[int, int]]) -> Sentence | None:
    """What stands between two ends, without marks and bullets; None where that is no sentence."""
    leading = _LEADING.match(text, start, end)
    start = leading.end() if leading else start
    while end > start and text[end - 1] in _TRAILING:
        end -= 1
    if end == start or _CODE_MARKS.search(text, start, end):
        return None
    if any(begin <= start < close for begin, close in fences):
        return None
    return Sentence(start, end)


def _is_unsettled(text: str, sentence: Sentence) -> bool:
    head = text[sentence.start : sentence.start + 16].lower()
    return text[sentence.end - 1] in "?？" or head.startswith(_ANNOUNCES)


def stands_in(low: str, phrase: str) -> bool:
    """Is the phrase there as whole words? Both are in lower case."""
    return next(_places(low, phrase), None) is not None


def _markers(low: str) -> Iterator[tuple[int, int]]:
    """(position, weight) of each marker. `find` for each is faster than one pattern."""
    for marker, weight in DECISION_MARKERS.items():
        for at in _places(low, marker):
            yield at, weight


def _places(low: str, phrase: str) -> Iterator[int]:
    at = low.find(phrase)
    while at >= 0:
        after = at + len(phrase)
        if not _is_letter(low[at - 1 : at]) and not _is_letter(low[after : after + 1]):
            yield at
        at = low.find(phrase, after)


def _is_letter(neighbour: str) -> bool:
    """Does a word go on here? Ideographs stand beside each other without belonging together."""
    return neighbour.isalnum() and not _IDEOGRAPH.match(neighbour)
