"""The names that Codex's records have, and what a name alone tells.

Owns: the types that are known, and the lines that are passed over by their first bytes.
Never: looks into a record.
Called by: mempalace.transcripts.codex.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePath

from mempalace.transcripts.base import label

LINES = frozenset(
    [
        "session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
        "inter_agent_communication", "inter_agent_communication_metadata", "token_usage_record",
        "retained_context", "realtime_item", "security_risk_score",
    ]
)  # fmt: skip
OUTPUTS = frozenset(
    ["function_call_output", "custom_tool_call_output", "tool_search_output", "tool_result"]
)
ITEMS = OUTPUTS | frozenset(
    [
        "message", "reasoning", "function_call", "custom_tool_call", "local_shell_call",
        "web_search_call", "tool_search_call", "image_generation_call", "tool_call",
    ]
)  # fmt: skip
WORDLESS_ITEMS = frozenset(
    [
        "agent_message", "ghost_snapshot", "compaction", "compaction_summary",
        "context_compaction", "other",
    ]
)  # fmt: skip
WORDLESS_EVENTS = frozenset(
    [
        "agent_reasoning", "agent_reasoning_raw_content", "agent_reasoning_section_break",
        "token_count", "task_started", "turn_started", "task_complete", "turn_complete",
        "turn_aborted", "thread_rolled_back", "context_compacted", "thread_name_updated",
        "entered_review_mode", "exited_review_mode", "patch_apply_begin", "patch_apply_end",
        "mcp_tool_call_begin", "mcp_tool_call_end", "web_search_begin", "web_search_end",
        "view_image_tool_call", "exec_command_begin", "exec_command_end", "thread_goal_updated",
        "thread_settings_applied", "sub_agent_activity", "collab_agent_spawn_end",
        "collab_agent_interaction_end", "collab_waiting_end", "collab_close_end",
        "collab_resume_end", "collab_tool_call", "guardian_assessment", "error", "warning",
        "stream_error", "undo_started", "undo_completed", "image_generation_begin",
        "image_generation_end", "deprecation_notice", "dynamic_tool_call_request",
        "dynamic_tool_call_response", "turn_diff", "plan_update", "background_event",
        "shutdown_complete",
    ]
)  # fmt: skip
WORDLESS_PARTS = frozenset(
    [
        "Reasoning", "CommandExecution", "McpToolCall", "FileChange", "WebSearch", "Extension",
        "Plan", "HookPrompt", "Sleep", "ContextCompaction", "ImageView", "ImageGeneration",
        "EnteredReviewMode", "ExitedReviewMode",
    ]
)  # fmt: skip
TURN_ENDS = frozenset(["task_complete", "turn_complete", "turn_aborted", "thread_rolled_back"])
INJECTED_KINDS = ("user_instructions", "environment_context")
HEADER_FIELDS = frozenset(
    [
        "id", "timestamp", "instructions", "git", "cwd", "originator", "cli_version", "source",
        "model", "version", "user", "model_provider",
    ]
)  # fmt: skip

_UUID_AT_END = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?:_[^.]*)?$")
_WORDLESS_LINE = re.compile(
    rb'\{(?:"timestamp":\s*"[^"]{0,40}",\s*|"ordinal":\s*\d{1,20},\s*){0,2}'
    rb'"type":\s*"(compacted|world_state|token_usage_record)"'
)


def session_in_name(path: PurePath) -> str:
    """The UUID in a rollout's name, whatever stands around it; else the name."""
    name = path.name.removesuffix(".zst").removesuffix(".jsonl").removesuffix(".json")
    found = _UUID_AT_END.search(name)
    return found.group(1) if found else name


def named(what: str, kind: str, known: Collection[str]) -> str:
    """The rule under which a record without words is counted."""
    return f"{what} {kind}" if kind in known else f"unknown:{what} {label(kind)}"


def wordless_line(line: bytes) -> str:
    """The type of a line that holds no words of its own, by its first bytes, else ''.

    A line that was torn may have a whole record behind it: one that is not closed, or that has the
    beginning of another, is looked at in full. Inside strings such a beginning has backslashes.
    """
    found = _WORDLESS_LINE.match(line)
    if not found or not line.endswith((b"}", b"}\r")) or line.find(b'{"timestamp":', 1) > 0:
        return ""
    return found.group(1).decode()
