"""The book of topics, read once."""

from __future__ import annotations

import pytest

from guide.questions import EVALUATION, Question, read
from guide.templates import Templates
from guide.topics import Book, load


@pytest.fixture(scope="session")
def book() -> Book:
    return load()


@pytest.fixture(scope="session")
def questions() -> list[Question]:
    return read(EVALUATION)


@pytest.fixture(scope="session")
def templates(book: Book) -> Templates:
    return Templates(book)
