"""How templates are told whether and how much a model is to think."""

from __future__ import annotations

from typing import Any

OFF = "none"

# Tokens; what Gemini's API documents for the same words. Higher efforts have no limit.
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}


def effort_budget(effort: str | None) -> int | None:
    """After how many tokens a model that was asked for this effort thinks no more; None: there is no limit."""
    return None if effort is None else _BUDGETS.get(effort)


def thinking_variables(*, on: bool | None = None, effort: str | None = None) -> dict[str, Any]:
    """Variables of a template; what is None is left to it. The effort ``none`` turns thinking off.

    Families name the switch differently: ``enable_thinking`` is Qwen's, ``thinking`` that of DeepSeek and Granite.
    """
    if effort == OFF:
        on = False
    switch = {} if on is None else {"enable_thinking": on, "thinking": on}
    return switch | ({} if effort is None else {"reasoning_effort": effort})
