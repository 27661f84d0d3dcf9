"""Tool calls of Codex, their results, and the human's answers to what a tool asked.

Owns: which result belongs to which call, and what is kept of both.
Never: sees the events and items that tell of the same calls once more: those are counted only.
Called by: mempalace.transcripts.codex.
"""

from __future__ import annotations

from typing import Any

from mempalace.ids import digest
from mempalace.transcripts.base import what_runs
from mempalace.transcripts.codex_items import call_in, id_at, output_in, text_at
from mempalace.transcripts.codex_text import answers_in
from mempalace.transcripts.codex_turns import Turns

_KEPT = 150  # open calls (R5)
_LONGEST_NAME = 60  # characters of a tool's name in the state
_ASKS = "request_user_input"


class Calls:
    """`state` is what `state` gave before: id → [key, what it runs]."""

    def __init__(self, state: dict[str, list[str]]) -> None:
        self._open = state

    def state(self) -> dict[str, list[str]]:
        return self._open

    def call(
        self, body: dict[str, Any], kind: str, turns: Turns
    ) -> tuple[str, tuple[bytes, ...], str, str]:
        """(text, keys, the tool's name, what it runs) of a call."""
        name, given = call_in(body, kind)
        text = f"{name} {given}" if given else name
        call_id = id_at(body, "call_id")
        keys = turns.keys("call", digest(f"{call_id} {text}"))
        runs = what_runs(name, given)
        self._open[call_id or _nameless(name)] = [keys[0].hex(), runs[:_LONGEST_NAME]]
        while len(self._open) > _KEPT:
            del self._open[next(iter(self._open))]
        return text, keys, name, runs

    def result(
        self, body: dict[str, Any], turns: Turns
    ) -> tuple[str, tuple[bytes, ...], bytes | None, str]:
        """(text, keys, key of the call, what it ran) of a result."""
        text, call_id = output_in(body), id_at(body, "call_id")
        keys = turns.keys("result", digest(f"{call_id} {text}"))
        call, runs = self._find(call_id, text_at(body, "name"))
        return text, keys, call, runs

    def call_of(self, body: dict[str, Any]) -> bytes | None:
        """The key of the call that a record names."""
        return self._find(id_at(body, "call_id"), None)[0]

    def _find(self, call_id: str, name: str | None) -> tuple[bytes | None, str]:
        """The first versions name no call: a result is of the last one, of that tool if it says."""
        if not call_id:
            nameless = [one for one in self._open if one.startswith("#")]
            wanted = _nameless(name) if name else (nameless[-1] if nameless else "")
        else:
            wanted = call_id
        key, runs = self._open.get(wanted, ("", ""))
        return (bytes.fromhex(key) if key else None), runs


def answers_of(text: str, runs: str) -> list[str]:
    """What a human answered, in the result of a call."""
    return answers_in(text) if runs.rsplit("__", 1)[-1] == _ASKS else []


def numbered(answers: list[str]) -> list[tuple[str, int]]:
    """Each answer with the number of equal ones before it: two questions may both get a "yes"."""
    return [(one, answers[:place].count(one)) for place, one in enumerate(answers)]


def _nameless(name: str) -> str:
    return f"#{name[:_LONGEST_NAME]}"
