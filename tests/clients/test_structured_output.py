"""Answers bound to schemas, through OpenAI's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import jsonschema
import openai
import pytest
from openai.types.chat import ChatCompletionUserMessageParam
from pydantic import BaseModel, Field

from tests.serving.running import MODEL, RunningDaemon

HELLO: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "Who is it?"}]


class Kind(StrEnum):
    CAT = "cat"
    DOG = "dog"


class Toy(BaseModel):
    name: str = Field(max_length=6)
    price: int = Field(ge=0, le=99)


class Pet(BaseModel):
    kind: Kind
    toys: list[Toy] = Field(max_length=2)
    owner: Kind | None


@pytest.fixture
def client(daemon: RunningDaemon) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_parsed_into_the_clients_own_types(client: openai.OpenAI, seed: int) -> None:
    answer = client.chat.completions.parse(
        model=MODEL, messages=HELLO, response_format=Pet, seed=seed, temperature=1.0, max_tokens=300
    )
    pet = answer.choices[0].message.parsed
    assert isinstance(pet, Pet)
    assert answer.choices[0].finish_reason == "stop"


def test_streams_are_parsed_as_well(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model=MODEL, messages=HELLO, response_format=Pet, seed=1, temperature=1.0, max_tokens=300
    ) as stream:
        parsed = [event.parsed for event in stream if event.type == "content.done"]
        final = stream.get_final_completion().choices[0].message.parsed
    assert isinstance(final, Pet)
    assert parsed == [final]


SCHEMAS: dict[str, dict[str, Any]] = {
    "union": {"oneOf": [{"const": "a"}, {"type": "integer", "minimum": 1, "maximum": 9}]},
    "pattern": {"type": "string", "pattern": "^[a-z]{3}-[0-9]{2}$"},
    "dates": {"type": "array", "items": {"type": "string", "format": "date"}, "minItems": 1, "maxItems": 2},
    "unicode": {
        "type": "object",
        "properties": {"größe": {"enum": ["klein", "groß"]}},
        "required": ["größe"],
    },
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_followed(client: openai.OpenAI, name: str) -> None:
    answer = client.chat.completions.create(
        model=MODEL,
        messages=HELLO,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": name, "schema": SCHEMAS[name], "strict": True},
        },
        temperature=0.8,
        seed=3,
        max_tokens=100,
    )
    jsonschema.validate(json.loads(answer.choices[0].message.content or ""), SCHEMAS[name])


def test_a_refusal_arrives_as_the_clients_own_error(client: openai.OpenAI) -> None:
    schema = {"type": "array", "uniqueItems": True}
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(
            model=MODEL,
            messages=HELLO,
            stream=True,
            response_format={"type": "json_schema", "json_schema": {"name": "set", "schema": schema}},
        )
    assert (refused.value.code, refused.value.param) == ("unsupported_schema", "response_format")
    assert "uniqueItems at #" in refused.value.message
