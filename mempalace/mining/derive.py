"""What an exchange means: room, memory type, hall, importance, key sentence, entities.

Owns: the one entry to all of it, and its version.
Never: reads or writes anything; two calls with the same words give the same answer.
Called by: filing, when an exchange is mined and when it is mined again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mempalace.mining.entities import Entity, entities_of
from mempalace.mining.quotes import key_sentence
from mempalace.mining.reading import read
from mempalace.mining.signals import features, hear
from mempalace.mining.weigh import choose, importance
from mempalace.mining.weights import HALL, MEMORY_TYPE, ROOM

VERSION = 1  # rows derived by an older one are stale

_NO_TYPE = "none"
# A hall follows the type; where nothing was decided, the talk itself says which.
_HALLS = {
    "decision": ("facts",),
    "preference": ("preferences",),
    "milestone": ("events", "discoveries"),
    "problem": ("events", "discoveries", "advice"),
    "emotional": ("events", "preferences"),
    _NO_TYPE: ("events", "discoveries", "advice", "facts"),
}


@dataclass(frozen=True, slots=True)
class Derived:
    """All that is derived of one exchange. `why` names what decided, for `show --why`."""

    room: str
    memory_type: str | None
    hall: str
    importance: int
    key_sentence: str
    confidence: float
    entities: tuple[Entity, ...]
    why: tuple[str, ...]


def derive(
    prompt: str | None, answers: Sequence[str], names: Mapping[str, str] | None = None
) -> Derived:
    """Derive everything of one exchange; `names` are the people of entities.json."""
    reading = read(prompt, answers)
    heard = [hear(sentence) for sentence in reading.sentences]
    entities = entities_of([prompt or "", *answers], names)
    if not heard:
        return Derived("general", None, "events", 1, "", 0.0, entities, ("nothing was said",))
    found = features(reading, heard)
    room = choose(ROOM, found)
    kind = choose(MEMORY_TYPE, found)
    hall = choose(HALL, found, among=_HALLS[kind.name])
    degree, lifted = importance(found, room.name, kind.name)
    quote = key_sentence(reading, heard, kind.name)
    return Derived(
        room=room.name,
        memory_type=None if kind.name == _NO_TYPE else kind.name,
        hall=hall.name,
        importance=degree,
        key_sentence=quote.text,
        confidence=round(min(room.share, kind.share), 2),
        entities=entities,
        why=(
            f"room {room.name}: {room.why or 'nothing else fits'}",
            f"type {kind.name}: {kind.why or 'nothing else fits'}",
            f"hall {hall.name}: {hall.why or 'follows the type'}",
            f"importance {degree}: {lifted or 'nothing lifts it'}",
            f"quoted for: {quote.why or 'nothing else to quote'}",
        ),
    )
