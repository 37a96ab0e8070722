from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Llmd = Callable[..., Any]


def test_takes_a_key_back(llmd: Llmd) -> None:
    llmd("keys", "add", "laptop")
    assert (llmd("keys", "rm", "laptop").code, llmd("keys", "rm", "laptop").code) == (0, 3)
    assert json.loads(llmd("keys", "list", "--json").out)["keys"] == []
