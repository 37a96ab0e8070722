"""How templates are told whether and how much a model is to think."""

from __future__ import annotations

from typing import Any

OFF = "none"


def thinking_variables(*, on: bool | None = None, effort: str | None = None) -> dict[str, Any]:
    """Variables of a template; what is None is left to it. The effort ``none`` turns thinking off.

    Families name the switch differently: ``enable_thinking`` is Qwen's, ``thinking`` that of DeepSeek and Granite.
    """
    if effort == OFF:
        on = False
    switch = {} if on is None else {"enable_thinking": on, "thinking": on}
    return switch | ({} if effort is None else {"reasoning_effort": effort})
