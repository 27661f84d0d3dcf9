"""Keep MemPalace running: systemd and launchd units, and the doctor.

Owns: rendering, installing, starting, stopping and judging the units of this machine.
Never: opens the palace for writing; writes to a transcript (R4).
Called by: the CLI commands that manage the daemon.
"""
