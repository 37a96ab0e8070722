"""`llmd config schema` prints the JSON Schema of the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from llmd.config.json_schema import json_schema

Llmd = Callable[..., Any]


def test_prints_the_schema(llmd: Llmd) -> None:
    assert json.loads(llmd("config", "schema").out) == json_schema()
