"""What the user may set: one table of keys, one frozen value that the programs read.

Owns: the keys, their defaults and their help; how config.yaml and the environment are combined
    (environment over file over default); what is excluded from the palace (R10).
Never: writes a file, reads a transcript, or imports yaml where there is no config.yaml.
Called by: every program at its start; `mempalace config` and `mempalace init`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mempalace import paths
from mempalace.errors import BadConfig
from mempalace.exclusion import is_excluded

DEFAULT = "default"  # the source of a value that nobody set
EXCLUDED = "excluded:"  # stands for the name of an excluded folder where one must be written (R10)

Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Key:
    """One setting. `kind` chooses the readers below; `attribute` is its name in Config."""

    name: str
    attribute: str
    kind: str
    default: Any
    help: str
    minimum: int = 0

    @property
    def variable(self) -> str:
        return "MEMPALACE_" + re.sub(r"[.-]", "_", self.name).upper()


KEYS: tuple[Key, ...] = (
    Key(
        "roots.claude-code",
        "claude_code_roots",
        "folders",
        ("~/.claude/projects", "~/.config/claude/projects"),
        "Folders with Claude Code's transcripts ($CLAUDE_CONFIG_DIR/projects where that is set).",
    ),
    Key(
        "roots.codex",
        "codex_roots",
        "folders",
        ("~/.codex/sessions", "~/.codex/archived_sessions"),
        "Folders with Codex's rollouts (those below $CODEX_HOME where that is set).",
    ),
    Key(
        "exclude",
        "exclude",
        "globs",
        (),
        "What never enters the palace: globs on the working folder, the file and the session id.",
    ),
    Key(
        "mining.tool_chars",
        "tool_chars",
        "number",
        2000,
        "Characters kept of a tool call and of its result; 0 none, -1 all.",
        minimum=-1,
    ),
    Key("mining.subagents", "subagents", "switch", False, "Also keep what sub-agents said."),
    Key("mining.thinking", "thinking", "switch", False, "Also keep the agents' thinking blocks."),
    Key("mining.noise", "noise", "switch", False, "Also keep what the agents' harness inserts."),
    Key(
        "wings",
        "wings",
        "wings",
        {},
        'Which wing a folder belongs to: {"~/work/shop": "shop"}; the longest folder wins.',
    ),
    Key(
        "watch.reconcile_seconds",
        "reconcile_seconds",
        "number",
        60,
        "Seconds between two full looks at the roots; events only make it faster.",
        minimum=1,
    ),
    Key(
        "index.vectors",
        "vectors",
        "switch",
        True,
        "Find by meaning as well: a small model on this machine embeds what is stored, when idle.",
    ),
)
_BY_NAME = {key.name: key for key in KEYS}
_SECTIONS = {key.name.partition(".")[0] for key in KEYS if "." in key.name}


@dataclass(frozen=True, slots=True)
class Setting:
    """A value as `mempalace config` shows it: plain JSON types only."""

    key: str
    value: Any
    source: str
    variable: str
    help: str


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of one palace. `sources` tells where each key's value came from."""

    home: Path
    claude_code_roots: tuple[Path, ...]
    codex_roots: tuple[Path, ...]
    exclude: tuple[str, ...]
    tool_chars: int
    subagents: bool
    thinking: bool
    noise: bool
    wings: Mapping[str, str] = field(hash=False)  # absolute folder -> wing, longest folder first
    reconcile_seconds: int
    vectors: bool
    sources: Mapping[str, str] = field(hash=False, compare=False)

    def excludes(self, *, cwd: str | None, path: str | None, session: str | None) -> bool:
        """Whether the user keeps this session or file out of the palace (R10).

        A pattern hits a value that it matches and everything below such a value; one without a
        `/` also hits any single component of a path. The working folder counts in both of its
        forms, as given and with its links resolved.
        """
        if cwd == EXCLUDED:
            return True
        return bool(self.exclude) and is_excluded(self.exclude, cwd, path, session)

    def keeps(self, rule: str) -> bool:
        """Was it asked for to keep what this rule leaves out?"""
        return {"subagent": self.subagents, "thinking": self.thinking}.get(rule, self.noise)

    def reading_settings(self, *, excluded: bool = False) -> str:
        """What changes the words stored from a file: the settings hash of its checkpoint (R5).

        `excluded` says that something of the file was left out by `exclude`: then a change of the
        exclusions makes it stale as well. Other files need not be read again for that.
        """
        settings = (
            f"tool_chars={self.tool_chars},subagents={self.subagents:d},"
            f"thinking={self.thinking:d},noise={self.noise:d}"
        )
        if not excluded:
            return settings
        patterns = "\0".join(self.exclude).encode()
        return f"{settings},exclude={hashlib.md5(patterns, usedforsecurity=False).hexdigest()}"

    def current_settings(self) -> frozenset[str]:
        """The settings of a file that was read as it would be read now; any other is stale."""
        return frozenset({self.reading_settings(), self.reading_settings(excluded=True)})

    def settings(self) -> Iterator[Setting]:
        """The home and every key, in the order of the table."""
        source, about = self.sources["home"], "The folder of the palace."
        yield Setting("home", str(self.home), source, paths.HOME_VARIABLE, about)
        for key in KEYS:
            value = _as_json(getattr(self, key.attribute))
            yield Setting(key.name, value, self.sources[key.name], key.variable, key.help)


