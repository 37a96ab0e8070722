"""`llmd config get` prints one value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Llmd = Callable[..., Any]


def test_prints_the_value_and_on_standard_error_its_origin(llmd: Llmd, file: Path) -> None:
    assert llmd("config", "get", "slots").out == "8\n"
    assert llmd("config", "get", "slots").err == "from default\n"
    llmd("config", "set", "slots", "3")
    llmd("config", "set", "slots", "4", "-m", "guide")
    assert (llmd("config", "get", "engine.slots").out, llmd("config", "get", "slots").err) == (
        "3\n",
        f"from {file}:2\n",
    )
    assert llmd("config", "get", "slots", "-m", "guide").out == "4\n"
    assert llmd("config", "get", "slots", "-m", "another").out == "3\n"
    found = json.loads(llmd("config", "get", "slots", "--json").out)
    assert found == {"schema": 1, "name": "engine.slots", "value": 3, "origin": str(file), "line": 2}


@pytest.mark.parametrize(
    ("name", "text"),
    [("threads", "\n"), ("no_auth", "false\n"), ("drain_s", "30\n"), ("kv_spool", "1073741824\n")],
)
def test_values_are_in_the_form_that_scripts_read(llmd: Llmd, name: str, text: str) -> None:
    assert llmd("config", "get", name).out == text


def test_lists_have_one_element_per_line_and_keys_are_hidden(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMD_ADDR", "127.0.0.1:1, unix:/x")
    monkeypatch.setenv("LLMD_API_KEY", "secret")
    assert llmd("config", "get", "addr").out == "127.0.0.1:1\nunix:/x\n"
    assert llmd("config", "get", "api_key").out == "(hidden)\n"
