"""Words that the full-text index can find: bigrams for scripts that are written without spaces.

Owns: the `segments` column and how a question is put to FTS5 so that both meet.
Never: ranks (mempalace.search does).
Called by: filing, when a drawer is written; mempalace.search, when a question is asked.

FTS5's unicode61 takes a run of Chinese or Thai for one word, and its trigram tokenizer costs 2.5
times the disk and finds nothing shorter than three characters; so such runs are stored a second
time, cut into overlapping pairs. The last character of a run stands alone, so that one character
finds it too (as a prefix).
"""

from __future__ import annotations

import re

# Han, kana, Hangul, Thai, Lao, Myanmar, Khmer, and their extensions and half-width forms.
_UNSEGMENTED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSEGMENTED}]+")
_WORD = re.compile(f"[{_UNSEGMENTED}]+|(?:(?![{_UNSEGMENTED}])[^\\W_])+")
_COMPOUND = re.compile(r"\S+")


def segments(text: str) -> str | None:
    """The bigrams of `text`, None where it has no unsegmented script."""
    if text.isascii():
        return None
    pairs = [pair for run in _RUN.findall(text) for pair in _pairs(run)]
    return " ".join(pairs) or None


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run))]


def terms(question: str) -> list[str]:
    """The FTS5 expressions of a question, one for each thing that it names, in order, once each.

    Words joined by punctuation alone (`max_tool_chars`, `src/app.py`, `std::vector`) are one
    phrase. A run of unsegmented script is a phrase over its bigrams.
    """
    found: dict[str, None] = {}
    for compound in _COMPOUND.findall(question):
        phrase: list[str] = []
        for word in _WORD.findall(compound):
            if _RUN.fullmatch(word):
                _add_phrase(found, phrase)
                phrase = []
                found[_bigram_phrase(word)] = None
            else:
                phrase.append(word)
        _add_phrase(found, phrase)
    return list(found)


def _add_phrase(found: dict[str, None], words: list[str]) -> None:
    if words:
        found['text : "' + " ".join(words) + '"'] = None


def _bigram_phrase(run: str) -> str:
    if len(run) == 1:
        return f'segments : "{run}" *'
    pairs = _pairs(run)[:-1]  # the last character alone is there for the run's end only
    return 'segments : "' + " ".join(pairs) + '"'
