"""What the clients of a soak ask for: every kind of request, in every dialect, drawn from a random generator.

Some requests come again and again, so that prefixes are found and answers can be compared; others hold names that never come
twice, so that whatever keeps names without a limit grows.
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
    """A request: ``end`` is what a whole reply has near its end; replies of one ``name`` have the same text each time."""

    path: str
    body: Mapping[str, Any]
    end: bytes = DONE
    status: int = 200
    name: str = ""


class Kind(Struct, frozen=True):
    """A kind of request: how many of a hundred are of it, how it is made, and how its client behaves."""

    share: int
    make: Callable[[Random], Asked]
    behaves: str = "reads"


def chat(random: Random) -> Asked:
    """A chat, greedy or sampled."""
    seed = random.randrange(1 << 30)
    sampled = {"temperature": 1.0, "top_p": 0.9, "seed": seed} if seed % 2 else {"temperature": 0}
    return _chat(words(random, 12), max_tokens=random.randrange(20, 120), **sampled)


def seeded(random: Random) -> Asked:
    """A completion that was asked before, with the same seed."""
    place = random.randrange(40)
    fields = {"temperature": 1.1, "top_k": 50, "seed": place, "max_tokens": 60}
    return _completion(ids(Random(place), 40 + place), f"seeded {place}", **fields)


def shared_prefix(random: Random) -> Asked:
    """One of a few long beginnings with one of a few ends."""
    start, end = random.randrange(6), random.randrange(12)
    prompt = ids(Random(start), 400) + ids(Random(100 + end), 20)
    return _completion(prompt, f"prefix {start} {end}", temperature=0, max_tokens=24)


def long_prompt(random: Random) -> Asked:
    """More prompt than a step carries, not seen before."""
    return _completion(ids(random, random.randrange(600, 900)), temperature=0, max_tokens=40)


def schema(random: Random) -> Asked:
    """JSON of a schema: every other one has names that never came before."""
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
    """A regular expression."""
    outputs = {"regex": f"(yes|no), [a-z]{{{random.randrange(3, 30)}}}"}
    return _completion(ids(random, 12), structured_outputs=outputs, max_tokens=64)


def tools(random: Random) -> Asked:
    """A call that must be made."""
    properties = {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer", "maximum": 9}}
    parameters = {"type": "object", "properties": properties, "required": ["city"]}
    function = {"name": "weather", "description": "The weather of a city.", "parameters": parameters}
    offered = [{"type": "function", "function": function}]
    return _chat(words(random, 6), tools=offered, tool_choice="required", max_tokens=100)


def choices(random: Random) -> Asked:
    """Several answers to one prompt."""
    return _completion(ids(random, 50), n=random.randrange(2, 7), temperature=1.0, max_tokens=40)


def prompt_logprobs(random: Random) -> Asked:
    """The log-probabilities of a prompt."""
    body = {"prompt": ids(random, 200), "prompt_logprobs": 5, "logprobs": 5, "max_tokens": 8}
    return Asked("/v1/completions", body, b'"usage"')


def wide(random: Random) -> Asked:
    """An answer with more bytes than a connection holds."""
    return _completion(ids(random, 20), max_tokens=200, ignore_eos=True, logprobs=20)


def endless(random: Random) -> Asked:
    """An answer whose client will not see its end."""
    return _completion(ids(random, random.randrange(10, 300)), max_tokens=600, ignore_eos=True, logprobs=1)


def ollama_chat(random: Random) -> Asked:
    """Ollama's chat."""
    options = {"num_predict": 40, "temperature": 0.8, "seed": random.randrange(1000)}
    return Asked("/api/chat", {"messages": _said(words(random, 8)), "options": options}, OLLAMA_DONE)


def ollama_generate(random: Random) -> Asked:
    """Ollama's completion, bound to JSON."""
    body = {"prompt": words(random, 8), "options": {"num_predict": 40}, "format": "json"}
    return Asked("/api/generate", body, OLLAMA_DONE)


def anthropic(random: Random) -> Asked:
    """Anthropic's messages with a tool that may be called."""
    tool = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
    body = {"messages": _said(words(random, 8)), "max_tokens": 50, "tools": [tool], "stream": True}
    return Asked("/v1/messages", body, b"event: message_stop")


def responses(random: Random) -> Asked:
    """OpenAI's responses."""
    body = {"input": words(random, 8), "max_output_tokens": 16, "stream": True, "store": True}
    return Asked("/v1/responses", body, b"event: response.")


def llamacpp(random: Random) -> Asked:
    """llama.cpp's completion."""
    return Asked("/completion", {"prompt": words(random, 8), "n_predict": 30, "stream": True}, b'"stop":true')


def refused(random: Random) -> Asked:
    """What cannot be served, with names that never came before."""
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
"""What fills the stores that a daemon bounds by number: responses that are kept, grammars that were tried, events."""


def words(random: Random, count: int) -> str:
    """A prompt."""
    return " ".join(random.choices(WORDS, k=count)) + "?"


def ids(random: Random, count: int) -> list[int]:
    """A prompt of so many tokens."""
    return random.choices(TOKENS, k=count)


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _chat(text: str, **fields: Any) -> Asked:
    return Asked("/v1/chat/completions", {"messages": _said(text), "stream": True, **fields})


def _completion(prompt: list[int], name: str = "", **fields: Any) -> Asked:
    return Asked("/v1/completions", {"prompt": prompt, "stream": True, **fields}, name=name)
