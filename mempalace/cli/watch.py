"""`mempalace watch`: the daemon in the foreground.

Owns: its options.
Never: follows a file itself.
Called by: the command table; service units run it.
"""

from __future__ import annotations

import click

from mempalace.cli.logs import log_to_stderr


@click.command()
@click.option("--once", is_flag=True, help="Read what is there now, and leave.")
def watch(once: bool) -> None:
    """Follow the transcripts of this machine's agents until told to stop.

    SIGTERM finishes the transaction at hand and leaves; SIGHUP reads config.yaml again.
    """
    from watcher.daemon import Daemon

    log_to_stderr()
    Daemon().run(once=once)
