"""Names that look like llmd's and are not."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from random import Random

import pytest

from guide.grammar import normal
from guide.unreal import QUALITIES, THINGS, UNREAL, UNREAL_REGEX, UNREAL_VERBS, real_names

DOCS = Path(__file__).parents[2] / "docs"


def test_the_documentation_holds_the_real_names() -> None:
    assert {
        "--max-ctx",
        "--kv-dtype",
        "serve",
        "pull",
        "/v1/messages",
        "max_queue",
        "LLMD_MAX_CTX=4096",
    } <= real_names()
    schema = json.loads((DOCS / "config.schema.json").read_text(encoding="utf-8"))
    for section in ("server", "engine", "client"):
        assert schema["properties"][section]["properties"].keys() <= real_names()


@pytest.mark.parametrize("kind", UNREAL)
def test_no_drawn_name_is_a_real_one(kind: str) -> None:
    drawn = {UNREAL[kind](Random(seed)) for seed in range(3000)}
    assert len(drawn) > 10
    assert drawn.isdisjoint(real_names())


def test_a_name_that_is_real_is_drawn_again() -> None:
    names = {f"--{quality}-{thing}" for quality, thing in product([*QUALITIES, *THINGS], THINGS)}
    real = names & real_names()
    assert real  # such as --max-memory
    assert real.isdisjoint(UNREAL["flag"](Random(seed)) for seed in range(20000))


def test_no_command_that_llmd_has_is_called_unreal() -> None:
    listed = (DOCS / "command-reference.md").read_text(encoding="utf-8")
    commands = {
        name.split()[0] for name in re.findall(r"^\| `([a-z]+(?: [a-z]+)?)` \|", listed, re.MULTILINE)
    }
    assert {"serve", "pull", "doctor"} <= commands
    assert commands.isdisjoint(UNREAL_VERBS)


@pytest.mark.parametrize("kind", UNREAL)
def test_the_expression_matches_all_but_invented_names(kind: str) -> None:
    expression = re.compile(UNREAL_REGEX[kind])
    drawn = [normal(UNREAL[kind](Random(seed))) for seed in range(400)]
    assert sum(bool(expression.fullmatch(name)) for name in drawn) > 250
    assert not expression.fullmatch("stop the daemon")
