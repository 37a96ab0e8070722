"""Settings are checked against what the daemon says, and the model's values are shown."""

from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.model_settings import Range, accepted_ranges, applied, checked, model_values
from llmd_tui.screens.chat.request_body import ROUTE
from llmd_tui.screens.chat.store.records import Settings
from tests.tui.scripted_daemon import ScriptedDaemon

FIELDS = {"temperature": {"minimum": 0, "maximum": 2}, "top_p": {"exclusiveMinimum": 0, "maximum": 1}}


def described(fields: dict[str, Any]) -> dict[str, Any]:
    """What ``/openapi.json`` says of a route with these fields."""
    content = {"application/json": {"schema": {"properties": fields}}}
    return {"paths": {ROUTE: {"post": {"requestBody": {"content": content}}}}}


async def test_ranges_are_those_of_the_daemons_description(daemon: ScriptedDaemon) -> None:
    assert await accepted_ranges(daemon) == {}
    daemon.gets["/openapi.json"] = {"paths": {}}
    assert await accepted_ranges(daemon) == {}
    daemon.gets["/openapi.json"] = described(FIELDS)
    assert await accepted_ranges(daemon) == {
        "temperature": Range(minimum=0, maximum=2),
        "top_p": Range(exclusive_minimum=0, maximum=1),
    }


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(temperature=3.0), "temperature must be at least 0 and at most 2, not 3"),
        (Settings(temperature=-1.0), "temperature must be at least 0 and at most 2, not -1"),
        (Settings(top_p=0.0), "top_p must be greater than 0 and at most 1, not 0"),
    ],
)
def test_a_value_that_the_daemon_would_refuse_is_said(settings: Settings, words: str) -> None:
    ranges = {"temperature": Range(minimum=0, maximum=2), "top_p": Range(exclusive_minimum=0, maximum=1)}
    with pytest.raises(LlmdError, match=words):
        checked(settings, ranges)
    checked(Settings(temperature=2.0, top_p=1.0, seed=5), ranges)
    checked(settings, {})


async def test_the_models_values_have_the_names_of_the_settings(daemon: ScriptedDaemon) -> None:
    assert await model_values(daemon, "guide") == {}
    daemon.posts["/api/show"] = {"parameters": "temperature    0.5\nnum_predict  64\nrepeat_penalty 1.1"}
    assert await model_values(daemon, "guide") == {
        "temperature": "0.5",
        "max_tokens": "64",
        "repetition_penalty": "1.1",
    }


@pytest.mark.parametrize(
    ("settings", "values", "words"),
    [
        (Settings(), {}, "Every setting is the model's."),
        (Settings(), {"temperature": "0.5"}, "Every setting is the model's: temperature 0.5."),
        (
            Settings(temperature=0.1),
            {"temperature": "0.5", "top_p": "0.9"},
            "temperature 0.1; the model's: top_p 0.9",
        ),
        (Settings(temperature=0.1), {"temperature": "0.5"}, "temperature 0.1"),
    ],
)
def test_the_settings_that_apply_are_said(settings: Settings, values: dict[str, str], words: str) -> None:
    assert applied(settings, values) == words
