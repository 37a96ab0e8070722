"""Results of the checks of plugins."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from llmd.testing.conformance import CaseResult


class NotTested(msgspec.Struct, frozen=True):
    """Something that could not be checked."""

    what: str
    reason: str


Result = CaseResult | NotTested


def case(name: str, check: Callable[[], str | None]) -> CaseResult:
    """Run a check, which returns what is wrong (None or empty: nothing) or raises."""
    try:
        problem = check() or ""
    except Exception as error:  # noqa: BLE001 - plugin code may raise anything
        problem = f"raised {type(error).__name__}: {error}"
    return CaseResult(name, None, problem)


def unequal(found: object, wanted: object) -> str:
    """Return what is wrong if two values differ."""
    return "" if found == wanted else f"returned {found!r}, expected {wanted!r}"
