from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Llmd = Callable[..., Any]


def test_lists_names_and_rights_and_no_key(llmd: Llmd) -> None:
    assert json.loads(llmd("keys", "list", "--json").out)["keys"] == []
    secrets = [llmd("keys", "add", "laptop").out.strip(), llmd("keys", "add", "boss", "--manage").out.strip()]
    done = llmd("keys", "list", "--json")
    assert [(row["name"], row["right"]) for row in json.loads(done.out)["keys"]] == [
        ("laptop", "use"),
        ("boss", "manage"),
    ]
    assert not any(secret in done.out for secret in secrets)
