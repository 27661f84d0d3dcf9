"""Turn growing files into committed exchanges.

Owns: follows the files that agents write, from a byte to a transaction.
Never: imports Chroma, an embedding model or numpy; writes to a transcript (R4).
Called by: the CLI commands `watch` and `backfill`, and the units that `service` installs.
"""
