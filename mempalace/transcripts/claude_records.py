"""The types of record that Claude Code writes, and whether a record is one of its own.

Owns: the list of types that hold no words of a conversation, and how a file is recognised.
Never: reads what a record says.
Called by: mempalace.transcripts.claude_code.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

WORDLESS = frozenset(
    [
        "summary",
        "custom-title",
        "ai-title",
        "agent-name",
        "agent-setting",
        "last-prompt",
        "file-history-snapshot",
        "progress",
        "pr-link",
        "mode",
        "permission-mode",
        "atis-latch",
        "bridge-session",
        "frame-link",
        "worktree-state",
        "relocated",
        "started",
        "result",
        "system",
        "attachment",
        "tool_use",
        "tool_result",
    ]
)
_OTHERS_USE_TOO = frozenset(["system", "result", "started", "tool_use", "tool_result"])


def is_ours(record: dict[str, Any]) -> bool:
    """Any of the first records will do: of 400 live files none began with a turn."""
    kind = record.get("type")
    if kind in ("user", "assistant", "human"):
        return isinstance(record.get("message"), dict)
    if kind == "queue-operation":
        return True
    if isinstance(kind, str) and kind in WORDLESS:
        named = {"sessionId", "uuid", "agentId"} & record.keys()
        return kind not in _OTHERS_USE_TOO or bool(named)
    return "parentUuid" in record or ("sessionId" in record and "uuid" in record)


def is_subagents(path: PurePath) -> bool:
    """By its name: `agent-*.jsonl`, or `<session>/subagents/…` and `…/subagents/workflows/…`."""
    return path.stem.startswith("agent-") or "subagents" in path.parts[-4:-1]


def is_agents(record: dict[str, Any]) -> bool:
    """Is a line a sub-agent's own? Old ones name their agent and lack the flag."""
    aside = record.get("isSidechain")
    return aside is True or (aside is None and isinstance(record.get("agentId"), str))
