"""Tools with made-up names: a requested tool can be called, and answers describe only the requested tool."""

from __future__ import annotations

from random import Random

import jsonschema

from guide.made_up_tools import SUBCOMMANDS, made_up
from guide.tools import Offer

SEED = 11


def drawn(count: int) -> list[Offer]:
    random = Random(SEED)
    return [made_up(random) for _ in range(count)]


def test_every_call_fits_its_definition_and_holds_what_was_asked_for() -> None:
    random = Random(SEED)
    for offer in drawn(1000):
        text, (name, arguments) = offer.ask(random)
        assert name == offer.name
        jsonschema.validate(arguments, {**offer.function["parameters"], "additionalProperties": False})
        shown = [value for value in arguments.values() if not isinstance(value, bool)]
        assert [value for value in shown if str(value) not in text] == []


def test_another_request_for_the_same_tool_has_other_values() -> None:
    random = Random(SEED)
    for offer in drawn(50):
        calls = [offer.ask(random)[1][1] for _ in range(20)]
        assert offer.function["parameters"]["properties"] == {} or any(call != calls[0] for call in calls)


def test_some_arguments_are_optional_and_some_of_these_are_left_out() -> None:
    random = Random(SEED)
    left_out = 0
    for offer in drawn(500):
        parameters = offer.function["parameters"]
        arguments = offer.ask(random)[1][1]
        left_out += len(arguments) < len(parameters["properties"])
    assert left_out > 30


def test_a_tool_may_be_like_another_in_its_noun_or_its_verb() -> None:
    random = Random(SEED)
    names = [made_up(random, like="pause_robot").name.lower() for _ in range(200)]
    nouns = sum("robot" in name for name in names)
    pausing = next(verbs for verbs in SUBCOMMANDS if "pause" in verbs)
    verbs = sum(any(name.startswith(verb) for verb in pausing) for name in names)
    assert nouns > 50
    assert verbs > 30
