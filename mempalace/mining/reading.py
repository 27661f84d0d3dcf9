"""An exchange, read once: its sentences, who says each, where it stands, what is code.

Owns: what a sentence, a heading, a pasted line and a line of code are; how much of an exchange is
read, so that the work has a bound (R8) however long the talk grows.
Never: changes a character (a sentence is a slice of the text), knows what words mean.
Called by: derive, extract, entities.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PROMPT_READ = 2_000  # characters: rooms are judged by the first 2,000 of the talk
_OPENING_READ = 700  # of the first answer: what it takes the prompt for
_CLOSING_READ = 1_600  # of the last two answers: what came of it
_TAIL_READ = 500  # and of the end of the last: what it asks back

_FENCE = ("```", "~~~")
_MARKS = re.compile(
    r"(?:#{1,6}|[-*+•✓✅☑]|\d{1,2}[.)]|[A-Za-z]\)|\[[ xX]\])[ \t]+|\*\*(?=\S)|__(?=\S)"
)
_END = re.compile(r"[.!?…]+[\"'”’)\]*_`]*(?=\s|$)")
_SHORT_FORMS = ("e.g.", "i.e.", "vs.", "etc.", "cf.", "no.", "approx.", "dr.", "mr.", "mrs.", "st.")
_CODE_LINE = re.compile(
    r"""\s*(?:
        [{}\[\]();]+[,;]?\s*$                                     # nothing but brackets
      | import\s+(?:[\w.]+|[{*].*)(?:\s+as\s+\w+)?(?:,\s*[\w.]+)*\s*$
      | from\s+\S+\s+import\s
      | (?:def|class|func|fn|function)\s+\w+\s*[(:{<]
      | (?:const|let|var)\s+[\w{},: ]+=
      | (?:public|private|static|export|async|type|interface|struct|enum|impl|mod|package|if|for
          |while|switch|match|else|try|catch)\b.*\{\s*$
      | [\w.\[\]"'$]+\s*(?::=|=(?!=)|\+=)\s*\S                    # an assignment
      | "[\w.-]+"\s*:                                             # JSON
      | [\w.]+\([^)]*\)\s*[;{]?\s*$                               # a bare call
      | (?://|/\*|\#!|\#include|@@|\+\+\+|---|\$\ |%\ |>>>)       # comments, diffs, prompts
      | <\/?[A-Za-z][^>]*>                                        # markup
      | [|│┌├└┃╭╰║⎿⏺❯*]                                           # tables and boxes
      | (?:npm|pip|git|docker|cargo|go|make|mise|brew|cd|ls|rm|cp|curl|sudo|export|python3?)\s
        (?:[-\w.:@"']+\s+)*(?:-\S+|[.~]\S+|\S*[/=]\S*)(?:\s+\S+)*\s*$  # a shell command: it has
    )""",  # an option, a path or a setting, which "make sure it works" has not
    re.VERBOSE,
)
_LOG_LINE = re.compile(
    r"""\s*(?:
        (?:\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2}\s+\d{1,2}\s\d\d:)  # a time
      | (?:at\s+[\w.$<>]+\s*\(|File\s"|Traceback\b|panic:|===)
      | ---\s(?:FAIL|PASS)|FAIL(?=\s*$|:|\t)
      | \S+\.\w{1,4}:\d+(?::\d+)?:\s
      | \|?(?:DEBU|INFO|WARN|ERRO|DEBUG|ERROR|WARNING)\b[|:\]]
    )""",
    re.VERBOSE,
)
_LONGEST_CODE = 400  # characters; a longer line is somebody's paragraph
_ENDS_LIKE_CODE = (";", "{", "};", "},", "})", "=>", "\\")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence as it stands. `answer` counts from the front, -1 is the prompt."""

    text: str
    answer: int
    last: bool  # of the last answer
    heading: bool
    item: bool  # a list item
    start: int  # where it stands in its text


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of an exchange, and the forms it takes."""

    sentences: tuple[Sentence, ...]
    prompt: str
    answers: Sequence[str]
    pasted: bool  # the prompt quotes a log, code or a table
    prompt_words: int


def read(prompt: str | None, answers: Sequence[str]) -> Reading:
    """The sentences of the prompt, of the first answer and of the last two."""
    asked = prompt or ""
    result, pasted = _sentences(_head(asked, PROMPT_READ), answer=-1, last=False)
    texts = [text for text in answers if text.strip()]
    final = len(texts) - 1
    for index, text in enumerate(texts):
        if 0 < index < final - 1:
            continue
        limit = _OPENING_READ if index == 0 and final else _CLOSING_READ
        result += _sentences(_head(text, limit), answer=index, last=index == final)[0]
        if index == final and len(text) > _CLOSING_READ:
            begin = _tail(text, max(_CLOSING_READ, len(text) - _TAIL_READ))
            result += _sentences(text[begin:], answer=index, last=True, base=begin)[0]
    return Reading(
        sentences=tuple(result),
        prompt=asked,
        answers=texts,
        pasted=pasted,
        prompt_words=asked.count(" ") + asked.count("\n") + 1 if asked.strip() else 0,
    )


def _head(text: str, limit: int) -> str:
    """The first characters of a text, up to the end of a word."""
    if len(text) <= limit:
        return text
    return text[: max(text.rfind(" ", 0, limit), text.rfind("\n", 0, limit), 0)]


def _tail(text: str, begin: int) -> int:
    """Where the end of a text may be read from: the start of a line, outside of fenced code."""
    line = text.find("\n", begin)
    if line >= 0 and text.count(_FENCE[0], 0, line) % 2:
        line = text.find("\n", text.find(_FENCE[0], line))
        if text.count(_FENCE[0], 0, max(line, 0)) % 2:
            return len(text)  # the code is never closed
    return line + 1 if line >= 0 else len(text)


def prose_lines(text: str) -> Iterator[tuple[int, int]]:
    """`(start, end)` of the lines that are neither code, nor log, nor quoted, nor blank."""
    fenced = False
    start = 0
    for line in text.split("\n"):
        begin, start = start, start + len(line) + 1
        bare = line.strip()
        if bare.startswith(_FENCE):
            # A fence that opens and closes in one line is code, and changes nothing.
            fenced ^= not (len(bare) > 3 and bare.endswith(_FENCE))
            continue
        if bare and not fenced and not is_code(line, bare):
            yield begin, begin + len(line)


def is_code(line: str, bare: str) -> bool:
    """Is this line code, a log, a table or a quotation rather than somebody's sentence?"""
    if bare[0] == ">":
        return True
    if len(line) > _LONGEST_CODE:
        return False
    if bare.endswith(_ENDS_LIKE_CODE):
        return True
    if bare[0] in "*-+•" and not bare.startswith(("---", "+++")):
        return False  # a list item or bold words
    if line.startswith(("    ", "\t")) and (bare[0] in "/#.$(<[{" or "(" in bare or "=" in bare):
        return True
    return bool(_CODE_LINE.match(line) or _LOG_LINE.match(line))


def _sentences(text: str, *, answer: int, last: bool, base: int = 0) -> tuple[list[Sentence], bool]:
    found: list[Sentence] = []
    prose = 0
    for begin, end in prose_lines(text):
        prose += 1
        bare = text[begin:end].strip()
        heading = bare.startswith("#") or (
            bare.startswith("**") and bare.rstrip(" :").endswith("**")
        )
        item = not heading and bool(_MARKS.match(bare)) and not bare.startswith(("**", "__"))
        rest = _unmarked(bare)
        at = text.find(rest, begin)
        for part in (rest,) if heading else _split(rest):
            at = text.find(part, at)
            if part[:1] != ">" and any(map(str.isalnum, part)):
                found.append(Sentence(part, answer, last, heading, item, base + at))
            at += len(part)
    lines = sum(1 for line in text.split("\n") if line.strip())
    return found, lines - prose >= 2


def _unmarked(line: str) -> str:
    """A line without the marks of a heading or list item before it and the blanks after it."""
    line = line.strip()
    while mark := _MARKS.match(line):
        line = line[mark.end() :].lstrip()
    if line.count("**") % 2 and line.endswith(("**", "**:", "**.")):
        line = line[: line.rindex("**")].rstrip()
    return line


def _split(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        piece = line[start : end.end()].strip()
        if piece.lower().endswith(_SHORT_FORMS) or len(piece) < 3:
            continue
        yield piece
        start = end.end()
    rest = line[start:].strip()
    if rest:
        yield rest
