"""Candidates: no pattern that matches a text is missing, and few others are found."""

from __future__ import annotations

import re
from random import Random

import pytest

from guide.candidates import Candidates
from guide.grammar import NUMBER, SLOT_REGEX, VALUE, normal, parse
from guide.topics import Book

PATTERNS = {
    "choice": "(stop|end|) the daemon",
    "joined": "stop(s|ped)",
    "number": "port[port]",
    "value": "load [name]",
    "enumeration": "the [light] light",
    "nothing": "never [rare]",
}
SLOTS = {"port": NUMBER, "name": VALUE, "light": " ?(?:red|dark blue) ?", "rare": "(?!)"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("stop the daemon", ["choice"]),
        ("the daemon", ["choice"]),
        ("the daemons", []),
        ("stopped", ["joined"]),
        ("stop", ["choice", "joined"]),  # it has the words, in another order or not all
        ("port8080", ["number"]),
        ("port 80 80", ["number"]),
        ("port eighty", []),
        ("load phi 3 mini", []),
        ("the dark blue light", ["enumeration"]),
        ("the green light", []),
        ("never", ["nothing"]),
        ("never mind", []),
    ],
)
def test_a_candidate_has_all_words_of_the_text_or_takes_any_word(text: str, names: list[str]) -> None:
    patterns = [parse(pattern, {}) for pattern in PATTERNS.values()]
    found = Candidates(patterns, [SLOTS] * len(patterns)).of(text)
    assert [list(PATTERNS)[number] for number in found] == sorted([*names, "value"], key=list(PATTERNS).index)


def test_every_pattern_is_a_candidate_for_each_text_that_it_matches(book: Book) -> None:
    patterns = [pattern for topic in book.topics.values() for pattern in topic.wordings.get("ask", ())]
    candidates = Candidates(patterns, [SLOT_REGEX] * len(patterns))
    random, values = Random(1), {"number": "8080", "name": "phi-3-mini"}
    for number, pattern in list(enumerate(patterns))[::5]:
        regex = re.compile(pattern.regex())
        for _ in range(3):
            text = normal(
                pattern.sample(random, lambda slot: values["number" if slot in SLOT_REGEX else "name"])
            )
            if regex.fullmatch(text):
                assert number in candidates.of(text), text
