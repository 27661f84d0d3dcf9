"""The palace: what a memory is, how it is kept and how it is found.

Owns: the version and the names of the public API.
Never: imports anything until a public name is asked for; `import mempalace` costs nothing.
Called by: whoever uses MemPalace as a library.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself costs 5 ms that wake-up does not have
if TYPE_CHECKING:
    from typing import Any

__version__ = "4.0.0"

# Public name -> the module that defines it. Extend this table, nothing else.
_PUBLIC: dict[str, str] = {
    "Config": "mempalace.config",
    "MemPalaceError": "mempalace.errors",
    "MemoryStack": "mempalace.layers",
    "Palace": "mempalace.store.palace",
}


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
