"""Which turn of which session is being read, and the names of its records (R3).

A copied fork begins with its parent's records, stamped with the moment of the fork. Each turn among
them belongs to an ancestor: to the one of which the file of the nearest ancestor at hand says so,
else to the one that lived when the turn was born. Turn ids are in no other place but copies, so a
record's name is the same whether the copy is judged rightly or not. Where turns have no ids that
are unique, the session is part of the name, and what ends the copy is a prompt that no ancestor
has at that place, or a pause; there a record has further names for as long as it may be of one
session or another.

Owns: that judgement, who is an agent among the sessions, and keys made of turn and ordinal.
Never: reads a file (`turns_of` is given to it), keeps a text.
Called by: mempalace.transcripts.codex and its parts, watcher.lineage.
"""

from __future__ import annotations

from typing import Any

from mempalace.ids import record_key
from mempalace.transcripts.base import TurnsOf, instant
from mempalace.transcripts.codex_items import (
    header_in,
    id_at,
    is_among_agents,
    is_uuid,
    prompt_in,
    time_of_uuid7,
    turn_in,
)

SOURCE = "codex"

_PAUSE = 2_000_000  # microseconds; a copy is written in one go, a human needs longer to type
_ANCESTORS_KEPT = 16
_PLACES_KEPT = 4  # turns whose records are counted: an automatic turn may stand inside another

_OWN, _COPY, _UNSURE = "own", "copy", "unsure"


