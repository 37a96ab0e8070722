from __future__ import annotations

import json
from typing import Any

import pytest

from llmd.api.parsing import CallFormat, Tool
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.chat.tools.written_calls import written_calls
from tests.daemon.builtin.parsers.readings import joined, run

FORMATS = {one.name: one for one in llmd_parsers() if one.reads == "calls"}
ARGUMENTS: dict[str, Any] = {
    "city": "Zürich, 'HB'\n[x]",
    "days": 3,
    "exact": True,
    "limit": None,
    "tags": ["a", 1, None],
    "spot": {"x": -1.5, "on": False, "inner": {"name": "y"}},
}
TYPES = {"city": "string", "days": "integer", "exact": "boolean", "tags": "array", "spot": "object"}
TOOLS = (
    Tool("find", {"type": "object", "properties": {name: {"type": kind} for name, kind in TYPES.items()}}),
    Tool("now", {"type": "object", "properties": {}}),
)


def form_of(name: str) -> CallFormat:
    form = FORMATS[name].load()
    assert isinstance(form, CallFormat)
    return form


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_calls_are_read_as_they_were_written(name: str) -> None:
    form = form_of(name)
    text = written_calls(form, [("find", ARGUMENTS), ("now", {}), ("find", {"city": "7"})])
    calls = [(call[0], json.loads(call[1])) for call in joined(run(form.open(TOOLS), [text]))]
    assert calls == [("find", ARGUMENTS), ("now", {}), ("find", {"city": "7"})]


def test_arguments_that_are_no_object_are_json() -> None:
    assert '"arguments": "half {"' in written_calls(form_of("hermes"), [("now", "half {")])
