"""Drawers become closets: index cards whose lines say what is where.

    topic|entity;entity|→drawer_id,drawer_id
    "quote"|entity|→drawer_id

A **closet window** is seven consecutive drawers, which is 5,000 characters at most: so its lines
depend on whole drawers, it can be found by a drawer's position alone, and every pointer stays true
while the text grows. A closet holds lines of one window only, so that growth rewrites the closets
of the last window and leaves all others as they are, byte for byte.

Topics are the words that the window says most and, by turns, those that stand out: said often in
few of its drawers. So a name said three times at the end of a long talk has a line.

Owns: what a line is, which lines a window has, how lines fill closets (sizes as in MemPalace 3).
Never: opens the palace, finds entities (its caller says how), cuts a line.
Called by: filing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import log
from typing import NamedTuple

from mempalace.dialect import Dialect, Header, Page
from mempalace.dialect.text import clause, decisive, is_technical, stands_in, words
from mempalace.dialect.words import STOP_WORDS
from mempalace.errors import MemPalaceError
from mempalace.mining.chunk import join

DRAWERS_A_WINDOW = 7  # 800 characters and six times 700 fresh ones: 5,000, as in MemPalace 3
CLOSET = 1_500  # characters, as in MemPalace 3; so are the next three
_TOPICS = 12
_QUOTES = 3
_ENTITIES = 5
_POINTERS = 3  # the drawers that hold most of it; more would fill the closet with ids
_LEAST_TOPICS = 3  # a short window has fewer topics: …
_CHARACTERS_A_TOPIC = 250  # … one more for each of these
_LEAST_LETTERS = 3
_LONGEST = 60  # characters of a topic or an entity
_QUOTE = 160  # characters of a quote
_LEAST_QUOTE_WORDS = 4
_LEAST_WEIGHT = 2  # a `because` alone settles nothing
_TECHNICAL = 1.25  # what a technical term weighs more than a word of prose
_ENTITY = 1.5
_OFTEN = 5  # times: what is said more often stands out no more for that
_STRUCTURE = frozenset('|;→"\n\r')  # no topic, entity or quote that is taken has one of these

EntitiesIn = Callable[[str], Sequence[str]]


class NotALine(MemPalaceError):
    """What was read is no line of a closet. Never carries its words."""


class Drawer(NamedTuple):
    """A window of the text: where it starts and what it holds."""

    id: str
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """What is said, about whom, and the ids of the drawers that hold it."""

    words: str  # a topic or a quote, as it stands in the drawers
    entities: tuple[str, ...]
    drawers: tuple[str, ...]
    is_quote: bool = False

    def __str__(self) -> str:
        said = f'"{self.words}"' if self.is_quote else self.words
        return f"{said}|{';'.join(self.entities)}|→{','.join(self.drawers)}"


@dataclass(frozen=True, slots=True)
class Closet:
    """Lines of one window, 1,500 characters at most."""

    window: int
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        return "\n".join(map(str, self.lines))


def window_of(position: int) -> int:
    """The window that the drawer at this position belongs to."""
    return position // DRAWERS_A_WINDOW


def closets_of(
    drawers: Sequence[Drawer],
    entities_in: EntitiesIn,
    *,
    window: int = 0,
    before: Sequence[Drawer] = (),
) -> list[Closet]:
    """The closets of these drawers, the first of which is the first of `window`.

    A text that grew needs no more than the drawers of the window that was its last, and `before`:
    the up to six drawers that come before it. Its older closets are as they would be built now.
    """
    closets: list[Closet] = []
    earlier = list(before)
    for begin in range(0, len(drawers), DRAWERS_A_WINDOW):
        held = drawers[begin : begin + DRAWERS_A_WINDOW]
        lines = window_lines(held, entities_in, before=earlier)
        closets += [Closet(window, packed) for packed in pack(lines)]
        earlier = list(held)
        window += 1
    return closets


def window_lines(
    drawers: Sequence[Drawer], entities_in: EntitiesIn, *, before: Sequence[Drawer] = ()
) -> list[Line]:
    """The lines of one window: topics, the weightiest first, then quotes.

    `before` are the drawers that come before it. A window with fewer than seven of its own is
    compared with as many of them as make seven.
    """
    if not drawers:
        return []
    text = join([(drawer.start - drawers[0].start, drawer.text) for drawer in drawers])
    lows = [drawer.text.lower() for drawer in drawers]
    named = _Named(text, lows, entities_in)
    short = DRAWERS_A_WINDOW - len(drawers)
    background = [
        Counter(map(str.lower, found)) for found in _fresh_words(before[-short:] if short else ())
    ]
    topics = _topics(drawers, lows, named, background, most=_most_topics(len(text)))
    return [*topics, *_quotes(drawers, text, named)]


def pack(lines: Iterable[Line]) -> Iterator[tuple[Line, ...]]:
    """Lines fill closets from the front; a line that does not fit opens the next one."""
    held: list[Line] = []
    size = 0
    for line in lines:
        length = len(str(line)) + 1  # the newline before it, or the one it does not need
        if held and size + length > CLOSET + 1:
            yield tuple(held)
            held, size = [], 0
        held.append(line)
        size += length
    if held:
        yield tuple(held)


def parse_line(text: str) -> Line:
    """The line that this is. Raises NotALine."""
    fields = text.split("|")
    if len(fields) != 3:
        raise NotALine(f"a closet's line has 3 fields, not {len(fields)}")
    said, entities, pointers = fields
    if not said or not pointers.startswith("→") or not all(pointers[1:].split(",")):
        raise NotALine("a closet's line begins with what is said and ends with →drawer_id")
    is_quote = len(said) > 2 and said[0] == said[-1] == '"'
    return Line(
        words=said[1:-1] if is_quote else said,
        entities=tuple(entities.split(";")) if entities else (),
        drawers=tuple(pointers[1:].split(",")),
        is_quote=is_quote,
    )


def closet_header(closet: Closet, number: int, date: str, dialect: Dialect) -> str:
    """`0|KAI|2026-01-31|graphql, rest`: an AAAK header, to be read at a glance.

    It has neither wing nor room, because a wing can be renamed without touching a closet.
    """
    entities = Counter(name for line in closet.lines for name in line.entities)
    primary = entities.most_common(1)
    topics = [line.words for line in closet.lines if not line.is_quote][:_LEAST_TOPICS]
    header = Header(
        str(number),
        dialect.code(primary[0][0]) if primary else "???",
        date,
        ", ".join(topics) or closet.lines[0].words,
    )
    return Dialect.encode(Page(header))


class _Named:
    """The entities of a window, and which of its drawers name them."""

    def __init__(self, text: str, lows: Sequence[str], entities_in: EntitiesIn) -> None:
        names = dict.fromkeys(entities_in(text))
        lower = {name: name.lower() for name in names if _is_plain(name)}
        self.lower = frozenset(lower.values())
        self._in_drawer = [
            [name for name, low_name in lower.items() if stands_in(low, low_name)] for low in lows
        ]
        self._order = {name: index for index, name in enumerate(lower)}

    def of(self, indexes: Iterable[int], but: str = "") -> tuple[str, ...]:
        """Those that these drawers name and the topic does not, in the caller's order."""
        found = {name for index in indexes for name in self._in_drawer[index]}
        ordered = sorted(found, key=self._order.__getitem__)
        return tuple([name for name in ordered if name.lower() not in but][:_ENTITIES])

    def of_quote(self, quote: str, index: int) -> tuple[str, ...]:
        """The one that the quote names, else the first of its drawer."""
        names = self._in_drawer[index]
        low = quote.lower()
        return tuple([name for name in names if stands_in(low, name.lower())][:1] or names[:1])


