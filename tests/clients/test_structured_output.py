"""Answers bound to schemas, through the clients of OpenAI and Ollama."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import jsonschema
import ollama
import openai
import pytest
from openai.types.chat import ChatCompletionUserMessageParam
from pydantic import BaseModel, Field

from tests.serving.http import send
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


ONE_NAME = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}
SEEDS = range(6)


def other_names(contents: Iterable[str]) -> bool:
    """Whether any answer has, or is writing, a property that `ONE_NAME` does not name."""
    return any("".join(content.split()) != '{"a":1}' for content in contents)


@pytest.mark.parametrize(
    "field",
    ["json_schema", "response_format"],
)
def test_objects_are_closed_where_the_field_is_llama_cpps(client: openai.OpenAI, field: str) -> None:
    schema: Any = ONE_NAME if field == "json_schema" else {"type": "json_object", "schema": ONE_NAME}
    assert not other_names(ask(client, {field: schema}))
    openais = {"type": "json_schema", "json_schema": {"name": "one", "schema": ONE_NAME}}
    assert other_names(ask(client, {"response_format": openais}))


def ask(client: openai.OpenAI, body: dict[str, Any]) -> list[str]:
    answers = [
        client.chat.completions.create(
            model=MODEL, messages=HELLO, seed=seed, temperature=1.5, max_tokens=120, extra_body=body
        )
        for seed in SEEDS
    ]
    return [answer.choices[0].message.content or "" for answer in answers]


def test_objects_are_closed_for_ollamas_and_llama_cpps_clients(daemon: RunningDaemon) -> None:
    options: dict[str, Any] = {"temperature": 1.5, "num_predict": 120}
    with ollama.Client(host=daemon.url) as client:
        said = [
            client.chat(MODEL, [dict(HELLO[0])], format=ONE_NAME, options={**options, "seed": seed})
            for seed in SEEDS
        ]
    assert not other_names(answer.message.content or "" for answer in said)
    sampling = {"temperature": 1.5, "n_predict": 120, "json_schema": ONE_NAME}
    completed = [
        send(daemon, "POST", "/completion", {"prompt": "Who?", "seed": seed, **sampling}).json
        for seed in SEEDS
    ]
    assert not other_names(answer["content"] for answer in completed)
