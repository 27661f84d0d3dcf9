"""The YAML of config.yaml: text in, full key names, values and line numbers out.

Owns: what YAML allows and a configuration does not: keys given twice, a list at the top, two
    documents. An `exclude` that a second `exclude` silently replaced would let private words in.
Never: knows a key, opens a file. Apart from config.py, because yaml takes 20 ms to import.
Called by: config.load, only where there is a config.yaml.
"""

from collections.abc import Collection, Iterator
from typing import Any

import yaml

from mempalace.errors import BadConfig

_HINT = "see the comments that `mempalace init` writes into a new config.yaml"


def read_yaml(text: str, file: str, *, sections: Collection[str]) -> Iterator[tuple[str, Any, int]]:
    """Yield (name, value, line) of every key; keys of a section are named `section.key`."""
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            value = loader.construct_document(node) if node else None
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _not_yaml(file, error) from error
    if node is None or value is None:  # empty, or comments only
        return
    if not isinstance(node, yaml.MappingNode):
        raise BadConfig(f"{file}, line {_line(node)}: expected keys and values", _HINT)
    yield from _walk(node, value, file, sections=sections)


def _walk(
    node: yaml.MappingNode,
    value: dict[Any, Any],
    file: str,
    *,
    sections: Collection[str],
    prefix: str = "",
) -> Iterator[tuple[str, Any, int]]:
    seen: set[str] = set()
    # The names come from the nodes, because the constructed dict has lost the duplicates.
    for (key_node, value_node), name in zip(node.value, _names(node), strict=True):
        full = prefix + name
        if full in seen:
            raise BadConfig(
                f"{file}, line {_line(key_node)}: `{full}` is set twice", "keep one of the two"
            )
        seen.add(full)
        item = next((v for k, v in value.items() if str(k) == name), None)
        if prefix or name not in sections:
            _refuse_duplicates(value_node, file)
            yield full, item, _line(key_node)
        elif isinstance(value_node, yaml.MappingNode):
            yield from _walk(value_node, item or {}, file, sections=sections, prefix=name + ".")
        elif item is not None:  # a section with nothing in it sets nothing
            yield full, item, _line(key_node)


def _names(node: yaml.MappingNode) -> list[str]:
    return [str(key.value) for key, _ in node.value]


def _refuse_duplicates(node: yaml.Node, file: str) -> None:
    """The same for a mapping that is a value, as `wings` is."""
    if not isinstance(node, yaml.MappingNode):
        return
    names = _names(node)
    for (key, _), name in zip(node.value, names, strict=True):
        if names.count(name) > 1:
            raise BadConfig(
                f"{file}, line {_line(key)}: `{name}` is set twice", "keep one of the two"
            )


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _not_yaml(file: str, error: Exception) -> BadConfig:
    mark = getattr(error, "problem_mark", None)
    place = f"{file}, line {mark.line + 1}" if mark else file
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or error
    return BadConfig(f"{place}: not valid YAML: {problem}", _HINT)
