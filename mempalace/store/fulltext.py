"""Words that the full-text index can find, in scripts without spaces and where scripts touch.

Owns: the `segments` column and how a question is put to FTS5 so that both meet.
Never: ranks (mempalace.search does).
Called by: filing, when a drawer is written; mempalace.search, when a question is asked.

FTS5's unicode61 takes a run of Chinese or Thai for one word, and its trigram tokenizer costs 2.5
times the disk and finds nothing shorter than three characters; so such runs are stored a second
time, cut into overlapping pairs. The last character of a run stands alone, so that one character
finds it too (as a prefix).

A Latin word or a number that touches such a run, or a letter of another script, is part of one
long word as well. Such words are stored a second time beside the pairs, in order and with what
punctuation joins to them, so that `src/app.ts` is the same phrase there. So are words that a
question may spell in another way: full-width forms, and `ё` as `е`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# Han, kana, Hangul, Thai, Lao, Myanmar, Khmer, and their extensions and half-width forms.
_UNSEGMENTED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_LATIN = "0-9A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_PRIVATE = "\ue000-\uf8ff"  # unicode61 counts them as letters; icons of terminals are among them
_MARKS = dict.fromkeys(range(0x300, 0x370))  # what unicode61 skips inside a word
_SAME = {ord("ё"): "е", ord("Ё"): "Е", **_MARKS}
_QUOTED = re.compile(r'(?<![^\s(])["“]([^"“”]*\s[^"“”]*)["”](?=[.,;:!?)]*(?:\s|$))')
_ANY_WORD = re.compile(r"[^\W_]+")
_ASCII_WORD = re.compile("[0-9A-Za-z]+")


@cache
def _run() -> re.Pattern[str]:
    """Parts a text into what stands between runs, and the runs. Costs milliseconds: only when
    needed."""
    return re.compile(f"([{_UNSEGMENTED}]+)")


@cache
def _word() -> re.Pattern[str]:
    """A word of one script, outside of runs."""
    return re.compile(f"[{_LATIN}]+|(?:(?![{_LATIN}])[^\\W_])+")


@cache
def _glued() -> re.Pattern[str]:
    """Where unicode61 goes on with a word although another script begins."""
    return re.compile(
        f"[{_LATIN}](?:(?![{_LATIN}])[^\\W_])|(?:(?![{_LATIN}])[^\\W_])[{_LATIN}]|[{_PRIVATE}]"
    )


def segments(text: str) -> str | None:
    """The second spelling of `text`: the pairs of its runs and the words that are glued to
    something; None where it needs none."""
    if text.isascii():
        return None
    found: list[str] = []
    for chunk in text.split():
        if not chunk.isascii():
            found += _second_spelling(chunk)
    return " ".join(found) or None


def _second_spelling(chunk: str) -> list[str]:
    found: list[str] = []
    plain = plain_form(chunk)
    is_respelled = plain != chunk and _ANY_WORD.findall(plain) != _ANY_WORD.findall(chunk)
    pieces = _run().split(plain)
    for number, piece in enumerate(pieces):
        if number % 2:
            found += _pairs(piece)
            continue
        touches = (number > 0 and piece[:1].isalnum()) or (
            number < len(pieces) - 1 and piece[-1:].isalnum()
        )
        if is_respelled or touches or (not piece.isascii() and _glued().search(piece)):
            found += _word().findall(piece)
    return found


def plain_form(text: str) -> str:
    """One spelling for what people hold for the same: full-width and half-width forms, `ё`."""
    return unicodedata.normalize("NFKC", text).translate(_SAME)


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run))]


def terms(question: str) -> list[str]:
    """The FTS5 expressions of a question, one for each thing that it names, in order, once each.

    Words joined by punctuation alone (`max_tool_chars`, `src/app.py`, `std::vector`) are one
    phrase, and so are words in quotes. A run of unsegmented script is a phrase over its pairs.
    """
    found: dict[str, None] = {}
    end = 0
    for match in _QUOTED.finditer(question):
        _add_compounds(found, question[end : match.start()])
        _add_quoted(found, match.group(1))
        end = match.end()
    _add_compounds(found, question[end:])
    return list(found)


def _add_quoted(found: dict[str, None], quoted: str) -> None:
    """A phrase; where a run is in it, whose pairs stand apart, the things that it names."""
    if not quoted.isascii() and _run().search(plain_form(quoted)):
        _add_compounds(found, quoted)
    else:
        _add_phrase(found, quoted)


def _add_compounds(found: dict[str, None], text: str) -> None:
    for compound in text.split():
        if compound.isascii():
            _add_phrase(found, compound)
            continue
        for number, piece in enumerate(_run().split(plain_form(compound))):
            if number % 2:
                found[_pairs_phrase(piece)] = None
            else:
                _add_phrase(found, piece)


def _add_phrase(found: dict[str, None], text: str) -> None:
    """The words of `text` as they follow each other in either column."""
    if text.isascii():
        words = _ASCII_WORD.findall(text)
    else:
        words = _word().findall(plain_form(text))
        said = _ANY_WORD.findall(text)
        if len(said) > 1 and said != words and text.split() != [text]:
            both = f'("{" ".join(said)}" OR "{" ".join(words)}")'  # respelled words stand apart
            found[both] = None
            return
    if words:
        found['"' + " ".join(words) + '"'] = None


def _pairs_phrase(run: str) -> str:
    if len(run) == 1:
        return f'segments : "{run}" *'
    pairs = _pairs(run)[:-1]  # the last character alone is there for the run's end only
    return 'segments : "' + " ".join(pairs) + '"'


def goes_on(pair: str) -> bool:
    """Whether two characters are of one word: neither a run nor another script begins."""
    return len(pair) == 2 and bool(_word().fullmatch(pair)) and not _run().search(pair)


def is_run(expression: str) -> bool:
    """Whether an expression of `terms` asks for a run of unsegmented script."""
    return expression.startswith("segments : ")


def words_in(expression: str) -> list[str]:
    """The words, or the one run, that an expression of `terms` asks for."""
    words = expression.split('"')[-2].split(" ")
    return ["".join([words[0], *(w[1:] for w in words[1:])])] if is_run(expression) else words
