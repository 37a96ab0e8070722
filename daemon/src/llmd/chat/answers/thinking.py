"""Template variables and token budgets that control a model's reasoning."""

from __future__ import annotations

from typing import Any

OFF = "none"

# In tokens, as Gemini's API documents for the same names. Higher efforts have no limit.
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}


def effort_budget(effort: str | None) -> int | None:
    """Return how many tokens of reasoning an effort allows; None: no limit."""
    return None if effort is None else _BUDGETS.get(effort)


def thinking_variables(*, on: bool | None = None, effort: str | None = None) -> dict[str, Any]:
    """Return template variables. None leaves the choice to the template; effort ``none`` turns thinking off.

    The name of the switch depends on the family: ``enable_thinking`` for Qwen, ``thinking`` for DeepSeek and
    Granite.
    """
    if effort == OFF:
        on = False
    switch = {} if on is None else {"enable_thinking": on, "thinking": on}
    return switch | ({} if effort is None else {"reasoning_effort": effort})
