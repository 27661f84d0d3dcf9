"""Which turn of which session is being read, and the names of its records (R3).

A copied fork begins with its parent's records, stamped with the moment of the fork. Each turn among
them belongs to an ancestor: one that has it where its file is at hand, else the one that lived when
the turn was born. Turn ids are in no other place but copies, so a record's name is the same whether
the copy is judged rightly or not; where turns have no ids that are unique, the session is part of
the name, and what ends the copy is a prompt that the parent does not have, or a pause.

Owns: that judgement, and keys made of turn and ordinal.
Never: reads a file (`turns_of` is given to it), keeps a text.
Called by: mempalace.transcripts.codex and its parts.
"""

from __future__ import annotations

from typing import Any

from mempalace.ids import record_key
from mempalace.transcripts.base import TurnsOf
from mempalace.transcripts.codex_items import is_uuid, time_of_uuid7

SOURCE = "codex"

_PAUSE = 2_000_000  # microseconds; a copy is written in one go, a human needs longer to type
_ANCESTORS_KEPT = 16
_PLACES_KEPT = 4  # turns whose records are counted: an automatic turn may stand inside another

_OWN, _COPY, _UNSURE = "own", "copy", "unsure"


def prompt_mark(number: int, carrier: str, mark: str) -> str:
    """How a prompt is told of among a parent's turns, where turns have no unique ids."""
    return f"{carrier} {number} {mark}"


class Turns:
    """The place in one rollout. `own` is the session that its name tells."""

    def __init__(self, own: str, state: dict[str, Any], turns_of: TurnsOf) -> None:
        self._turns_of = turns_of
        self.own: str = state.get("own", own)
        self.is_named: bool = state.get("named", False)
        self._born: int | None = state.get("born")  # when the session began
        self._headed: int | None = state.get("headed")  # the time of its first line
        self._ancestors: list[list[Any]] = state.get("ancestors", [])  # [session, born]
        self._phase: str = state.get("phase", _OWN)
        self._owner: str = state.get("owner", "")
        self._is_at_hand: bool = state.get("at_hand", False)
        self._prompts: dict[str, int] = state.get("prompts", {})  # by carrier, since the copy began
        self._turn: str = state.get("turn", "")
        self._counts: dict[str, dict[str, int]] = state.get("counts", {})
        self._at: int | None = state.get("at")

    def state(self) -> dict[str, Any]:
        return {
            "own": self.own, "named": self.is_named, "born": self._born, "headed": self._headed,
            "ancestors": self._ancestors, "phase": self._phase, "owner": self._owner,
            "at_hand": self._is_at_hand, "prompts": self._prompts, "turn": self._turn,
            "counts": self._counts, "at": self._at,
        }  # fmt: skip

    # --- what is known of the present record ------------------------------------------------------

    @property
    def is_copy(self) -> bool:
        return self._phase == _COPY

    @property
    def is_left(self) -> bool:
        """Is it a copy of what a file at hand has? Then it is left to that file."""
        return self._phase == _COPY and self._is_at_hand

    @property
    def is_older(self) -> bool:
        """Is it beyond doubt older than this session, and told by no other file?"""
        if self._phase != _COPY or self._is_at_hand or self._born is None:
            return False
        born = time_of_uuid7(self._turn)
        told = born if born is not None else self._at
        return told is not None and told < self._born

    @property
    def session(self) -> str:
        return self._owner if self._phase == _COPY else self.own

    @property
    def at(self) -> int | None:
        """When it was said. A copied line is stamped with the fork; its turn's id tells better."""
        born = time_of_uuid7(self._turn) if self._phase == _COPY else None
        return self._at if born is None or self._at is None else min(born, self._at)

    def key(self, what: str, mark: str) -> bytes:
        """A new record's name: turn and ordinal in the turn; session and ordinal without turns."""
        place = self._turn if is_uuid(self._turn) else f"{self.session} {self._turn}".rstrip()
        counts = self._counts.pop(place, {})
        self._counts[place] = counts
        while len(self._counts) > _PLACES_KEPT:
            del self._counts[next(iter(self._counts))]
        number = counts.get(what, 0)
        counts[what] = number + 1
        return record_key(SOURCE, place, what, number, mark)

    def answer_key(self, call_id: str, number: int, mark: str) -> bytes:
        """The name of words said in answer to a call, whatever kind of record tells them."""
        place = self._turn if is_uuid(self._turn) else self.session
        return record_key(SOURCE, place, call_id, "said", number, mark)

    # --- what the records say ---------------------------------------------------------------------

    def tick(self, at: int | None) -> None:
        """A record with this time. After a pause it is no copy, until a turn's id says more."""
        if at is None:
            return
        before, self._at = self._at, at
        if self._phase == _COPY and before is not None and self._headed is not None:
            # Copied lines may be older than the header: such times run on their own.
            waited = at - max(before, self._headed)
            self._phase = _UNSURE if waited > _PAUSE else _COPY

    def header(self, session: str, born: int | None) -> None:
        """The session itself, at the first of them; then the ancestors that it copies."""
        if not self.is_named:
            self.is_named = True
            self.own = session or self.own
            self._headed = self._at
            self._born = born if born is not None else self._at
        elif session == self.own:
            self._phase = _OWN  # said anew by the session itself: its copies lie behind it
        elif session and not self._is_over():
            if all(session != known for known, _ in self._ancestors):
                self._ancestors.append([session, born])
                del self._ancestors[_ANCESTORS_KEPT:]
            self._phase, self._owner = _COPY, session
            self._is_at_hand = self._turns_of(self._ancestors[0][0]) is not None

    def _is_over(self) -> bool:
        """Have records of its own been read? Then another's header begins no copy."""
        return self._phase != _COPY and bool(self._counts)

    def begin(self, turn: str) -> None:
        if not turn or turn == self._turn:
            return
        self._turn = turn
        if self._phase == _COPY or (self._phase == _UNSURE and is_uuid(turn)):
            self._find_owner(turn)

    def _find_owner(self, turn: str) -> None:
        is_missing = False
        # The eldest first: the others copied it. What is no UUID may be another turn's id there.
        ancestors = reversed(self._ancestors) if is_uuid(turn) else self._ancestors[:1]
        for session, _ in ancestors:
            turns = self._turns_of(session)
            if turns is None:
                is_missing = True
            elif turn in turns:
                self._phase, self._owner, self._is_at_hand = _COPY, session, True
                return
        owner = self._owner_by_time(turn) if is_missing else ""
        self._phase, self._is_at_hand = (_COPY if owner else _OWN), False
        self._owner = owner

    def _owner_by_time(self, turn: str) -> str:
        born = time_of_uuid7(turn)
        if born is None or self._born is None:
            return self._owner if self._phase == _COPY else ""
        if born >= self._born:
            return ""
        for session, began in self._ancestors:
            if began is None or began <= born:
                return str(session)
        return str(self._ancestors[-1][0])

    def prompt(self, carrier: str, mark: str) -> None:
        """A record in the user's name. In turns without a unique id the parent's prompts tell."""
        if not self._ancestors or self._phase == _OWN:
            return
        number = self._prompts.get(carrier, 0)
        self._prompts[carrier] = number + 1
        if self._phase != _COPY or is_uuid(self._turn):
            return
        known = self._turns_of(self._ancestors[0][0])
        if known is not None:
            self._is_at_hand = prompt_mark(number, carrier, mark) in known
            self._phase = _COPY if self._is_at_hand else _UNSURE
