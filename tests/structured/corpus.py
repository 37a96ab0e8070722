"""The corpus of JSON schemas: written by hand, and generated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from tests.structured.generator import SchemaGenerator

WRITTEN = json.loads((Path(__file__).parent / "schemas.json").read_text())
NUM_GENERATED = 200


def accepted() -> list[Any]:
    """Schemas that bind answers: at least three hundred."""
    generator = SchemaGenerator(seed=20)
    return [*WRITTEN["accepted"], *(generator.schema() for _ in range(NUM_GENERATED))]


def refused() -> list[tuple[str, Any]]:
    """Schemas that cannot be enforced, with what the refusal must name."""
    return [(named, schema) for named, schema in WRITTEN["refused"]]


def problem(schema: Any, answer: str) -> str | None:
    """Why an answer does not fit its schema, None where it does."""
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        value = json.loads(answer)
    except ValueError as exc:
        return f"{answer!r} is not JSON: {exc}"
    error = jsonschema.exceptions.best_match(
        kind(schema, format_checker=kind.FORMAT_CHECKER).iter_errors(value)
    )
    return None if error is None else f"{answer!r} does not fit {json.dumps(schema)}: {error.message}"
