"""Which words and forms of speech an exchange holds, and in which place.

Owns: matching whole words, what negation and a question undo, the places (prompt, first, title,
opening, result, closing, ending) and the forms (long, asked, pasted, shouted…).
Never: judges what they mean for a room or a type (weigh).
Called by: derive, extract.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mempalace.mining.reading import Reading, Sentence
from mempalace.mining.vocabulary import FILLER, NEGATABLE, NOT, REPORTS, SIGNALS, STARTS

# Code in backticks, paths and dotted names are one token each, so that `test_bug.py` is no "bug".
_TOKEN = re.compile(r"`[^`\n]*`|\w[\w'-]*(?:[./:]+\w[\w'-]*)*")
_SHOUT = re.compile(
    r"(?<![\w./`-])[A-Z]{2,}(?: [A-Z]{2,}){2,}|[!?]{2,}|\b(?:NO|NOT|YOU|WHY|STOP|WRONG)\b"
)
_PICKS = re.compile(r"\s*(?:ok,?\s+)?(?:option\s+)?(?:[a-dA-D]|\d)\W*$|\d\.\s")
_CARRY_OUT = re.compile(r"\s*implement the following plan", re.IGNORECASE)
_CHORE = re.compile(
    r"""\W*(?:(?:please|ok|okay|yep|yes|yeah|sure|then|and|now|great|good|thanks|can\ you|could\ you
        |let's|lets|never\ mind|also|just)\b\W*)*
    (?:commit|push|merge|rebase|tag|bump|check\ ?out|stage|squash|cherry-pick|check\ origin
        |(?:open|create)\ a\ (?:draft\ )?pr|(?:delete|rename)\ the\ branch)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_TRAILING = " *_\"')`"
_HEAD = 600  # characters of a prompt in which somebody shouts
# What counts as few, many, short, long: quartiles of the 161 exchanges it was tuned on, rounded.
_FEW_WORDS, _MANY_WORDS, _CHORE_WORDS = 4, 60, 25
_SOME_ANSWERS, _MANY_ANSWERS = 5, 15
_SHORT_TALK, _LONG_TALK = 300, 2_500

Index = dict[str, list[tuple[tuple[str, ...], str]]]


@dataclass(frozen=True, slots=True)
class Heard:
    """A sentence and what was heard in it: signal → the words that gave it."""

    sentence: Sentence
    words: list[str]
    signs: dict[str, str]

    @property
    def is_filler(self) -> bool:
        """Does it say nothing on its own?"""
        return len(self.words) <= 8 and all(w in FILLER or w.isdigit() for w in self.words)

    @property
    def is_question(self) -> bool:
        return self.sentence.text.rstrip(_TRAILING).endswith("?")


def _index(lists: dict[str, str]) -> Index:
    index: Index = {}
    for name, phrases in lists.items():
        for phrase in phrases.split("|"):
            first, *rest = phrase.split()
            index.setdefault(first, []).append((tuple(rest), name))
    return index


_ANYWHERE = _index(SIGNALS)
_AT_THE_START = _index(STARTS)


def tokens(text: str) -> list[str]:
    """The words of a text in lower case, code and paths whole."""
    return _TOKEN.findall(text.lower().replace("’", "'"))


def hear(sentence: Sentence) -> Heard:
    """The signals of a sentence, with its words."""
    words = tokens(sentence.text)
    asked = sentence.text.rstrip(_TRAILING).endswith("?")
    return Heard(sentence, words, _signs(words, asked=asked))


def _signs(words: list[str], *, asked: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for rest, name in _AT_THE_START.get(words[0], ()) if words else ():
        if not rest or tuple(words[1 : 1 + len(rest)]) == rest:
            found[name] = " ".join(words[: 1 + len(rest)])
    for at, word in [pair for pair in enumerate(words) if pair[1] in _ANYWHERE]:
        for rest, name in _ANYWHERE[word]:
            if name in found or (asked and name in REPORTS):
                continue
            if rest and tuple(words[at + 1 : at + 1 + len(rest)]) != rest:
                continue
            if name in NEGATABLE and at and not NOT.isdisjoint(words[max(0, at - 3) : at]):
                continue
            found[name] = " ".join((word, *rest))
    return found


def features(reading: Reading, heard: list[Heard]) -> dict[str, str]:
    """`place: signal` → the words that show it, and the forms of speech with empty words."""
    result: dict[str, str] = {}
    prompt = [one for one in heard if one.sentence.answer < 0]
    last = [one for one in heard if one.sentence.last]
    for place, ones in _places(prompt, [one for one in heard if one.sentence.answer == 0], last):
        for one in ones:
            for name, words in one.signs.items():
                result.setdefault(f"{place}: {name}", words)
    for form in _prompt_forms(reading, prompt):
        result[f"prompt: {form}"] = ""
    for form in _answer_forms(reading, last):
        result[f"answers: {form}"] = ""
    return result


def _places(
    prompt: list[Heard], opening: list[Heard], last: list[Heard]
) -> Iterator[tuple[str, list[Heard]]]:
    body = [one for one in prompt if not one.sentence.heading]
    yield "prompt", body[:8] + body[8:][-2:]  # the middle of a long prompt is its details
    yield "title", [one for one in prompt if one.sentence.heading][:1]
    yield "first", prompt[:1]
    yield "opening", opening[:3]
    yield "closing", last[:4] + [one for one in last[4:] if one.sentence.heading]
    yield "result", last[:1]
    yield "ending", last[-2:]


def _prompt_forms(reading: Reading, prompt: list[Heard]) -> Iterator[str]:
    text, words = reading.prompt, reading.prompt_words
    if words <= _FEW_WORDS:
        yield "few words"
    if words >= _MANY_WORDS:
        yield "long"
    if reading.pasted:
        yield "pasted"
    if _CARRY_OUT.match(text):
        yield "plan to carry out"
    if _SHOUT.search(text, 0, _HEAD):
        yield "shouts"
    if _PICKS.match(text):
        yield "picks by number"
    if prompt:
        yield from _sentence_forms(words, prompt)


def _sentence_forms(words: int, prompt: list[Heard]) -> Iterator[str]:
    if prompt[-1].is_question or (len(prompt) < 3 and prompt[0].is_question):
        yield "question"
    if "?" in prompt[0].sentence.text:
        yield "starts with question"
    ends = prompt[:3] + prompt[3:][-2:]
    if words <= _CHORE_WORDS and any(_CHORE.match(one.sentence.text) for one in ends):
        yield "asks a chore"


def _answer_forms(reading: Reading, last: list[Heard]) -> Iterator[str]:
    answers = reading.answers
    length = sum(map(len, answers))
    if len(answers) == 1:
        yield "one"
    if len(answers) >= _SOME_ANSWERS:
        yield "five or more"
    if len(answers) >= _MANY_ANSWERS:
        yield "fifteen or more"
    if length < _SHORT_TALK:
        yield "short"
    if length > _LONG_TALK:
        yield "long"
    if not answers:
        return
    end = answers[-1]
    if last and last[-1].is_question:
        yield "asks back"
    if end.rstrip().endswith(":") or (last and "at work" in last[-1].signs):
        yield "breaks off"
    if any(one.sentence.heading for one in last):
        yield "headings"
