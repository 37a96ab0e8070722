"""Tools that training offers: what is asked for can be called, and what is called was asked for."""

from __future__ import annotations

from itertools import islice
from random import Random

import jsonschema

from guide.corpus import Corpus
from guide.decontamination import Heldout
from guide.tool_questions import calls_in
from guide.tool_results import draw
from guide.tools import load_families
from guide.topics import OUTSIDE, Book
from guide.turns import Conversation

SEED = 3


def with_tools(book: Book) -> list[Conversation]:
    drawn = islice(Corpus(book, Heldout(())).conversations(SEED), 3000)
    return [conversation for conversation in drawn if "Tools:\n" in conversation.system]


def test_every_call_fits_its_definition_and_holds_what_was_asked_for() -> None:
    random = Random(SEED)
    families = [offer for family in load_families() for offer in (family.offer(random) for _ in range(20))]
    for offer in families:
        text, (name, arguments) = offer.ask(random)
        assert name == offer.name
        jsonschema.validate(arguments, {**offer.function["parameters"], "additionalProperties": False})
        shown = [value for value in arguments.values() if not isinstance(value, bool)]
        assert [value for value in shown if str(value) not in text] == []


def test_a_quarter_of_the_conversations_offers_tools_and_most_of_these_call(book: Book) -> None:
    conversations = with_tools(book)
    assert 650 < len(conversations) < 850
    calling = 0
    for conversation in conversations:
        names = {line.partition("(")[0] for line in conversation.system.partition("Tools:\n")[2].splitlines()}
        calls = [call for turn in conversation.turns for call in calls_in(turn.answer) or ()]
        assert {name for name, _ in calls} <= names
        calling += bool(calls)
    assert calling > 0.6 * len(conversations)


def test_some_calls_go_together_and_results_are_answered_in_the_next_turn(book: Book) -> None:
    pairs = 0
    for conversation in with_tools(book):
        for turn, after in zip(conversation.turns, conversation.turns[1:], strict=False):
            if after.question.startswith("<tool_response>"):
                calls = calls_in(turn.answer)
                assert calls
                assert after.question.count("<tool_response>") == len(calls)
                assert not calls_in(after.answer)
                pairs += len(calls) == 2
    assert pairs > 5


def test_what_no_tool_does_is_refused_as_without_tools(book: Book) -> None:
    refusal = book.topics[OUTSIDE].answer
    answers = [turn.answer for conversation in with_tools(book) for turn in conversation.turns]
    assert answers.count(refusal) > 20


def test_results_are_told_with_their_values() -> None:
    random = Random(SEED)
    results = dict(draw(random) for _ in range(300))
    assert "Done." in results.values()
    assert [
        content
        for content, told in results.items()
        if told.startswith("The result is ") and content not in told
    ] == []
