"""The log of a program that runs in the background: one event a line, on stderr.

Owns: its form. Events carry fields, never transcript text.
Never: decides what is logged.
Called by: mempalace.cli.watch, mempalace.cli.librarian.
"""

from __future__ import annotations

import logging
import sys


def log_to_stderr() -> None:
    """Send what the programs log to stderr, from INFO on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Fields())
    logger = logging.getLogger("mempalace")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


class _Fields(logging.Formatter):
    """`time level noun.verb field=value …`."""

    _PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        fields = {k: v for k, v in record.__dict__.items() if k not in self._PLAIN}
        text = f"{self.formatTime(record)} {record.levelname.lower()} {record.getMessage()}"
        return text + "".join(f" {name}={value!r}" for name, value in fields.items())
