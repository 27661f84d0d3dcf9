"""`mempalace watch`: the daemon in the foreground.

Owns: where its log goes.
Never: follows a file itself.
Called by: the command table; service units run it.
"""

from __future__ import annotations

import logging
import sys

import click


@click.command()
@click.option("--once", is_flag=True, help="Read what is there now, and leave.")
def watch(once: bool) -> None:
    """Follow the transcripts of this machine's agents until told to stop.

    SIGTERM finishes the transaction at hand and leaves; SIGHUP reads config.yaml again.
    """
    from watcher.daemon import Daemon

    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger().handlers[0].setFormatter(_Fields())
    Daemon().run(once=once)


class _Fields(logging.Formatter):
    """`time level noun.verb field=value …`: events carry fields, never transcript text."""

    _PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        fields = {k: v for k, v in record.__dict__.items() if k not in self._PLAIN}
        text = f"{self.formatTime(record)} {record.levelname.lower()} {record.getMessage()}"
        return text + "".join(f" {name}={value!r}" for name, value in fields.items())