class Turns:
    """The place in one rollout. `own` is the session that its name tells."""

    def __init__(self, own: str, state: dict[str, Any], turns_of: TurnsOf) -> None:
        self._turns_of = turns_of
        self.own: str = state.get("own", own)
        self.is_named: bool = state.get("named", False)
        self.is_agent: bool = state.get("agent", False)  # the session itself
        self._born: int | None = state.get("born")  # when the session began
        self._headed: int | None = state.get("headed")  # the time of its first line
        # [session, born, is it an agent], the nearest first
        self._ancestors: list[list[Any]] = state.get("ancestors", [])
        self._phase: str = state.get("phase", _OWN)
        self._owner: str = state.get("owner", "")
        self._is_at_hand: bool = state.get("at_hand", False)
        self._has_begun: bool = state.get("begun", False)  # a turn or prompt was met
        self._prompts: dict[str, int] = state.get("prompts", {})  # so far, by carrier
        self.turn: str = state.get("turn", "")
        self._counts: dict[str, dict[str, int]] = state.get("counts", {})
        self._totals: dict[str, int] = state.get("totals", {})  # of records, by what they are
        self._at: int | None = state.get("at")

    def state(self) -> dict[str, Any]:
        return {
            "own": self.own, "named": self.is_named, "agent": self.is_agent, "born": self._born,
            "headed": self._headed, "ancestors": self._ancestors, "phase": self._phase,
            "owner": self._owner, "at_hand": self._is_at_hand, "begun": self._has_begun,
            "prompts": self._prompts, "turn": self.turn, "counts": self._counts,
            "totals": self._totals, "at": self._at,
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
    def is_agents(self) -> bool:
        """Was it said among agents? A copy is what it was in its owner's thread. Where no file
        tells whose it is, only what is beyond doubt older than an agent is not that agent's."""
        if self._phase != _COPY:
            return self.is_agent
        line = [[self.own, self._born, self.is_agent], *self._ancestors]
        owner = next((n for n, one in enumerate(line) if one[0] == self._owner), len(line))
        if owner < len(line) and line[owner][2]:
            return True
        nearer = [] if self._is_at_hand else line[:owner]
        return any(
            is_agent and not self._is_before(session, born) for session, born, is_agent in nearer
        )

    def _is_before(self, session: str, born: int | None) -> bool:
        mine = time_of_uuid7(self.turn)
        began = born if mine is None else _began(session, born)
        mine = self._at if mine is None else mine
        return mine is not None and began is not None and mine < began

    @property
    def session(self) -> str:
        return self._owner if self._phase == _COPY else self.own

    @property
    def teller(self) -> str:
        """The session that this file says the record is of: what an agent's thread is not sure
        about is the agent's."""
        return self.own if self.is_agents else self.session

    @property
    def at(self) -> int | None:
        """When it was said. A copied line is stamped with the fork; its turn's id tells better."""
        born = time_of_uuid7(self.turn) if self._phase == _COPY else None
        return self._at if born is None or self._at is None else min(born, self._at)

    # --- names ------------------------------------------------------------------------------------

    def keys(self, what: str, mark: str) -> tuple[bytes, ...]:
        """A new record's names, the first of them by turn and ordinal in the turn, or by session
        and ordinal without turns."""
        place = self.turn if is_uuid(self.turn) else f"{self.session} {self.turn}".rstrip()
        counts = self._counts.pop(place, {})
        self._counts[place] = counts
        while len(self._counts) > _PLACES_KEPT:
            del self._counts[next(iter(self._counts))]
        number = counts.get(what, 0)
        counts[what] = number + 1
        line = self._totals.get(what, 0)
        self._totals[what] = line + 1
        others = [record_key(SOURCE, one, "line", what, line, mark) for one in self._others()]
        return (record_key(SOURCE, place, what, number, mark), *others)

    def answer_keys(self, call_id: str, number: int, mark: str) -> tuple[bytes, ...]:
        """The names of words said in answer to a call, whatever kind of record tells them."""
        place = self.turn if is_uuid(self.turn) else self.session
        places = dict.fromkeys([place, *self._others()])
        return tuple(record_key(SOURCE, one, call_id, "said", number, mark) for one in places)

    def _others(self) -> list[str]:
        """Sessions in whose file the record has the same place as here, and that may call it
        theirs: without ids, a fork that is nowhere may be its owner as well as a parent. A
        session's own names say which of its records these are."""
        if is_uuid(self.turn) or not self._ancestors or self.is_left:
            return []
        between = [one[0] for one in self._ancestors[:-1]] if self.is_copy else []
        return [self.own, *(one for one in between if self._turns_of(one) is None)]

    # --- what the records say ---------------------------------------------------------------------

    def follow(self, record: dict[str, Any]) -> list[str]:
        """Take the next record. Gives the names by which a fork of this file may ask for what it
        tells of: a turn's id, and the place of a prompt where that is no unique one."""
        self.tick(instant(record.get("timestamp")))
        turn, prompt, header = turn_in(record), prompt_in(record), header_in(record)
        self._begin(turn)
        name = self._prompt(*prompt) if prompt else ""
        if header is not None:
            self._head(id_at(header, "id"), instant(header.get("timestamp")), header)
        self._has_begun = self._has_begun or bool(turn or prompt)
        return [one for one in (self.turn if turn or name else "", name) if one]

    def tick(self, at: int | None) -> None:
        """A record with this time. After a pause it is no copy, until a turn's id says more."""
        if at is None:
            return
        before, self._at = self._at, at
        if self._phase == _COPY and before is not None and self._headed is not None:
            # Copied lines may be older than the header: such times run on their own.
            waited = at - max(before, self._headed)
            self._phase = _UNSURE if waited > _PAUSE else _COPY

    def _head(self, session: str, born: int | None, header: dict[str, Any]) -> None:
        """The session itself, at the first of them; then the ancestors that it copies."""
        if not self.is_named:
            self.is_named = True
            self.own = session or self.own
            self.is_agent = is_among_agents(header)
            self._headed = self._at
            self._born = born if born is not None else self._at
        elif session == self.own:
            self._phase = _OWN  # said anew by the session itself: its copies lie behind it
        elif session and (self._phase == _COPY or not self._has_begun):
            if all(session != one[0] for one in self._ancestors):
                self._ancestors.append([session, born, is_among_agents(header)])
                del self._ancestors[_ANCESTORS_KEPT:]
            self._phase, self._owner = _COPY, session
            self._is_at_hand = any(self._turns_of(one[0]) is not None for one in self._ancestors)

    def _begin(self, turn: str) -> None:
        if not turn or turn == self.turn:
            return
        self.turn = turn
        is_open = self._phase == _COPY or (self._phase == _UNSURE and is_uuid(turn))
        if is_open and not self._find_owner(turn):
            self._phase, self._is_at_hand = _OWN, False

    def _prompt(self, carrier: str, mark: str) -> str:
        """A record in the user's name; its name where its turn has no unique one."""
        number = self._prompts.get(carrier, 0)
        self._prompts[carrier] = number + 1
        if is_uuid(self.turn):
            return ""
        name = f"{carrier} {number} {mark}"
        if self._phase == _COPY and not self._find_owner(name):
            self._phase, self._is_at_hand = _UNSURE, False
        return name

    def _find_owner(self, name: str) -> bool:
        """Whose turn or prompt is it? False where it is no ancestor's.

        What the nearest ancestor at hand has not, no elder one has at this place; a unique id may
        be there all the same, where that one has lost it.
        """
        missing: list[list[Any]] = []
        nearer: int | None = None  # how many are missing before the first at hand
        for one in self._ancestors:
            turns = self._turns_of(one[0])
            if turns is None:
                missing.append(one)
            elif name in turns:
                self._phase, self._owner, self._is_at_hand = _COPY, turns[name], True
                return True
            elif nearer is None:
                nearer = len(missing)
                if not is_uuid(name):
                    break
        owner = self._guess(name, missing, missing[:nearer])
        if owner:
            self._phase, self._owner, self._is_at_hand = _COPY, owner, False
        return bool(owner)

    def _guess(self, name: str, missing: list[list[Any]], nearer: list[list[Any]]) -> str:
        """One of the ancestors that are nowhere: by time, else as long as the copy runs on."""
        born, began = time_of_uuid7(name), _began(self.own, self._born)
        if born is not None and began is not None:
            if born >= began or not missing:
                return ""
            told = ((session, _began(session, at)) for session, at, _ in missing)
            return str(next((one for one, at in told if at is None or at <= born), missing[-1][0]))
        if self._phase != _COPY or not nearer:
            return ""
        return self._owner if any(one[0] == self._owner for one in nearer) else str(nearer[-1][0])


def _began(session: str, born: int | None) -> int | None:
    """When a session began, by the clock of its turns' ids: its own id, else its header."""
    told = time_of_uuid7(session)
    return born if told is None else told
