"""A page of AAAK: a header, zettels, tunnels and arcs, as values and as lines of text.

    header   WING|ROOM|DATE|SOURCE, or FILE_NUM|PRIMARY_ENTITY|DATE|TITLE
    zettel   ZID:ENT+ENT|topic_words|"key quote"|WEIGHT|EMOTION+EMOTION|FLAG+FLAG
    tunnel   T:ZID<->ZID|label
    arc      ARC:emotion->emotion->emotion

The number of fields tells the kind of a line: 4, 5 or 6, 2 and 1. A weight nobody gave is left out
with its bar. In quotes, labels and headers a backslash, a bar, a newline and a carriage return are
written `\\\\`, `\\p`, `\\n` and `\\r`, so that a line can be split at its bars and newlines.

Owns: the shapes of AAAK, what is legal in them, and that parse(encode(page)) == page.
Never: looks at a text that is to be compressed.
Called by: mempalace.dialect.encoder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mempalace.dialect.words import EMOTIONS, FLAGS
from mempalace.errors import MemPalaceError

UNKNOWN_ENTITY = "???"
UNKNOWN_TOPIC = "misc"
_MOST_CODES = 3  # emotions, and flags, of a zettel, as AAAK has it

_ZID = re.compile(r"[\w.-]+")
_TOPIC = re.compile(r'[^\s|_"\\]+')
_ESCAPES = {"\\": "\\\\", "|": "\\p", "\n": "\\n", "\r": "\\r"}
_UNESCAPES = {written[1]: plain for plain, written in _ESCAPES.items()}


class NotAAAK(MemPalaceError):
    """A text that is no page. Names the line and what is wrong with it, never its words."""


@dataclass(frozen=True, slots=True)
class Header:
    """Where the zettels come from. For a file: its number, its primary entity, date and title."""

    wing: str = ""
    room: str = ""
    date: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Zettel:
    """One thought: who, what about, in whose words, how it felt and what kind it is."""

    id: str
    entities: tuple[str, ...] = (UNKNOWN_ENTITY,)
    topics: tuple[str, ...] = (UNKNOWN_TOPIC,)
    quote: str = ""
    weight: float | None = None  # 0 to 1
    emotions: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_id(self.id)
        _require(bool(self.entities), "a zettel without an entity (unknown is ???)")
        _require(
            all(is_code(code) or code == UNKNOWN_ENTITY for code in self.entities),
            "an entity that is not three capital letters",
        )
        _require(bool(self.topics), "a zettel without a topic (unknown is misc)")
        _require(all(map(_TOPIC.fullmatch, self.topics)), "a topic that is not one plain word")
        _require(self.weight is None or 0 <= self.weight <= 1, "a weight that is not 0 to 1")
        _require_codes(self.emotions, EMOTIONS, "emotion")
        _require_codes(self.flags, FLAGS, "flag")


@dataclass(frozen=True, slots=True)
class Tunnel:
    """Two zettels that belong together, of one page or of two."""

    one: str
    other: str
    label: str = ""

    def __post_init__(self) -> None:
        _require_id(self.one)
        _require_id(self.other)


@dataclass(frozen=True, slots=True)
class Arc:
    """How the feeling went."""

    emotions: tuple[str, ...]

    def __post_init__(self) -> None:
        _require(bool(self.emotions), "an arc without emotions")
        _require(all(code in EMOTIONS for code in self.emotions), "an unknown emotion")


@dataclass(frozen=True, slots=True)
class Page:
    """A header where there is one, and what follows it."""

    header: Header | None = None
    zettels: tuple[Zettel, ...] = ()
    tunnels: tuple[Tunnel, ...] = ()
    arcs: tuple[Arc, ...] = ()


def is_code(text: str) -> bool:
    """Three capital letters, in any script that has them; digits and letters without case pass."""
    return len(text) == 3 and text.isalnum() and text == text.upper()


def encode(page: Page) -> str:
    """The lines of a page, without a final newline."""
    lines = []
    if page.header:
        lines.append(encode_header(page.header))
    lines += [_encode_zettel(zettel) for zettel in page.zettels]
    lines += [f"T:{t.one}<->{t.other}|{_escaped(t.label)}" for t in page.tunnels]
    lines += ["ARC:" + "->".join(arc.emotions) for arc in page.arcs]
    return "\n".join(lines)


def encode_header(header: Header) -> str:
    """`WING|ROOM|DATE|SOURCE`."""
    return "|".join(map(_escaped, (header.wing, header.room, header.date, header.source)))


def parse(text: str) -> Page:
    """The page that these lines say. Raises NotAAAK; empty lines are passed over."""
    page = Page()
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line:
            continue
        try:
            page = _with_line(page, line)
        except ValueError as error:
            raise NotAAAK(
                f"AAAK, line {number}: {error}",
                "mempalace/dialect/page.py shows what a line looks like",
            ) from error
    return page


def _with_line(page: Page, line: str) -> Page:
    fields = line.split("|")
    match len(fields):
        case 1:
            return replace(page, arcs=(*page.arcs, _arc(line)))
        case 2:
            return replace(page, tunnels=(*page.tunnels, _tunnel(*fields)))
        case 4:
            _require(page == Page(), "a header that is not the first line")
            return replace(page, header=Header(*map(_unescaped, fields)))
        case 5 | 6:
            return replace(page, zettels=(*page.zettels, _zettel(fields)))
        case count:
            raise ValueError(
                f"{count} fields, where an arc has 1, a tunnel 2, a header 4, a zettel 5 or 6"
            )


def _encode_zettel(zettel: Zettel) -> str:
    fields = [
        f"{zettel.id}:{'+'.join(zettel.entities)}",
        "_".join(zettel.topics),
        f'"{_escaped(zettel.quote)}"',
    ]
    if zettel.weight is not None:
        fields.append(repr(float(zettel.weight)))
    return "|".join([*fields, "+".join(zettel.emotions), "+".join(zettel.flags)])


def _zettel(fields: list[str]) -> Zettel:
    head, topics, quote, *weights, emotions, flags = fields
    zid, colon, entities = head.partition(":")
    _require(colon == ":", "a zettel without `:` behind its id")
    quoted = len(quote) >= 2 and quote[0] == quote[-1] == '"'
    _require(quoted, "a key quote that does not stand in quotes")
    return Zettel(
        id=zid,
        entities=tuple(entities.split("+")),
        topics=tuple(topics.split("_")),
        quote=_unescaped(quote[1:-1]),
        weight=_weight(weights[0]) if weights else None,
        emotions=_codes(emotions),
        flags=_codes(flags),
    )


def _weight(field: str) -> float:
    try:
        return float(field)
    except ValueError:
        raise ValueError("a weight that is no number") from None


def _codes(field: str) -> tuple[str, ...]:
    return tuple(field.split("+")) if field else ()


def _tunnel(ends: str, label: str) -> Tunnel:
    _require(ends.startswith("T:"), "two fields that are no tunnel: it begins with `T:`")
    one, arrow, other = ends.removeprefix("T:").partition("<->")
    _require(arrow == "<->", "a tunnel without `<->`")
    return Tunnel(one, other, _unescaped(label))


def _arc(line: str) -> Arc:
    _require(line.startswith("ARC:"), "a line without `|` that is no arc: it begins with `ARC:`")
    return Arc(tuple(line.removeprefix("ARC:").split("->")))


def _escaped(text: str) -> str:
    for plain, written in _ESCAPES.items():  # the backslash is the first
        text = text.replace(plain, written)
    return text


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.?)", _plain, text) if "\\" in text else text


def _plain(match: re.Match[str]) -> str:
    _require(match.group(1) in _UNESCAPES, "a backslash before none of `\\`, `p`, `n` and `r`")
    return _UNESCAPES[match.group(1)]


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _require_id(zid: str) -> None:
    _require(
        _ZID.fullmatch(zid) is not None, "a zettel id that is not of letters, digits, `.` and `-`"
    )


def _require_codes(codes: tuple[str, ...], table: dict[str, frozenset[str]], what: str) -> None:
    _require(len(codes) <= _MOST_CODES, f"more than {_MOST_CODES} {what}s")
    _require(all(code in table for code in codes), f"an unknown {what}")
