"""`python -P -m mempalace.index.probe FOLDER`: does whoever opens this folder live?

Owns: the child process that opens Chroma's folder before the librarian does.
Never: changes what is in it.
Called by: mempalace.index.projection.
"""

import sys

from mempalace.index.projection import look

if __name__ == "__main__":
    print(look(sys.argv[1]))  # noqa: T201 - its parent reads it
