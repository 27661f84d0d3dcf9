"""A text becomes a page of AAAK, and how much shorter that is gets measured.

Owns: how a text is cut into zettels and what each of them says.
Never: claims a ratio that was not measured.
Called by: mempalace.dialect.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mempalace.dialect import entities as naming
from mempalace.dialect import page as pages
from mempalace.dialect.page import UNKNOWN_ENTITY, UNKNOWN_TOPIC, Arc, Header, Page, Tunnel, Zettel
from mempalace.dialect.text import Sentence, clause, decisive, is_technical, sentences, words
from mempalace.dialect.words import EMOTIONS, FLAGS, STOP_WORDS

_PIECE = 2_000  # characters a zettel, at most; cut where a paragraph or a line ends
_QUOTE = 79  # characters: AAAK asks for less than 80
_LEAST_QUOTE_WORDS = 3
_ENTITIES = 3
_LONGEST_TOPIC = 30  # characters: a path or an address is no topic word
_TOPICS = 3  # as in the worked example of AAAK
_CODES = 3
_BOOST = 2  # what a proper noun or a technical term counts more than a word of prose
_CHARACTERS_A_TOKEN = 4  # as everywhere in MemPalace
_SUBJECTS = ("we ", "i ", "we've ", "i've ", "we have ", "i have ")

_EMOTION_OF = {word: code for code, table in EMOTIONS.items() for word in table}
_FLAGS_OF: dict[str, list[str]] = {}
for _flag, _table in FLAGS.items():
    for _word in _table:
        _FLAGS_OF.setdefault(_word, []).append(_flag)


@dataclass(frozen=True, slots=True)
class Ratio:
    """What was measured, in tokens of four characters; half a token is one."""

    original: int
    compressed: int

    @property
    def ratio(self) -> float:
        """How many times shorter; 0 where nothing was compressed."""
        return self.original / self.compressed if self.compressed else 0.0

    def __add__(self, other: Ratio) -> Ratio:
        return Ratio(self.original + other.original, self.compressed + other.compressed)

    def __str__(self) -> str:
        shorter = f"{self.ratio:.1f}:1" if self.compressed else "nothing to compress"
        return f"{self.original:,} → {self.compressed:,} tokens, {shorter}"


def tokens(text: str) -> int:
    """Characters / 4, rounded up."""
    return -(-len(text) // _CHARACTERS_A_TOKEN)


class Dialect:
    """Speaks AAAK. `entities` gives names their codes; other names get one by rule."""

    def __init__(
        self, entities: Mapping[str, str] | None = None, *, skip_names: Iterable[str] = ()
    ) -> None:
        given = dict(entities or {})
        naming.check_codes(given)
        self._names = naming.Names(given, frozenset(skip_names))

    @classmethod
    def from_config(cls, path: str | os.PathLike[str]) -> Dialect:
        """A dialect with the codes of an entities.json. Raises BadConfig."""
        codes, skipped = naming.read_config(path)
        return cls(codes, skip_names=skipped)

    def code(self, name: str) -> str:
        """The three letters that stand for a name; `???` where there are none."""
        return self._names.code(name)

    def compress(
        self,
        text: str,
        metadata: Mapping[str, object] | None = None,
        *,
        tunnels: Sequence[Tunnel] = (),
        arcs: Sequence[Arc] = (),
    ) -> str:
        """The text as lines of AAAK; a header where `metadata` names wing, room, date or source."""
        page = Page(
            header=_header(metadata or {}),
            zettels=tuple(self._zettel(n, piece) for n, piece in enumerate(_pieces(text))),
            tunnels=tuple(tunnels),
            arcs=tuple(arcs),
        )
        return self.encode(page)

    @staticmethod
    def encode(page: Page) -> str:
        """A page as lines, without a final newline."""
        return pages.encode(page)

    @staticmethod
    def parse(text: str) -> Page:
        """The page that these lines say. Raises NotAAAK, which names the line and the reason."""
        return pages.parse(text)

    @staticmethod
    def measure(text: str, compressed: str) -> Ratio:
        """How much shorter `compressed` really is."""
        return Ratio(tokens(text), tokens(compressed))

    def _zettel(self, number: int, text: str) -> Zettel:
        found = words(text)
        names = self._names.in_text(text)
        shown = names[:_ENTITIES]
        topics = _topics(found, names=frozenset(names), shown=frozenset(shown))
        codes = dict.fromkeys(map(self.code, shown))  # two names may share one
        return Zettel(
            id=str(number),
            entities=tuple(codes) or (UNKNOWN_ENTITY,),
            topics=topics or (UNKNOWN_TOPIC,),
            quote=_key_quote(text, topics),
            emotions=_emotions(found),
            flags=_flags(found),
        )


def _header(metadata: Mapping[str, object]) -> Header | None:
    header = Header(*(str(metadata.get(name) or "") for name in ("wing", "room", "date", "source")))
    return None if header == Header() else header


def _pieces(text: str) -> list[str]:
    """Parts of at most 2,000 characters that hold a word."""
    pieces = []
    begin = 0
    while len(text) - begin > _PIECE:
        end = begin + _PIECE
        for separator in ("\n\n", "\n", " "):
            found = text.rfind(separator, begin + _PIECE // 2, end)
            if found >= 0:
                end = found + len(separator)
                break
        pieces.append(text[begin:end])
        begin = end
    return [piece for piece in [*pieces, text[begin:]] if piece.strip()]


def _topics(found: list[str], *, names: frozenset[str], shown: frozenset[str]) -> tuple[str, ...]:
    """By frequency, stop words left out, technical terms and proper nouns boosted."""
    parts = {part for name in shown for part in name.lower().split()}  # the entities say them
    scores: Counter[str] = Counter()
    for word, count in Counter(found).items():
        topic = word.lower()
        if 3 <= len(topic) <= _LONGEST_TOPIC and topic not in STOP_WORDS and topic not in parts:
            boosted = is_technical(word) or word in names
            scores[topic] += count + (_BOOST if boosted else 0)
    return tuple(topic.replace("_", "-") for topic, _ in scores.most_common(_TOPICS))


def _key_quote(text: str, topics: Sequence[str]) -> str:
    """The most decision-like sentence under 80 characters, verbatim; else the one most on topic."""
    for sentence in decisive(text):
        span = clause(text, sentence, _QUOTE)
        if span is not None:
            quote = text[span[0] : span[1]]
            return _without_subject(quote, sentence.marker - span[0])
    fitting = [
        sentence
        for sentence in sentences(text)
        if sentence.end - sentence.start <= _QUOTE
        and len(text[sentence.start : sentence.end].split()) >= _LEAST_QUOTE_WORDS
    ]
    if not fitting:
        return ""

    def on_topic(sentence: Sentence) -> int:
        said = {word.lower() for word in words(text[sentence.start : sentence.end])}
        return len(said.intersection(topics))

    best = max(fitting, key=on_topic)
    return text[best.start : best.end]


def _without_subject(quote: str, marker: int) -> str:
    """`We decided …` says no more than `decided …`."""
    head = quote[: max(marker, 0)].lower()
    return quote[marker:] if head in _SUBJECTS else quote


def _emotions(found: list[str]) -> tuple[str, ...]:
    felt = Counter(_EMOTION_OF[low] for word in found if (low := word.lower()) in _EMOTION_OF)
    return tuple(code for code, _ in felt.most_common(_CODES))


def _flags(found: list[str]) -> tuple[str, ...]:
    """The three that most words call for, in the order of the table."""
    called: Counter[str] = Counter()
    for word in found:
        called.update(_FLAGS_OF.get(word.lower(), ()))
        called.update(("TECHNICAL",) if is_technical(word) else ())
    strongest = [flag for flag, _ in called.most_common(_CODES)]
    return tuple(flag for flag in FLAGS if flag in strongest)
