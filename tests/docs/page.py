"""A page of documentation as its tables, and the tests that it links to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INTERFACE = (DOCS / "command-reference.md", DOCS / "python.md", *sorted((DOCS / "api").glob("*.md")))
"""The pages that list commands, flags, settings, Python calls, routes and request fields."""
LINK = re.compile(r"\[([a-z0-9 ]+)\]\(((?:\.\./)+tests/[^)]+\.py)\)")
CODE = re.compile(r"`([^`]+)`")
Row = Mapping[str, str]


class Shown(Struct, frozen=True):
    """A linked test. The text of the link is the test's name: ``[stops early](../tests/x/test_y.py)``."""

    file: Path
    name: str

    @property
    def exists(self) -> bool:
        return self.file.is_file() and self.name in names_of_tests(self.file)


@cache
def names_of_tests(file: Path) -> frozenset[str]:
    """Return the names of the test functions of a file."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = ast.walk(ast.parse(file.read_text()))
    return frozenset(node.name for node in found if isinstance(node, functions))


def linked_tests(text: str, folder: Path = DOCS) -> list[Shown]:
    """Return every test that a text links to; ``folder`` holds the page that the text is from."""
    return [
        Shown((folder / target).resolve(), f"test_{words.replace(' ', '_')}")
        for words, target in LINK.findall(text)
    ]


def tables(text: str) -> Iterator[list[Row]]:
    """Yield each table of a page as rows by column title."""
    for table in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        title, _, *rows = [cells(line) for line in table.splitlines()]
        yield [dict(zip(title, row, strict=True)) for row in rows]


def rows_with(text: str, column: str) -> list[Row]:
    """Return the rows of every table that has a column with this title."""
    return [row for table in tables(text) for row in table if column in row]


def cells(line: str) -> Sequence[str]:
    """Return the cells of a table line. A bar inside a cell is escaped with a backslash."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]
