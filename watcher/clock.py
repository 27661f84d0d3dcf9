"""The two clocks of a machine, held against each other.

Owns: what counts as a jump: somebody set a clock, or the machine slept.
Never: waits.
Called by: watcher.daemon.
"""

from __future__ import annotations

from watcher.disk import Disk

_JUMP_SECONDS = 10.0


class Clocks:
    """Ask now and then: files may have changed while nobody watched."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._gap = disk.now() - disk.monotonic()

    def jump(self) -> str:
        """Have they parted since the last call? Why, in words; '' where they have not."""
        gap = self._disk.now() - self._disk.monotonic()
        jump, self._gap = gap - self._gap, gap
        if abs(jump) < _JUMP_SECONDS:
            return ""
        return f"the clock jumped by {jump:+,.0f} s, or the machine slept"
