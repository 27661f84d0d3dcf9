"""The way in: `wake-up` by the shortest path, everything else through the command line.

Owns: the fast path, and the check that `watcher`, `service` and `hooks` are ours.
Never: imports click, or anything else before it knows that it is needed.
Called by: the `mempalace` script and `python -P -m mempalace`.
"""

from __future__ import annotations

import os
import sys

from mempalace.errors import EXIT_ERROR, BadConfig, MemPalaceError

_OUR_PACKAGES = ("watcher", "service", "hooks")


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    try:
        if arguments[:1] == ["wake-up"]:
            return _wake_up(arguments[1:])
        refuse_foreign_packages()
    except MemPalaceError as error:
        sys.stderr.write(error.report() + "\n")
        return error.exit_code
    from mempalace.cli import main as command_line

    return command_line(arguments)


def _wake_up(arguments: list[str]) -> int:
    from importlib import import_module

    try:
        code = int(import_module("mempalace.layers").main(arguments))
        sys.stdout.flush()  # here, where a broken pipe is still ours to answer
        return code
    except MemPalaceError:
        raise
    except BrokenPipeError:  # the agent has gone; the interpreter's last flush must not complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_ERROR
    except Exception as error:  # noqa: BLE001 - the border of the hook path: no traceback there
        sys.stderr.write(f"error: unexpected {type(error).__name__} in wake-up\n")
        sys.stderr.write("hint: `mempalace --debug wake-up` shows where it came from\n")
        return EXIT_ERROR


def refuse_foreign_packages(names: tuple[str, ...] = _OUR_PACKAGES) -> None:
    """Raise where a name of ours would import somebody else's package.

    `watcher`, `service` and `hooks` are common names: a folder of that name in the working
    directory, or another distribution in the same environment, would be run in our place.
    """
    from importlib.util import find_spec

    ours = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for name in names:
        spec = find_spec(name)
        origin = spec.origin if spec else None
        found = os.path.dirname(os.path.dirname(os.path.realpath(origin))) if origin else None
        if found == ours:
            continue
        seen = origin or (list(spec.submodule_search_locations or []) if spec else "nothing")
        raise BadConfig(
            f"the package `{name}` is not MemPalace's own: found {seen}",
            "install MemPalace in an environment of its own (`uv tool install`, `pipx install`), "
            "or start it with `python -P -m mempalace`",
        )


if __name__ == "__main__":
    sys.exit(main())
