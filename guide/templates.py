"""Which training template, if any, could have made a wording."""

from __future__ import annotations

import re
from collections.abc import Iterator

from guide.grammar import normal, parse
from guide.tools import POLITE, load_families
from guide.topics import KINDS, Book


class Templates:
    """All templates of a book and of the tools as regular expressions over normal forms."""

    def __init__(self, book: Book) -> None:
        self._expressions = list(_expressions(book))

    def match(self, text: str) -> str | None:
        """Name of a topic one of whose templates can make the text, whatever its capitals and marks."""
        plain = normal(text)
        return next((name for name, expression in self._expressions if expression.fullmatch(plain)), None)


def _expressions(book: Book) -> Iterator[tuple[str, re.Pattern[str]]]:
    for topic in book.topics.values():
        for kind in KINDS:
            patterns = topic.wordings.get(kind, ())
            if not patterns:
                continue
            words = "(?:" + "|".join(pattern.regex() for pattern in patterns) + ")"
            frames = book.frames.get(kind)
            yield from ((topic.name, re.compile(frame.regex(words))) for frame in frames or ())
            if not frames:
                yield topic.name, re.compile(words)
    polite = [parse(form.replace("{}", "@"), {}) for form in ("{}", *POLITE)]
    for family in load_families():
        asks = "(?:" + "|".join(pattern.regex(slots=family.slot_regexes()) for pattern in family.asks) + ")"
        yield from ((family.id, re.compile(form.regex(asks))) for form in polite)
