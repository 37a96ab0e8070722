"""JSON requests and their objects."""

from __future__ import annotations

import json
from random import Random

from guide.records import answer, draw, json_schema, request
from guide.scoring import fits_schema


def test_an_object_fits_the_schema_of_its_fields() -> None:
    for seed in range(200):
        fields = draw(Random(seed))
        assert fits_schema(json.loads(answer(fields)), json.loads(json_schema(fields)))


def test_a_request_names_every_field_and_gives_every_value() -> None:
    for seed in range(200):
        random = Random(seed)
        fields = draw(random)
        text = request(fields, random)
        assert all(field.key in text and field.shown in text for field in fields)
