"""The values that travel between rooms: a message on its way in, a record, a checkpoint.

Owns: their shapes and the closed sets of roles and streams.
Never: reads a file, opens the palace, decides anything.
Called by: every room.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Role(IntEnum):
    """Who speaks in a record. Stored as these numbers in palace.db: never renumber."""

    HUMAN = 0  # a prompt: it opens an exchange
    SAID = 1  # human words found inside a tool result
    ASSISTANT = 2
    CALL = 3
    RESULT = 4
    THINKING = 5
    NOISE = 6  # what a harness injects in the user's name; dropped unless asked for
    ALTERNATE = 7  # an assistant text that the conversation abandoned
    RETRACTED = 8  # not a record: the words named by the keys were taken back
    SUPERSEDED = 9  # not a record: the answer named by the keys was abandoned


class Stream(IntEnum):
    """The two texts of an exchange. Stored as these numbers in palace.db: never renumber."""

    TALK = 0
    TOOLS = 1


STREAM_OF = {
    Role.HUMAN: Stream.TALK,
    Role.SAID: Stream.TALK,
    Role.ASSISTANT: Stream.TALK,
    Role.ALTERNATE: Stream.TALK,
    Role.CALL: Stream.TOOLS,
    Role.RESULT: Stream.TOOLS,
    Role.THINKING: Stream.TOOLS,
    Role.NOISE: Stream.TOOLS,
}


@dataclass(frozen=True, slots=True)
class Message:
    """One record as a format module reads it, before any rule of the palace is applied.

    `keys` are 16-byte MD5 digests (R3); the first names the record if it is new, the others are
    further names of the same record. `offset` is the byte at which its line begins. `at` is
    microseconds since 1970 UTC. `rule` names the rule by which it is left out unless a setting
    asks for it (`subagent`, `thinking`, or a kind of noise); empty for what is always kept.
    """

    role: Role
    text: str
    keys: tuple[bytes, ...]
    offset: int
    at: int | None = None
    kind: str = ""  # how a prompt was given; the name of a tool
    rule: str = ""
    cwd: str | None = None
    session: str = ""  # the session of the file, as far as it was read
    named: str | None = None  # the session that the line itself names
    call: bytes | None = None  # for results and words inside them: a key of the call
    call_name: str = ""  # for results: the tool's name, with what decides R11
    whole: str = ""  # names the message that this is a part of; empty: its line is all of it
    grows: bytes | None = None  # a key of the shorter text that this one replaces


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What proves that a path still holds the file that was read."""

    device: int
    inode: int
    prefix_length: int = 0
    prefix: bytes = b""  # MD5 of the first `prefix_length` bytes, at most 4 KiB
    edge: bytes = b""  # MD5 of the last bytes before the offset, at most 1 KiB
    crc: int = 0  # CRC-32 of all bytes before the offset


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a file has been read (R5). `offset` is 0 or just after a newline."""

    file: int
    path: str
    source: str
    generation: int
    content: int  # the generation in which the present content was first read
    offset: int
    tail: int  # bytes behind `offset` that were looked at while the file was cold
    size: int
    mtime_ns: int
    fingerprint: Fingerprint
    state: str  # the reader's state, JSON, at most 64 KiB, never text
    parser: int
    settings: str
    rereading: bool = False  # a newer parser or other settings read it once more
    waiting: dict[str, str] = field(default_factory=dict)  # texts that must wait, by digest
    is_hidden: bool = False  # its row has a name that does not tell the path (R10)
