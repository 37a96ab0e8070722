"""Whether grammars of JSON schemas allow exactly the values that fit, with jsonschema as the judge.

A grammar prescribes the order of properties: a value is allowed where it is in one order of its names.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import jsonschema

from llmd.api.messages import Vocabulary
from llmd.grammar.compiler import GrammarCompiler
from llmd.grammar.json_schema import schema_grammar
from llmd.grammar.matcher import Matcher

SCALARS: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, -1, 1.5, 2.5, "", "a", "ab", "b", "abc", "ba", "ca",
)  # fmt: skip
NAMES = ("a", "b", "c", "ab")
VALUES: tuple[Any, ...] = (
    *SCALARS,
    *([], [1], ["a"], [1, 1], [1, 2], [2, 1], ["a", 1], ["a", "b"], ["a", "b", "a"], [True, 1, None], [[1], {"a": 1}]),
    *({}, {"a": 1}, {"a": "a"}, {"b": 1}, {"a": 1, "b": 2}, {"a": None, "c": 1}, {"ab": "x", "b": True}),
    *({"a": 1, "b": 1, "c": 1}, {"a": {"b": 1}}, {"b": [1, "a"]}, {"c": 2, "ab": 1, "a": 3, "b": ""}),
)  # fmt: skip
"""Values of every type, for schemas that speak of the names and texts above."""


@functools.cache
def compiler() -> GrammarCompiler:
    """One whose vocabulary are the bytes."""
    return GrammarCompiler(Vocabulary(tuple(bytes([value]) for value in range(256))), 256)


def disagreements(schema: Any, values: Iterable[Any] = VALUES) -> list[str]:
    """The values that the grammar of a schema allows and the judge does not, or the other way round."""
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    judge = kind(schema, format_checker=kind.FORMAT_CHECKER)
    matcher = compiler().compile(schema_grammar(schema))
    return [
        f"{json.dumps(value)} is {'' if is_valid else 'not '}valid"
        for value in values
        if allows(matcher, value) != (is_valid := judge.is_valid(value))
    ]


def allows(matcher: Matcher, value: Any) -> bool:
    """Whether a grammar allows a value in some order of its names."""
    return any(takes(matcher, json.dumps(one, ensure_ascii=False)) for one in orders(value))


def allows_whole(matcher: Matcher, value: Any) -> bool:
    """The same, where whole numbers may be written without a fraction."""
    return any(
        takes(matcher, json.dumps(one, ensure_ascii=False))
        for given in (value, whole(value))
        for one in orders(given)
    )


def whole(value: Any) -> Any:
    """The value with whole numbers as integers."""
    if isinstance(value, dict):
        return {name: whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def takes(matcher: Matcher, text: str) -> bool:
    """Whether a grammar over bytes allows a text as a whole answer."""
    tokens = list(text.encode(errors="surrogatepass"))
    followed = matcher.fork().compiled
    return bool(followed.try_consume_tokens(tokens) == len(tokens) and followed.is_accepting())


def orders(value: Any) -> Iterator[Any]:
    """The value with its names in every order."""
    if isinstance(value, dict):
        for names in itertools.permutations(value):
            for parts in itertools.product(*(tuple(orders(value[name])) for name in names)):
                yield dict(zip(names, parts, strict=True))
    elif isinstance(value, list):
        yield from map(list, itertools.product(*(tuple(orders(one)) for one in value)))
    else:
        yield value