def load(env: Environment | None = None) -> Config:
    """The configuration of the home that `env` names; a home without config.yaml is fine."""
    env = os.environ if env is None else env
    home = Path(paths.home(env))
    file = home / paths.CONFIG_YAML
    given = _from_file(file)
    values: dict[str, Any] = {}
    sources = {"home": paths.HOME_VARIABLE if env.get(paths.HOME_VARIABLE) else DEFAULT}
    for key in KEYS:
        if text := env.get(key.variable):  # set but empty counts as unset
            where, value = f"${key.variable}", _FROM_TEXT[key.kind](text)
            sources[key.name] = key.variable
        elif given.get(key.name) is not None:  # `exclude:` with nothing behind it is unset too
            where, value = str(file), given[key.name]
            sources[key.name] = paths.CONFIG_YAML
        else:
            where, value = DEFAULT, _default(key, env)
            sources[key.name] = DEFAULT
        values[key.attribute] = _CHECK[key.kind](value, _Place(key, where, env))
    return Config(home=home, **values, sources=MappingProxyType(sources))


def render_default() -> str:
    """A config.yaml in which every key is explained and commented out."""
    blocks = [
        "# MemPalace. Every key is commented out and shows its default. A variable wins over it.\n"
    ]
    for key in KEYS:
        value = json.dumps(_as_json(key.default), ensure_ascii=False)
        blocks.append(f"# {key.help}\n# Variable: {key.variable}\n#{key.name}: {value}\n")
    return "\n".join(blocks)


# --- config.yaml ------------------------------------------------------------------------------


