"""The guide's answers say what the documentation says."""

from __future__ import annotations

from pathlib import Path

import pytest

from guide.slots import EXIT_CODES
from guide.topics import OUTSIDE, Book

ROOT = Path(__file__).parents[2]
ABOUT_ITSELF = {OUTSIDE, "guide", "trust", "hello", "feeling", "thanks", "bye", "joke", "rude"}
# What the guide says of names that it does not know, and of all that llmd lacks without a topic for it.
IN_GENERAL = {"lacks-other"} | {
    f"unknown-{kind}" for kind in ("flag", "command", "setting", "route", "word", "quant", "fact")
}
# An exit code has one answer for each code; the codes have a test of their own.
NOT_FACTS = ABOUT_ITSELF | IN_GENERAL | {"exit-code"}


@pytest.fixture(scope="module")
def documentation() -> str:
    docs = ROOT / "docs"
    pages = [ROOT / "README.md", *sorted(docs.glob("*.md")), *sorted(docs.glob("api/*.md"))]
    return " ".join(" ".join(page.read_text(encoding="utf-8").split()) for page in pages)


def test_every_required_string_of_an_answer_stands_in_the_documentation(
    book: Book, documentation: str
) -> None:
    required = {
        t.render(text, {}) for t in book.topics.values() if t.name not in NOT_FACTS for text in t.required
    }
    assert len(required) > 200
    assert {text for text in required if text not in documentation} == set()


def test_every_exit_code_stands_in_the_documentation(documentation: str) -> None:
    listed = documentation.partition("Exit codes: ")[2].partition(" 130 Ctrl-C")[0]
    words = {
        "0": "done",
        "1": "failed",
        "2": "usage",
        "5": "not enough memory or disk",
        "6": "daemon not reachable",
    }
    assert [code for code, _ in EXIT_CODES if code != "130" and f"{code} " not in listed] == []
    assert all(
        f"{code} {words[code]}" in listed and words[code] in text
        for code, text in EXIT_CODES
        if code in words
    )


def test_every_answer_holds_its_required_strings(book: Book) -> None:
    for topic in book.topics.values():
        answer = topic.render(topic.answer, {})
        assert [text for text in topic.required if topic.render(text, {}) not in answer] == [], topic.name


def test_no_two_answers_are_equal(book: Book) -> None:
    answers = [topic.answer for topic in book.topics.values()]
    assert len(set(answers)) == len(answers)


def test_the_page_of_what_llmd_cannot_do_and_the_topics_name_the_same(book: Book) -> None:
    page = " ".join((ROOT / "docs" / "first-questions.md").read_text(encoding="utf-8").split())
    said = page.partition("## What llmd cannot do")[2]
    lacks = {name: t for name, t in book.topics.items() if t.refuses and name not in NOT_FACTS}
    assert len(lacks) >= 30
    assert [name for name, t in lacks.items() if not all(text in said for text in t.required)] == []
    assert said.count("llmd cannot") == len(lacks)
