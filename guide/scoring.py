"""Whether an answer is right."""

from __future__ import annotations

import json
from typing import Any

from guide.questions import Question
from guide.topics import REFUSALS, Book, Topic

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def is_right(question: Question, answer: str, book: Book) -> bool:
    """A sum must end with its result; an object must fit its schema and hold the values asked for; where the
    truth is "I don't know" or "llmd cannot", the answer must be a refusal. Any other answer must hold all
    required strings of one of the question's topics and none that distinguishes another topic.
    """
    if question.sum:
        return _last_word(answer) == _last_word(question.answer(book))
    if question.object is not None:
        return _fits(answer, question.schema or {}, question.object)
    if question.refuse:
        return refuses(answer, book)
    return any(_is_about(book.topics[name], question, answer, book) for name in question.topics)


def refuses(answer: str, book: Book) -> bool:
    """Whether an answer begins with "I don't know" or "llmd cannot", and holds no required string of a topic
    that has another answer, unless a taught refusal has the string too.
    """
    if not answer.startswith(REFUSALS):
        return False
    taught = "\n".join(topic.answer for topic in book.topics.values() if topic.refuses)
    facts = {
        text.partition("[")[0]
        for topic in book.topics.values()
        if not topic.refuses
        for text in topic.required
    }
    return not any(text and text in answer and text not in taught for text in facts)


def _is_about(topic: Topic, question: Question, answer: str, book: Book) -> bool:
    required = [topic.render(text, question.values) for text in topic.required]
    return all(text in answer for text in required) and not any(
        text in answer for text in foreign(topic, question, book)
    )


def foreign(topic: Topic, question: Question, book: Book) -> set[str]:
    """Required strings of other topics, up to their first slot,
    that the right answer does not hold itself.
    """
    right = topic.render(topic.answer, question.values)
    texts = {
        text.partition("[")[0]
        for other in book.topics.values()
        if other is not topic
        for text in other.required
    }
    return {text for text in texts if text and text not in right}


def _last_word(answer: str) -> str:
    return answer.rstrip(" .").rpartition(" ")[2]


def _fits(answer: str, schema: dict[str, Any], expected: dict[str, Any]) -> bool:
    try:
        found = json.loads(answer)
    except json.JSONDecodeError:
        return False
    return isinstance(found, dict) and fits_schema(found, schema) and found == expected


def fits_schema(found: dict[str, Any], schema: dict[str, Any]) -> bool:
    """Whether an object has exactly the schema's members, each of its type."""
    members = schema["properties"]
    return found.keys() == members.keys() and all(
        _is(found[key], member["type"]) for key, member in members.items()
    )


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
