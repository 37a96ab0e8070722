"""Leave most cases of the longest tests to `make test-full`, as `short_run.toml` says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("short_run.toml")


def mark_exhaustive(items: Sequence[pytest.Item], kept: Mapping[str, Sequence[str]]) -> None:
    """Mark the tests that a short run leaves out; ``kept`` are the patterns of `LIST`."""
    for item in items:
        if not is_kept(item.nodeid, kept):
            item.add_marker(pytest.mark.exhaustive)


def kept_cases() -> Mapping[str, Sequence[str]]:
    """Return patterns of the cases that a short run has, by file or test."""
    return tomllib.loads(LIST.read_text())


def unused_patterns(node_ids: Sequence[str], kept: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what in the list fits no test of ``node_ids``, which are all tests there are."""
    cases: dict[str, list[str]] = {}
    for node_id in node_ids:
        test, case = _split(node_id)
        for key in (test, test.partition("::")[0]):
            cases.setdefault(key, []).append(case)
    return [
        f"{key}: {pattern}".removesuffix(": ")
        for key, patterns in kept.items()
        for pattern in patterns or ("",)
        if not any(not pattern or _fits(case, pattern) for case in cases.get(key, ()))
    ]


def is_kept(node_id: str, kept: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a short run has a test."""
    test, case = _split(node_id)
    patterns = kept.get(test)
    if patterns is None and case:
        patterns = kept.get(test.partition("::")[0])
    return patterns is None or any(_fits(case, pattern) for pattern in patterns)


def _split(node_id: str) -> tuple[str, str]:
    test, _, case = node_id.partition("[")
    return test, case.removesuffix("]")


def _fits(case: str, pattern: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), case, re.DOTALL) is not None
