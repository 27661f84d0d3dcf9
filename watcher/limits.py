"""What the system allows and offers a watcher: watches, their limits, kinds of file systems.

Owns: reading them from the system, and which file systems do not tell of every change. Linux only;
elsewhere it knows nothing and says so with None, '' or True.
Never: keeps a watch; decides what follows from an answer.
Called by: watcher.disk, watcher.events, service.doctor.
"""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass

# Changes made on another machine, or on the other side of a virtual machine's wall, raise no event
# here. `overlay` and local FUSE file systems are not among them: what is written through this
# kernel is told, and what is not is found out by what the scan finds (watcher.events).
_SILENT = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "drvfs", "gfs2", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
})  # fmt: skip
_SYSTEM = "/proc/sys/fs/inotify"
_IN_DELETE_SELF = 0x400
_WATCH = re.compile(rb"^inotify wd:", re.MULTILINE)
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Limits:
    """How many watches and instances one user may have on this machine, and how many are taken."""

    watches: int
    instances: int
    watches_taken: int  # by the processes that may be looked at
    instances_taken: int


def is_silent(kind: str) -> bool:
    """Is it a file system that tells of no change made elsewhere?"""
    return kind in _SILENT or kind.startswith("fuse.")


def filesystem(path: str) -> str:
    """The kind of the file system that holds `path`; '' where the system does not say."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return ""
    real, best, kind = os.path.realpath(path), "", ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point = _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), fields.split(" ")[4])
        is_above = real == point or real.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(best):  # of two at one place the later one covers
            best, kind = point, rest.split(" ", 1)[0]
    return kind


def may_watch() -> bool:
    """Would the system let this process watch one more folder? A watch is made and dropped."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_CLOEXEC)
    except (AttributeError, OSError):
        return True  # no inotify here: then it has no limits either
    if descriptor < 0:
        return False
    try:
        return bool(libc.inotify_add_watch(descriptor, b"/", _IN_DELETE_SELF) >= 0)
    finally:
        os.close(descriptor)


def limits() -> Limits | None:
    """None where the system has no such limits."""
    try:
        watches, instances = _number("max_user_watches"), _number("max_user_instances")
    except (OSError, ValueError):
        return None
    return Limits(watches, instances, *_taken())


def _number(name: str) -> int:
    with open(os.path.join(_SYSTEM, name), encoding="ascii") as stream:
        return int(stream.read())


def _taken() -> tuple[int, int]:
    """(watches, instances) of this user's processes, as far as they may be looked at."""
    watches = instances = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        folder = f"/proc/{process}/fd"
        try:
            if os.stat(f"/proc/{process}").st_uid != os.getuid():
                continue
            names = os.listdir(folder)
        except OSError:
            continue  # it has ended, or is not ours to look at
        for name in names:
            try:
                if os.readlink(f"{folder}/{name}") == "anon_inode:inotify":
                    instances += 1
                    with open(f"/proc/{process}/fdinfo/{name}", "rb") as stream:
                        watches += len(_WATCH.findall(stream.read()))
            except OSError:
                continue
    return watches, instances
