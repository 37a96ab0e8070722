"""Generates JSON that no client would send on purpose, with keys and values that readers look for."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

WORDS = (
    "type", "text", "role", "user", "assistant", "content", "message", "name", "function", "input", "tools",
    "tool_use", "tool_result", "tool_use_id", "id", "call_id", "function_call", "function_call_output", "output",
    "arguments", "reasoning", "summary", "input_text", "document", "source", "data", "title", "json_schema",
    "schema", "format", "effort", "low", "auto", "any", "tool", "none", "required", "namespace", "mode",
    "allowed_tools", "thinking", "enabled", "display", "is_error", "input_schema", "parameters", "description",
)  # fmt: skip
words = st.sampled_from(WORDS)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words | st.text(max_size=3)
garbage: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
