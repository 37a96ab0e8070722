"""Give a template the name of a reasoning effort that it knows.

APIs define more efforts than most models have. Some templates refuse the names that they do not know; such a
name is replaced by the nearest one that the template accepts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from llmd.chat.answers.thinking import OFF
from llmd.chat.templates.render_errors import TemplateFailedError, TemplateRefusedError

logger = logging.getLogger(__name__)

Variables = dict[str, Any]
Result = TypeVar("Result")

VARIABLE = "reasoning_effort"
# From little to much reasoning.
_NAMES = ("minimal", "low", "medium", "high", "xhigh", "max")
# Hunyuan's name for no reasoning.
_NO_THINK = "no_think"
# gpt-oss writes any name into the prompt, but was trained with these three.
_HARMONY_MARK, _HARMONY_NAMES = "<|channel|>", frozenset({"low", "medium", "high"})
_ERRORS = (TemplateRefusedError, TemplateFailedError)


class Efforts:
    """Chooses the name of the effort for each render, and remembers the choices. Thread-safe."""

    def __init__(self) -> None:
        self._chosen: dict[tuple[str, str, bool, bool], str | None] = {}

    def render(self, source: str, variables: Variables, render: Callable[[Variables], Result]) -> Result:
        """Return what ``render`` makes of the variables, perhaps with another name of the effort.

        If the template refuses the effort but renders without it, the other names are tried, the nearest
        first; if it accepts none, the variable is left out. The choice is remembered for the template and
        effort, separately for prompts with tools and for those without thinking, since a template may check
        the effort only in some of them.

        Raises what ``render`` raises if the effort is not the cause, or has a name that no API defines.
        """
        asked = variables.get(VARIABLE)
        if not isinstance(asked, str) or asked not in (OFF, *_NAMES):
            return render(variables)
        key = (source, asked, bool(variables.get("tools")), variables.get("enable_thinking") is False)
        first = self._chosen[key] if key in self._chosen else _trained(asked, source)
        try:
            return render(_with(variables, first))
        except _ERRORS:
            without = _attempt(render, _with(variables, None))
            if without is None:
                raise
        self._chosen[key], result = _first_accepted(render, variables, asked) or (None, without)
        logger.info("reasoning_effort_replaced", extra={"asked": asked, "used": self._chosen[key]})
        return result


def _first_accepted(
    render: Callable[[Variables], Result], variables: Variables, asked: str
) -> tuple[str, Result] | None:
    for name in _nearest(asked):
        result = _attempt(render, _with(variables, name))
        if result is not None:
            return name, result
    return None


def _attempt(render: Callable[[Variables], Result], variables: Variables) -> Result | None:
    try:
        return render(variables)
    except _ERRORS:
        return None


def _trained(asked: str, source: str) -> str:
    """Return the name that the model was trained with, if the template's format tells."""
    if _HARMONY_MARK not in source or asked in _HARMONY_NAMES:
        return asked
    return next(name for name in _nearest(asked) if name in _HARMONY_NAMES)


def _nearest(asked: str) -> list[str]:
    """Return the other names, the nearest first; of two that are equally near, the one for more reasoning.

    No reasoning replaces no other effort.
    """
    if asked == OFF:
        return [_NO_THINK, *_NAMES]
    places = {name: place - _NAMES.index(asked) for place, name in enumerate(_NAMES) if name != asked}
    return sorted(places, key=lambda name: (abs(places[name]), -places[name]))


def _with(variables: Variables, effort: str | None) -> Variables:
    others = {name: value for name, value in variables.items() if name != VARIABLE}
    return others if effort is None else {**others, VARIABLE: effort}
