"""Whether an answer is right."""

from __future__ import annotations

import json
from typing import Any

from guide.questions import Question
from guide.topics import Book, Topic

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def is_right(question: Question, answer: str, book: Book) -> bool:
    """A sum must end with its result; an object must fit its schema and hold the values asked for; any other
    answer must hold all required strings of its topic and none that distinguishes another topic.
    """
    if question.sum:
        return _last_word(answer) == _last_word(question.answer(book))
    if question.object is not None:
        return _fits(answer, question.schema or {}, question.object)
    topic = book.topics[question.topic]
    required = [topic.render(text, question.values) for text in topic.required]
    return all(text in answer for text in required) and not any(
        text in answer for text in foreign(topic, question, book)
    )


def foreign(topic: Topic, question: Question, book: Book) -> set[str]:
    """Required strings of other topics, up to their first slot,
    that the right answer does not hold itself.
    """
    right = question.answer(book)
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
