"""Can this installation find by meaning?

Owns: the check of the embedding model, and of the last librarian's trouble.
Never: loads the model.
Called by: service.doctor.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from mempalace.config import Config
from mempalace.errors import MemPalaceError
from mempalace.index import weights
from mempalace.store.palace import Palace
from mempalace.store.vectors import progress
from service.finding import Finding, note, well

_CHECK = "vectors"


def vectors(config: Config) -> Iterator[Finding]:
    """Keywords answer whatever is wrong here, so nothing is worse than a note."""
    if not config.vectors:
        yield note(_CHECK, "they are off: search is by keywords (index.vectors)")
        return
    try:
        weights.packaged()
        weights.tokenizer()
        with Palace.reader(config.home) as palace, palace.reading() as db:
            state = progress(db, time.time())
    except MemPalaceError as error:
        yield note(_CHECK, error.what, error.hint)
        return
    if state.problem:
        yield note(_CHECK, f"nothing is embedded: {state.problem}", "mempalace reindex")
    else:
        yield well(_CHECK, f"{state.vectors:,} drawers have one, {state.waiting:,} wait for one")
