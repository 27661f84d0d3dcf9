"""What can go wrong, in words a user can act on.

Owns: the one exception family and the exit codes of the command line.
Never: imports anything, prints, or carries words of a transcript (they would reach a log).
Called by: everything; caught at the borders only (CLI, daemon, one file, hook).
"""

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_NOT_THERE_YET = 3
EXIT_DEGRADED = 4  # a report of `status` and `doctor`, not an exception
EXIT_LOCKED = 75  # EX_TEMPFAIL: the same command may succeed later
EXIT_CONFIG = 78  # EX_CONFIG


class MemPalaceError(Exception):
    """Something failed. `what` says what, `hint` says what to do about it."""

    exit_code: int = EXIT_ERROR

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what, hint)  # both, so that a copy or a pickle keeps the hint
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return self.what

    def report(self) -> str:
        """The lines that a border writes to stderr, without a final newline."""
        return f"error: {self.what}\nhint: {self.hint}" if self.hint else f"error: {self.what}"


class WrongUsage(MemPalaceError):
    """The command was understood, but what it was asked makes no sense."""

    exit_code = EXIT_USAGE


class NotThereYet(MemPalaceError):
    """There is no palace, or not yet what was asked for in it."""

    exit_code = EXIT_NOT_THERE_YET


class Locked(MemPalaceError):
    """Another instance holds the lock."""

    exit_code = EXIT_LOCKED


class BadConfig(MemPalaceError):
    """The configuration or the installation is not usable as it is."""

    exit_code = EXIT_CONFIG
