"""Names of things: record keys, drawer ids, wing slugs.

Owns: the one way each kind of id is made (R3).
Never: looks anything up.
Called by: transcripts, mining, store, filing.
"""

from __future__ import annotations

import hashlib
import json
import re

from mempalace.model import Stream


def digest(text: str) -> str:
    """MD5 of a text as 32 hex digits; lone surrogates are hashed as they are."""
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def record_key(*parts: str | int) -> bytes:
    """The 16-byte MD5 over the JSON array of `parts` that names a record (R3)."""
    array = json.dumps(parts, separators=(",", ":"))
    return hashlib.md5(array.encode("ascii"), usedforsecurity=False).digest()


def drawer_id(exchange_id: str, stream: Stream | int, position: int) -> str:
    """`<exchange>-talk-0`: derived from exchange, stream and position alone, never from a wing."""
    return f"{exchange_id}-{Stream(stream).name.lower()}-{position}"


def closet_id(exchange_id: str, position: int) -> str:
    """`<exchange>-closet-0`."""
    return f"{exchange_id}-closet-{position}"


def slug(name: str) -> str:
    """A wing or room name: lower case, words joined by `_`; `.` and letters of all scripts stay.

    >>> slug("My-App v2.1")
    'my_app_v2.1'
    """
    return re.sub(r"[^\w.]+", "_", name.strip().lower()).strip("_.") or "unnamed"
