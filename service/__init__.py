"""Keep MemPalace running: systemd and launchd units, and the doctor.

Owns: rendering, installing, starting, stopping and judging the units of this machine.
Never: reads a transcript or opens the palace for writing.
Called by: the CLI commands that manage the daemon.
"""
