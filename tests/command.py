"""The real command line, in a process of its own.

Owns: how a test runs `mempalace` and reads what it says, through a pipe or on a terminal.
Never: asserts.
Called by: the tests of commands.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-P", "-m", "mempalace")


def mempalace(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command; its output is decoded as UTF-8, newlines untouched."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        timeout=60,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def mempalace_json(*arguments: str) -> Any:
    """What a command prints with --json; it must succeed."""
    done = mempalace(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def on_a_terminal(
    *arguments: str, env: Mapping[str, str] | None = None, typed: str | None = None
) -> str:
    """What a command prints on a terminal of 120 columns, and what is `typed` there."""
    master, slave = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", **(env or {})}
    if typed is not None:
        os.write(master, typed.encode())
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=None if typed is None else slave,
        stdout=slave,
        stderr=slave,
        env=environment,
    ):
        os.close(slave)
        shown = b""
        try:
            while data := os.read(master, 65_536):
                shown += data
        except OSError:  # Linux: the last process on the other side has gone
            pass
    os.close(master)
    return shown.decode().replace("\r\n", "\n")
