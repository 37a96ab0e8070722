from __future__ import annotations

import json

import jsonschema

from tests.structured.generator import SchemaGenerator


def test_the_same_seed_gives_the_same_schemas() -> None:
    first, second = SchemaGenerator(3), SchemaGenerator(3)
    assert [first.schema() for _ in range(20)] == [second.schema() for _ in range(20)]


def test_schemas_are_valid_and_use_every_keyword() -> None:
    generator = SchemaGenerator(20)
    schemas = [generator.schema() for _ in range(200)]
    for schema in schemas:
        jsonschema.Draft202012Validator.check_schema(schema)
    written = json.dumps(schemas)
    keywords = (
        "type const enum minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"
        " items prefixItems minItems maxItems properties required additionalProperties anyOf oneOf allOf $ref $defs"
    )
    assert [word for word in keywords.split() if f'"{word}": ' not in written] == []
