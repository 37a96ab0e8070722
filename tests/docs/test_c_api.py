"""docs/c-api.md has the functions, constants and options of the library, with the words of its header."""

from __future__ import annotations

import re

from tests.bindings.building import SOURCES
from tests.bindings.tables import CALLS, CONSTANTS, DAEMON_OPTIONS, EXPLANATIONS, FUNCTIONS, REQUEST_OPTIONS
from tests.docs.page import CODE, DOCS, Row, rows_with

PAGE = (DOCS / "c-api.md").read_text()
KINDS = {
    "TEXT": "text",
    "TEXTS": "text; each call adds one",
    "INTEGER": "a whole number",
    "NUMBER": "a number",
    "BOOLEAN": "`true` or `false`",
    "JSON": "JSON",
    "CHOICE": "a word or a JSON object",
    "MEMBERS": "a JSON object: more fields of the request",
}


def first_part(text: str) -> str:
    """A sentence, or what stands before its semicolon."""
    found = re.match(r"(.*?)[.;](?: |$)", f"{text} ")
    assert found is not None, text
    return found[1]


def code(row: Row, column: str) -> str:
    (name,) = CODE.findall(row[column])
    return str(name)


def test_every_function_has_its_line_with_the_words_of_the_header() -> None:
    rows = [(code(row, "function"), row["what it does"]) for row in rows_with(PAGE, "function")]
    assert rows == [(name, first_part(EXPLANATIONS[name])) for name in FUNCTIONS]


def test_every_constant_has_its_line_with_the_words_of_the_header() -> None:
    rows = [(code(row, "status"), row["number"], row["when"]) for row in rows_with(PAGE, "status")]
    rows += [(code(row, "kind"), row["number"], row["text"]) for row in rows_with(PAGE, "kind")]
    assert rows == [(name, str(number), meaning) for name, (number, meaning) in CONSTANTS.items()]


def test_every_option_of_a_request_has_its_line() -> None:
    rows = [(code(row, "option"), row["value"], row["sent with"]) for row in rows_with(PAGE, "sent with")]
    expected = [
        (name, KINDS[kind], ", ".join(call for call in CALLS if call in calls))
        for name, (kind, calls) in REQUEST_OPTIONS.items()
    ]
    assert rows == expected


def test_every_option_of_a_daemon_has_its_line() -> None:
    rows = [row for row in rows_with(PAGE, "option") if "what it does" in row]
    assert [name for row in rows for name in CODE.findall(row["option"])] == list(DAEMON_OPTIONS)


def test_default_times_are_those_of_the_sources() -> None:
    sources = (SOURCES / "src" / "daemon.c").read_text() + (SOURCES / "src" / "load.c").read_text()
    times = dict(re.findall(r"(\w+)_MS = (\d+)", sources))
    for row in rows_with(PAGE, "option"):
        if (name := row["option"].strip("`")).endswith("_timeout_ms"):
            assert f"({times[name.removesuffix('_timeout_ms').upper()]})" in row["what it does"]