def _is_plain(words: str) -> bool:
    return 0 < len(words) <= _LONGEST and _STRUCTURE.isdisjoint(words)


def _most_topics(size: int) -> int:
    return min(_TOPICS, _LEAST_TOPICS + size // _CHARACTERS_A_TOPIC)


def _fresh_words(drawers: Sequence[Drawer]) -> list[list[str]]:
    """The words of each drawer without the overlap with the one before, so that each counts once.

    The first drawer may begin inside a word; that piece is no word.
    """
    if not drawers:
        return []
    found = []
    end = drawers[0].start
    for drawer in drawers:
        found.append(words(drawer.text[end - drawer.start :]))
        end = drawer.start + len(drawer.text)
    if drawers[0].start and found[0] and not drawers[0].text[0].isspace():
        del found[0][0]
    return found


def _topics(
    drawers: Sequence[Drawer],
    lows: Sequence[str],
    named: _Named,
    background: Sequence[Mapping[str, int]],
    *,
    most: int,
) -> list[Line]:
    fresh = _fresh_words(drawers)
    spelled: dict[str, str] = {}  # the commonest spelling of each word
    for word, _ in Counter(chain.from_iterable(fresh)).most_common():
        spelled.setdefault(word.lower(), word)
    counts = [Counter(map(str.lower, found)) for found in fresh]
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    ranked = _ranked(total, [*counts, *background], spelled, named.lower)
    phrases = _phrases(fresh, total)
    lines: list[Line] = []
    said: set[str] = set()
    for word in ranked:
        if len(lines) == most:
            break
        if word in said:
            continue
        phrase, parts = phrases.get(word, (word, (word,)))
        line = _topic_line(phrase, spelled, drawers, lows, counts, named)
        if line is None and phrase != word:  # the two words stand side by side, but not like this
            line, parts = _topic_line(word, spelled, drawers, lows, counts, named), (word,)
        if line is not None:
            lines.append(line)
            said.update(parts)
    return lines


def _ranked(
    own: Iterable[str],
    compared: Sequence[Mapping[str, int]],
    spelled: Mapping[str, str],
    entities: Container[str],
) -> list[str]:
    """The words that may be topics: what is said most, and what stands out, by turns.

    What stands out is said often, up to a point, in few of the drawers that are `compared`.
    """
    said: Counter[str] = Counter()
    held: Counter[str] = Counter()  # in how many drawers each word stands
    for counts in compared:
        said.update(counts)
        held.update(counts.keys())
    rare = [log((len(compared) + 1) / (n + 0.5)) for n in range(len(compared) + 1)]
    most: dict[str, float] = {}
    out: dict[str, float] = {}
    for word in own:
        if word in STOP_WORDS or not _LEAST_LETTERS <= len(word) <= _LONGEST:
            continue
        weight = -1.0  # sorted() keeps equal ones as they were said, but not in reverse
        if is_technical(spelled[word]):
            weight *= _TECHNICAL
        if word in entities:
            weight *= _ENTITY
        most[word] = weight * said[word]
        out[word] = weight * min(said[word], _OFTEN) * rare[held[word]]
    turns = zip(sorted(most, key=most.__getitem__), sorted(out, key=out.__getitem__), strict=True)
    return list(dict.fromkeys(chain.from_iterable(turns)))


def _phrases(
    fresh: Sequence[Sequence[str]], total: Mapping[str, int]
) -> dict[str, tuple[str, tuple[str, ...]]]:
    """word → (the two words that it mostly stands in, and those which that speaks for)."""
    pairs = Counter(pair for found in fresh for pair in pairwise(map(str.lower, found)))
    phrases: dict[str, tuple[str, tuple[str, ...]]] = {}
    for (one, other), count in pairs.most_common():
        if count == 1:
            break
        if one == other or one in STOP_WORDS or other in STOP_WORDS:
            continue
        phrase = f"{one} {other}"
        if len(phrase) <= _LONGEST:
            parts = tuple(word for word in (one, other) if 2 * count >= total[word])
            for word in parts:
                phrases.setdefault(word, (phrase, parts))
    return phrases


def _topic_line(
    topic: str,
    spelled: Mapping[str, str],
    drawers: Sequence[Drawer],
    lows: Sequence[str],
    counts: Sequence[Mapping[str, int]],
    named: _Named,
) -> Line | None:
    """The line of a word or a phrase; None where no drawer holds it as it would be written."""
    if " " in topic:
        held = [low.count(topic) for low in lows]
        written = _spelling(topic, drawers, lows)
    else:
        held = [count.get(topic, 0) for count in counts]
        written = spelled[topic]
    low = written.lower()
    indexes = [index for index, times in enumerate(held) if times and low in lows[index]]
    if not indexes or not _is_plain(written):
        return None
    indexes.sort(key=lambda index: -held[index])
    indexes = indexes[:_POINTERS]
    return Line(written, named.of(indexes, but=low), tuple(drawers[i].id for i in indexes))


def _spelling(topic: str, drawers: Sequence[Drawer], lows: Sequence[str]) -> str:
    """A phrase as it is spelled where it first stands."""
    for drawer, low in zip(drawers, lows, strict=True):
        at = low.find(topic)
        if at >= 0:
            written = drawer.text[at : at + len(topic)]
            if written.lower() == topic:  # false behind a letter that is longer in lower case
                return written
    return topic


def _quotes(drawers: Sequence[Drawer], text: str, named: _Named) -> list[Line]:
    """The most decision-like sentences that stand in one drawer as a whole."""
    base = drawers[0].start
    lines: dict[str, Line] = {}
    for sentence in decisive(text):
        if len(lines) == _QUOTES or sentence.weight < _LEAST_WEIGHT:
            break
        span = clause(text, sentence, _QUOTE)
        if span is None:
            continue
        quote = text[span[0] : span[1]]
        index = _holding(drawers, base + span[0], base + span[1])
        enough = len(quote.split()) >= _LEAST_QUOTE_WORDS
        if index is not None and enough and _STRUCTURE.isdisjoint(quote):
            entities = named.of_quote(quote, index)
            lines.setdefault(quote, Line(quote, entities, (drawers[index].id,), is_quote=True))
    return list(lines.values())


def _holding(drawers: Sequence[Drawer], start: int, end: int) -> int | None:
    for index, drawer in enumerate(drawers):
        if drawer.start <= start and end <= drawer.start + len(drawer.text):
            return index
    return None
