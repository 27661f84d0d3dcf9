"""Finding what was said: a question in, exchanges out (docs/design.md).

`query` says what may be asked, `keywords` finds candidates in the full-text index, `find` makes
hits of them, `lookup` finds one exchange by its id.
"""

from mempalace.search.find import Answer, Hit, find, latest
from mempalace.search.lookup import exchange_named
from mempalace.search.query import Query, ask

__all__ = ["Answer", "Hit", "Query", "ask", "exchange_named", "find", "latest"]
