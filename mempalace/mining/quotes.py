"""The key sentence of an exchange: what a person would quote of it a year later.

Owns: which sentences may be quoted, what speaks for and against each, how neighbours are joined.
Never: changes a character of what is quoted, quotes code, a log or a quotation.
Called by: derive.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mempalace.mining.reading import Reading, Sentence
from mempalace.mining.signals import Heard
from mempalace.mining.vocabulary import words
from mempalace.mining.weights import SENTENCE

LONGEST = 200  # characters of a moment in the essential story
_FALL = 0.6  # how fast the share of a sentence falls with its score
# Between two sentences of one quotation nothing may stand but blanks and marks of emphasis.
_GAP = re.compile(r"[\s*_]*\Z")
_CODE = re.compile(r"`|[a-z][A-Z]|\w_\w|\w\(\)")
_ORDINALS = ("1st", "2nd", "3rd", "4th")
_COMMON = words(
    "about after again also because been before being both could does done each from have here "
    "into just like make more most need only other should some such than that their them then "
    "there these they this those very want were what when where which while will with would your"
)
_POINTING = words("this it that these those they them there")
# For these types the person's own words are the moment.
_SAID_BY_PEOPLE = ("decision", "preference")


@dataclass(frozen=True, slots=True)
class Quote:
    """A slice of a text of the exchange, and what spoke for it."""

    text: str
    why: str


def key_sentence(reading: Reading, heard: Sequence[Heard], memory_type: str) -> Quote:
    """The best quotation of at most 200 characters; empty where nothing may be quoted."""
    scores, traits = [], []
    for marks in _all_traits(reading, heard, memory_type):
        scores.append(sum(SENTENCE.get(mark, 0.0) * much for mark, much in marks.items()))
        traits.append(marks)
    if not scores:
        return Quote("", "")
    top = max(scores)
    shares = [math.exp(_FALL * (score - top)) for score in scores]
    best, best_share, best_text = -1, 0.0, ""
    for first, end, share in _windows(reading, heard, shares):
        if share > best_share:
            text = _text_of(reading, heard[first].sentence)[heard[first].sentence.start : end]
            if text:
                best, best_share, best_text = first, share, text
    if best < 0:
        return Quote("", "")
    speaks = sorted(
        ((SENTENCE.get(mark, 0.0) * much, mark) for mark, much in traits[best].items()),
        reverse=True,
    )
    return Quote(best_text, ", ".join(mark for weight, mark in speaks[:3] if weight > 0))


def _text_of(reading: Reading, sentence: Sentence) -> str:
    return reading.prompt if sentence.answer < 0 else reading.answers[sentence.answer]


def _windows(
    reading: Reading, heard: Sequence[Heard], shares: Sequence[float]
) -> Iterator[tuple[int, int, float]]:
    """`(first sentence, end of the text, summed share)` of everything that may be quoted."""
    for first, one in enumerate(heard):
        begin, end = one.sentence.start, one.sentence.start + len(one.sentence.text)
        text = _text_of(reading, one.sentence)
        if end - begin > LONGEST:
            cut = text.rfind(" ", begin, begin + LONGEST + 1)
            if cut > begin:
                yield first, begin + len(text[begin:cut].rstrip()), shares[first]
            continue
        share = shares[first]
        yield first, end, share
        if one.sentence.heading:
            continue
        for nth in range(first + 1, len(heard)):
            following = heard[nth].sentence
            stop = following.start + len(following.text)
            if (
                following.answer != one.sentence.answer
                or following.heading
                or stop - begin > LONGEST
                or not _GAP.match(text, end, following.start)
            ):
                break
            end, share = stop, share + shares[nth]
            yield first, end, share


def _all_traits(
    reading: Reading, heard: Sequence[Heard], memory_type: str
) -> Iterator[dict[str, float]]:
    rare = [{word for word in one.words if len(word) > 3 and word not in _COMMON} for one in heard]
    spread = Counter(word for telling in rare for word in telling)
    position: dict[int, int] = {}
    for one, telling in zip(heard, rare, strict=True):
        nth = position.get(one.sentence.answer, 0)
        position[one.sentence.answer] = nth + (not one.is_filler)
        marks = _traits(one, nth, reading, memory_type)
        # A sentence whose rare words come back elsewhere is what the exchange is about.
        marks["what it is about"] = (
            2 * sum(spread[word] > 1 for word in telling) / (len(telling) + 2)
        )
        yield marks


def _traits(one: Heard, nth: int, reading: Reading, memory_type: str) -> dict[str, float]:
    side = "prompt" if one.sentence.answer < 0 else "answer"
    marks = {f"{side}: {name}": 1.0 for name in one.signs}
    if one.sentence.answer < 0:
        marks.update(dict.fromkeys(_in_prompt(one, nth, reading, memory_type), 1.0))
    else:
        marks.update(dict.fromkeys(_in_answer(one, nth), 1.0))
    marks.update(dict.fromkeys(_form(one, side), 1.0))
    if "heading" in marks or "colon" in marks or len(one.sentence.text) < 40:
        marks.pop("answer: label", None)  # it announces, and does not tell
    return marks


def _in_prompt(one: Heard, nth: int, reading: Reading, memory_type: str) -> Iterator[str]:
    sentence = one.sentence
    yield f"prompt: {'said by people' if memory_type in _SAID_BY_PEOPLE else memory_type}"
    yield f"prompt: {_ORDINALS[nth] if nth < len(_ORDINALS) else 'later'}"
    if sentence.heading and nth < 2:
        yield "prompt: title of a plan"
    if reading.prompt_words <= 6:
        yield "prompt: brief"
    if len(one.words) <= 9 and not _POINTING.isdisjoint(one.words):
        yield "prompt: points"


def _in_answer(one: Heard, nth: int) -> Iterator[str]:
    if one.sentence.last:
        yield "answer: last"
        if nth < 3:
            yield f"answer: {_ORDINALS[nth]}"
    elif one.sentence.answer == 0:
        yield "answer: opening"


def _form(one: Heard, side: str) -> Iterator[str]:
    text = one.sentence.text
    if one.is_filler:
        yield "filler"
    if one.is_question:
        yield f"{side}: question"
    if one.sentence.heading:
        yield "heading"
    if one.sentence.item:
        yield f"{side}: item"
    if text.rstrip("*").endswith(":"):
        yield "colon"
    if _CODE.search(text):
        yield f"{side}: code words"
    if 3 * sum(map(str.isalpha, one.words)) < 2 * len(one.words):
        yield "mostly code"
    if len(text) < 25:
        yield "very short"
