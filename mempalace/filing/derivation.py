"""What an exchange means is derived from its words whenever they change, and again under a newer
version of the rules.

Owns: which words are judged, and doing it for a batch.
Never: changes a word, an id or a vector.
Called by: mempalace.filing.streams in the transaction that writes the words; the watcher in idle
time and the command `remine` for what is stale.
"""

from __future__ import annotations

import sqlite3

from mempalace.mining.derive import VERSION, Derived, derive
from mempalace.store import derived
from mempalace.store.derived import Talk
from mempalace.store.palace import Palace

_READ = 20_000  # characters of the answers at either end: a day-long exchange grows all day
_BATCH = 50  # exchanges judged in one transaction: some 50 ms
_COMMANDS = ("command", "bash")
_MOST_OF_A_COMMAND = 2  # importance


def judge(db: sqlite3.Connection, exchange: int) -> None:
    """Derive and store everything of an exchange that has changed."""
    talk = derived.talk_of(db, exchange)
    if talk is None:
        return
    found = judgement(talk)
    is_command = talk.kind in _COMMANDS
    derived.save(
        db, exchange,
        version=VERSION, room=found.room, hall=found.hall, memory_type=found.memory_type,
        importance=min(found.importance, _MOST_OF_A_COMMAND) if is_command else found.importance,
        key_sentence=found.key_sentence,
        entities=found.entities,
    )  # fmt: skip


def judgement(talk: Talk) -> Derived:
    """What the rules say of these words."""
    return derive(talk.prompt, _ends(talk.answers))


def _ends(answers: list[str]) -> list[str]:
    """The answers, without the middle where they are very long."""
    if sum(map(len, answers)) <= 2 * _READ:
        return answers
    head: list[str] = []
    tail: list[str] = []
    room = _READ
    for text in answers:
        if room <= 0:
            break
        head.append(text[:room])
        room -= len(text)
    room = _READ
    for text in reversed(answers):
        if room <= 0:
            break
        tail.append(text[-room:])
        room -= len(text)
    return [*head, *reversed(tail)]


def judge_stale(palace: Palace, *, wing: int | None = None) -> int:
    """Judge a batch of what an older version has judged; how many, 0 where nothing is stale."""
    with palace.reading() as db:
        batch = derived.stale(db, VERSION, _BATCH, wing=wing)
    if batch:
        with palace.transaction() as db:
            for exchange in batch:
                judge(db, exchange)
                db.execute("UPDATE exchanges SET derived = ? WHERE n = ?", (VERSION, exchange))
    return len(batch)


def judge_all_stale(palace: Palace) -> None:
    """Judge whatever an older version has judged."""
    while judge_stale(palace):
        pass
