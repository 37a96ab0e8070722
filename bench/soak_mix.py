"""The requests of a soak: every kind, in every API, drawn at random.

Some requests repeat, so that prefixes are cached and answers can be compared. Others have unique names, so
that any store of names without a limit grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from msgspec import Struct

TOKENS = range(16, 2000)
"""Ordinary tokens of the guide."""
WORDS = "model daemon token stream prompt answer memory engine plugin device layer block cache start stop list".split()
DONE, OLLAMA_DONE = b"data: [DONE]", b'"done":true'


class Asked(Struct, frozen=True):
    """A request and its expected response."""

    path: str
    body: Mapping[str, Any]
    end: bytes = DONE
    """What a complete response has near its end."""
    status: int = 200
    name: str = ""
    """Responses with the same name must have the same text."""


class Kind(Struct, frozen=True):
    """A kind of request."""

    share: int
    """Percentage of all requests."""
    make: Callable[[Random], Asked]
    behaves: str = "reads"
    """How its client behaves."""


def chat(random: Random) -> Asked:
    """Make a chat, greedy or sampled."""
    seed = random.randrange(1 << 30)
    sampled = {"temperature": 1.0, "top_p": 0.9, "seed": seed} if seed % 2 else {"temperature": 0}
    return _chat(words(random, 12), max_tokens=random.randrange(20, 120), **sampled)


def seeded(random: Random) -> Asked:
    """Make one of 40 seeded completions, which repeat."""
    place = random.randrange(40)
    fields = {"temperature": 1.1, "top_k": 50, "seed": place, "max_tokens": 60}
    return _completion(ids(Random(place), 40 + place), f"seeded {place}", **fields)


def shared_prefix(random: Random) -> Asked:
    """Combine one of a few long prefixes with one of a few suffixes."""
    start, end = random.randrange(6), random.randrange(12)
    prompt = ids(Random(start), 400) + ids(Random(100 + end), 20)
    return _completion(prompt, f"prefix {start} {end}", temperature=0, max_tokens=24)


def long_prompt(random: Random) -> Asked:
    """Make a new prompt that is longer than a prefill chunk."""
    return _completion(ids(random, random.randrange(600, 900)), temperature=0, max_tokens=40)


def schema(random: Random) -> Asked:
    """Make a request for JSON with a schema; half of the schemas have new names."""
    number = random.randrange(1 << 30) if random.random() < 0.5 else random.randrange(4)
    properties = {
        f"name{number}": {"type": "string", "maxLength": 12},
        "count": {"type": "integer", "maximum": 99},
    }
    wanted = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": wanted}}
    return _chat("Count the models.", response_format=form, max_tokens=80)


def grammar(random: Random) -> Asked:
    """Make a request with a regular expression."""
    outputs = {"regex": f"(yes|no), [a-z]{{{random.randrange(3, 30)}}}"}
    return _completion(ids(random, 12), structured_outputs=outputs, max_tokens=64)


def tools(random: Random) -> Asked:
    """Make a request with a required tool call."""
    properties = {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer", "maximum": 9}}
    parameters = {"type": "object", "properties": properties, "required": ["city"]}
    function = {"name": "weather", "description": "The weather of a city.", "parameters": parameters}
    offered = [{"type": "function", "function": function}]
    return _chat(words(random, 6), tools=offered, tool_choice="required", max_tokens=100)


def choices(random: Random) -> Asked:
    """Make a request for several answers to one prompt."""
    return _completion(ids(random, 50), n=random.randrange(2, 7), temperature=1.0, max_tokens=40)


def prompt_logprobs(random: Random) -> Asked:
    """Make a request for the log-probabilities of a prompt."""
    body = {"prompt": ids(random, 200), "prompt_logprobs": 5, "logprobs": 5, "max_tokens": 8}
    return Asked("/v1/completions", body, b'"usage"')


def wide(random: Random) -> Asked:
    """Make a request whose answer exceeds a connection's buffers."""
    return _completion(ids(random, 20), max_tokens=200, ignore_eos=True, logprobs=20)


