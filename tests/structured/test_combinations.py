"""Whatever keywords a schema combines, its grammar allows what is valid and nothing else,
or the schema is refused.
"""

from __future__ import annotations

import json

import pytest

from llmd.api.errors import GrammarError
from tests.structured.combinations import CombinationGenerator
from tests.structured.conformity import disagreements


def check(seed: int, count: int) -> None:
    generator = CombinationGenerator(seed)
    num_followed = 0
    for _ in range(count):
        schema = generator.schema()
        try:
            assert disagreements(schema) == [], json.dumps(schema)
        except (GrammarError, RecursionError):  # the judge follows references to themselves without end
            continue
        num_followed += 1
    assert num_followed > count / 3


def test_a_hundred_combinations_are_kept_or_refused() -> None:
    check(seed=22, count=100)


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(8))
def test_thousands_of_combinations_are_kept_or_refused(seed: int) -> None:
    check(seed=seed, count=400)


def test_combinations_use_every_keyword_and_repeat_with_their_seed() -> None:
    first, second = CombinationGenerator(3), CombinationGenerator(3)
    schemas = [first.schema() for _ in range(200)]
    assert schemas == [second.schema() for _ in range(200)]
    written = json.dumps(schemas)
    keywords = (
        "type const enum minimum exclusiveMaximum minLength pattern format required maxItems minProperties properties"
        " additionalProperties patternProperties items prefixItems contains minContains maxContains propertyNames dependentRequired"
        " dependentSchemas if then else not allOf anyOf oneOf unevaluatedProperties unevaluatedItems uniqueItems $ref"
    )
    assert [word for word in keywords.split() if f'"{word}": ' not in written] == []
