from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from llmd.grammar.rewriting.drafts import Draft, draft_of, modern
from tests.structured.conformity import disagreements

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"


@pytest.mark.parametrize(
    ("older", "newest"),
    [
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"exclusiveMaximum": True}, {}),
        ({"maxLength": 2.0}, {"maxLength": 2}),
        ({"items": [{}, False], "additionalItems": False}, {"prefixItems": [{}, False], "items": False}),
        ({"items": [{}]}, {"prefixItems": [{}]}),
        ({"items": {}, "additionalItems": False}, {"items": {}}),
        (
            {"dependencies": {"a": ["b"], "c": {"minProperties": 1}}, "dependentRequired": {"x": ["y"]}},
            {"dependentRequired": {"x": ["y"], "a": ["b"]}, "dependentSchemas": {"c": {"minProperties": 1}}},
        ),
        ({"items": {"$schema": DRAFT_7}}, {"items": {}}),
    ],
)
def test_is_written_as_the_newest_draft_has_it(older: dict[str, Any], newest: dict[str, Any]) -> None:
    assert modern(older, Draft.DRAFT_2020_12) == newest


def test_keywords_of_newer_drafts_are_notes_in_older_ones() -> None:
    assert disagreements({"$schema": DRAFT_2019, "prefixItems": [{"type": "string"}]}) == []


@pytest.mark.parametrize(
    ("named", "draft"),
    [
        ({}, Draft.DRAFT_2020_12),
        ({"$schema": DRAFT_7}, Draft.DRAFT_7),
        ({"$schema": "https://json-schema.org/draft-07/schema"}, Draft.DRAFT_7),
        ({"$schema": DRAFT_2019}, Draft.DRAFT_2019_09),
        ({"$schema": "http://json-schema.org/draft/2020-12/schema#"}, Draft.DRAFT_2020_12),
    ],
)
def test_the_draft_is_the_named_one(named: dict[str, Any], draft: Draft) -> None:
    assert draft_of(named) == draft


@pytest.mark.parametrize("named", ["http://example.org/mine", "http://json-schema.org/draft-03/schema#", 5])
def test_another_meta_schema_is_refused(named: Any) -> None:
    with pytest.raises(GrammarError, match="names the meta-schema"):
        enforceable({"$schema": named})


def test_what_a_draft_evaluates_otherwise_is_refused() -> None:
    schema = {"$schema": DRAFT_2019, "allOf": [{"contains": {"const": 1}}], "unevaluatedItems": False}
    with pytest.raises(GrammarError, match="contains and unevaluatedItems, which draft 2019-09"):
        enforceable(schema)