def endless(random: Random) -> Asked:
    """Make a request for a long answer, which its client does not read to the end."""
    return _completion(ids(random, random.randrange(10, 300)), max_tokens=600, ignore_eos=True, logprobs=1)


def ollama_chat(random: Random) -> Asked:
    """Make a chat of Ollama's API."""
    options = {"num_predict": 40, "temperature": 0.8, "seed": random.randrange(1000)}
    return Asked("/api/chat", {"messages": _said(words(random, 8)), "options": options}, OLLAMA_DONE)


def ollama_generate(random: Random) -> Asked:
    """Make a completion of Ollama's API in JSON mode."""
    body = {"prompt": words(random, 8), "options": {"num_predict": 40}, "format": "json"}
    return Asked("/api/generate", body, OLLAMA_DONE)


def anthropic(random: Random) -> Asked:
    """Make a request of Anthropic's messages API with an optional tool."""
    tool = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
    body = {"messages": _said(words(random, 8)), "max_tokens": 50, "tools": [tool], "stream": True}
    return Asked("/v1/messages", body, b"event: message_stop")


def responses(random: Random) -> Asked:
    """Make a request of OpenAI's responses API."""
    body = {"input": words(random, 8), "max_output_tokens": 16, "stream": True, "store": True}
    return Asked("/v1/responses", body, b"event: response.")


def llamacpp(random: Random) -> Asked:
    """Make a completion of llama.cpp's API."""
    return Asked("/completion", {"prompt": words(random, 8), "n_predict": 30, "stream": True}, b'"stop":true')


def refused(random: Random) -> Asked:
    """Make an invalid request with a new name."""
    number = random.randrange(1 << 30)
    prompt = {"prompt": "x", "stream": True}
    bad = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {"const": number}}}}
    return random.choice(
        [
            Asked("/v1/completions", prompt | {"model": f"absent-{number}"}, b"", 404),
            Asked(f"/v1/absent/{number}", {}, b"", 404),
            Asked("/v1/completions", {"prompt": ids(random, 1200)}, b"", 400),
            Asked("/v1/completions", prompt | {"temperature": number}, b"", 400),
            Asked("/v1/chat/completions", {"messages": _said("x"), "response_format": bad}, b"", 400),
        ]
    )


MIX: Mapping[str, Kind] = {
    "chats": Kind(12, chat),
    "seeded completions, asked again": Kind(10, seeded),
    "shared beginnings, asked again": Kind(10, shared_prefix),
    "long prompts": Kind(6, long_prompt),
    "JSON schemas": Kind(6, schema),
    "regular expressions": Kind(4, grammar),
    "required tools": Kind(5, tools),
    "2 to 6 answers to a prompt": Kind(5, choices),
    "prompt logprobs": Kind(4, prompt_logprobs),
    "Ollama chats": Kind(5, ollama_chat),
    "Ollama JSON": Kind(3, ollama_generate),
    "Anthropic messages": Kind(5, anthropic),
    "OpenAI responses": Kind(5, responses),
    "llama.cpp completions": Kind(3, llamacpp),
    "slow readers": Kind(3, wide, "reads late"),
    "leave in the stream": Kind(5, endless, "leaves"),
    "leave before it": Kind(4, endless, "leaves at once"),
    "refused": Kind(5, refused),
}


FILL: Mapping[str, Kind] = {"OpenAI responses": Kind(80, responses), "JSON schemas": Kind(20, schema)}
"""Requests that fill the daemon's stores of limited size: responses, tried grammars, events."""


def words(random: Random, count: int) -> str:
    """Return a random prompt."""
    return " ".join(random.choices(WORDS, k=count)) + "?"


def ids(random: Random, count: int) -> list[int]:
    """Return a random prompt of ``count`` token ids."""
    return random.choices(TOKENS, k=count)


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _chat(text: str, **fields: Any) -> Asked:
    return Asked("/v1/chat/completions", {"messages": _said(text), "stream": True, **fields})


def _completion(prompt: list[int], name: str = "", **fields: Any) -> Asked:
    return Asked("/v1/completions", {"prompt": prompt, "stream": True, **fields}, name=name)
