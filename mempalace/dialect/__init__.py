"""AAAK: index cards that a model reads at a glance. Lossy by design: a view beside the words.

Owns: the names under which the dialect is used.
Never: stores anything, reads the palace; the verbatim text is never replaced by its card.
Called by: mempalace.mining.closets, `mempalace compress`, users of the library.

    dialect = Dialect(entities={"Alice": "ALC"})
    card = dialect.compress(text, metadata={"wing": "shop", "room": "decisions"})
    page = Dialect.parse(card)
    print(Dialect.measure(text, card))
"""

from mempalace.dialect.encoder import Dialect, Ratio
from mempalace.dialect.page import Arc, Header, NotAAAK, Page, Tunnel, Zettel

__all__ = ["Arc", "Dialect", "Header", "NotAAAK", "Page", "Ratio", "Tunnel", "Zettel"]