def _from_file(file: Path) -> dict[str, Any]:
    """The keys that the file sets, by full name; `a: {b: 1}` and `a.b: 1` are the same."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return {}
    except NotADirectoryError as error:
        raise BadConfig(
            f"{Path(file).parent} is no folder", "choose another home with MEMPALACE_HOME"
        ) from error
    except OSError as error:
        raise BadConfig(
            f"cannot read {file}: {error.strerror}", "it must be a file that you may read"
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadConfig(
            f"{file} is not UTF-8: byte {error.start + 1} cannot be read", "save it as UTF-8"
        ) from error
    from mempalace.configfile import read_yaml  # yaml costs 20 ms: only where there is a file

    found: dict[str, Any] = {}
    for name, value, line in read_yaml(text, str(file), sections=_SECTIONS):
        if name not in _BY_NAME:
            raise _unknown(name, f"{file}, line {line}")
        if name in found:
            raise BadConfig(f"{file}, line {line}: `{name}` is set twice", "keep one of the two")
        found[name] = value
    return found


def _unknown(name: str, where: str) -> BadConfig:
    near = difflib.get_close_matches(name, _BY_NAME, n=1, cutoff=0.0)[0]
    return BadConfig(
        f"{where}: unknown key `{name}`",
        f"the nearest known key is `{near}`; `mempalace config` lists all",
    )


# --- defaults, and values out of environment variables ----------------------------------------


def _default(key: Key, env: Environment) -> Any:
    if key.name == "roots.claude-code" and (folder := env.get("CLAUDE_CONFIG_DIR")):
        return [str(Path(paths.expand(folder, env)).absolute() / "projects")]
    if key.name == "roots.codex" and (folder := env.get("CODEX_HOME")):
        home = Path(paths.expand(folder, env)).absolute()
        return [str(home / "sessions"), str(home / "archived_sessions")]
    return key.default


def _list_from_text(text: str) -> list[str]:
    return [part for part in text.split(os.pathsep) if part]


def _number_from_text(text: str) -> int | str:
    return int(text) if re.fullmatch(r"\s*[-+]?[0-9]{1,18}\s*", text) else text


_SWITCH_WORDS = {"1": True, "true": True, "yes": True, "on": True}
_SWITCH_WORDS |= {"0": False, "false": False, "no": False, "off": False}


def _switch_from_text(text: str) -> bool | str:
    return _SWITCH_WORDS.get(text.strip().lower(), text)


def _wings_from_text(text: str) -> dict[str, str | None]:
    pairs = (part.rpartition("=") for part in _list_from_text(text))
    return {folder or wing: wing if folder else None for folder, _, wing in pairs}


_FROM_TEXT: Mapping[str, Callable[[str], Any]] = {
    "folders": _list_from_text,
    "globs": _list_from_text,
    "number": _number_from_text,
    "switch": _switch_from_text,
    "wings": _wings_from_text,
}


# --- checks: a raw value in, a value of Config out --------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands, for the sentence that refuses it."""

    key: Key
    where: str
    env: Environment

    def refuse(self, expected: str, value: object) -> BadConfig:
        shown = json.dumps(value, ensure_ascii=False, default=str)
        return BadConfig(
            f"{self.where}: `{self.key.name}` must be {expected}, not {shown[:80]}", self.key.help
        )


def _check_texts(value: Any, place: _Place, expected: str) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise place.refuse(expected, value)
    for item in value:
        if not isinstance(item, str) or not item:
            raise place.refuse(expected, item)
    return [paths.expand(item, place.env) for item in value]


def _check_folders(value: Any, place: _Place) -> tuple[Path, ...]:
    folders = _check_texts(value, place, "a list of folders")
    for folder in folders:
        if not Path(folder).is_absolute():  # a daemon's working folder is not the user's
            raise place.refuse("a list of absolute folders", folder)
    return tuple(dict.fromkeys(Path(folder) for folder in folders))


def _check_globs(value: Any, place: _Place) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_check_texts(value, place, "a list of globs")))


def _check_number(value: Any, place: _Place) -> int:
    expected = f"a whole number of at least {place.key.minimum}"
    if isinstance(value, bool) or not isinstance(value, int) or value < place.key.minimum:
        raise place.refuse(expected, value)
    return value


def _check_switch(value: Any, place: _Place) -> bool:
    if not isinstance(value, bool):
        raise place.refuse("true or false", value)
    return value


def _check_wings(value: Any, place: _Place) -> Mapping[str, str]:
    expected = "a mapping of absolute folders to names of wings"
    if not isinstance(value, Mapping):
        raise place.refuse(expected, value)
    wings: dict[str, str] = {}
    for folder, wing in value.items():
        if not isinstance(folder, str) or not isinstance(wing, str) or not wing.strip():
            raise place.refuse(expected, {str(folder): wing})
        prefix = paths.expand(folder, place.env)
        if not Path(prefix).is_absolute():
            raise place.refuse(expected, {folder: wing})
        wings[os.path.normpath(prefix)] = wing
    return MappingProxyType(dict(sorted(wings.items(), key=lambda pair: (-len(pair[0]), pair[0]))))


_CHECK: Mapping[str, Callable[[Any, _Place], Any]] = {
    "folders": _check_folders,
    "globs": _check_globs,
    "number": _check_number,
    "switch": _check_switch,
    "wings": _check_wings,
}


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [str(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value
