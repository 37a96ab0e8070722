"""The JSON Schema Test Suite, which `make test-setup` fetches, and what grammars make of it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import schema_grammar
from tests.structured.conformity import allows, allows_whole, compiler

FOLDER = Path(__file__).parents[2] / ".json-schema-suite"
EXCEPTIONS = Path(__file__).parent / "suite_exceptions.toml"
DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema",
    "6": "http://json-schema.org/draft-06/schema",
    "7": "http://json-schema.org/draft-07/schema",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


@dataclass
class Outcome:
    """What came of the schemas of a draft, by their names in the suite."""

    num_schemas: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """Schemas with the message of the error."""
    valid_not_allowed: set[str] = field(default_factory=set)
    invalid_allowed: set[str] = field(default_factory=set)


def outcome(draft: str, *, optional: bool = True) -> Outcome:
    """Compile each schema of a draft and follow each of its instances."""
    found = Outcome()
    for name, case in cases(draft, optional=optional):
        found.num_schemas += 1
        try:
            matcher = compiler().compile(schema_grammar(_with_draft(case["schema"], draft)))
        except GrammarError as error:
            found.refused[name] = error.message
            continue
        for test in case["tests"]:
            instance = f"{name}: {test['description']}"
            if test["valid"] and not allows_whole(matcher, test["data"]):
                found.valid_not_allowed.add(instance)
            elif not test["valid"] and allows(matcher, test["data"]):
                found.invalid_allowed.add(instance)
    return found


def cases(draft: str, *, optional: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schemas of a draft with their instances, by file and description."""
    folder = FOLDER / f"draft{draft}"
    paths = sorted(folder.rglob("*.json") if optional else folder.glob("*.json"))
    assert paths, f"{folder} is empty: remove {FOLDER} and run `make test-setup`, which fetches it"
    for path in paths:
        file = path.relative_to(folder).with_suffix("").as_posix()
        for case in json.loads(path.read_text()):
            yield f"{file}: {case['description']}", case


def _with_draft(schema: Any, draft: str) -> Any:
    return {"$schema": DRAFTS[draft]} | schema if isinstance(schema, dict) else schema


@dataclass(frozen=True)
class Exceptions:
    """What the table lists for a draft."""

    refused: dict[str, str]
    """Schemas with a part of the message."""
    valid_not_allowed: set[str]
    invalid_allowed: set[str]


def exceptions(draft: str, *, optional: bool = True) -> Exceptions:
    """The exceptions of a draft, as `EXCEPTIONS` lists them."""
    table = tomllib.loads(EXCEPTIONS.read_text())

    def listed(group: dict[str, Any]) -> Iterator[str]:
        for name, drafts in group["drafts"].items():
            if draft in drafts.split() and (optional or not name.startswith("optional/")):
                yield name

    refused = {name: group["message"] for group in table["refused"] for name in listed(group)}
    valid, invalid = (
        {name for group in table[key] for name in listed(group)}
        for key in ("valid_not_allowed", "invalid_allowed")
    )
    return Exceptions(refused, valid, invalid)
