"""Types that msgspec decodes are prepared: otherwise threads that use one first at once crash the process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [path for folder in ("daemon", "tui", "plugins") for path in (ROOT / folder).rglob("src/**/*.py")]
PLACES = {
    "msgspec.json.decode": None,
    "msgspec.msgpack.decode": None,
    "msgspec.convert": 1,
    "msgspec.json.Decoder": 0,
    "msgspec.msgpack.Decoder": 0,
}
"""The place of the type among the arguments; None: it is always named."""
BUILT_IN = {"Any", "dict[str, Any]", "dict[str, object]"}
"""Types without fields."""


def test_every_decoded_type_is_prepared() -> None:
    own = ROOT / "daemon" / "src" / "llmd" / "api" / "decoding.py"
    found = [f"{path}:{line}" for path in SOURCES if path != own for line in unprepared(path.read_text())]
    assert found == []
    assert SOURCES


@pytest.mark.parametrize(
    "source",
    [
        "msgspec.json.decode(text, type=Found)",
        "msgspec.msgpack.decode(text, type=tuple[Found, ...])",
        "msgspec.convert(values, Found)",
        "msgspec.convert(values, type=Found)",
        "msgspec.json.Decoder(Found)",
        "from msgspec.json import decode",
    ],
)
def test_a_type_that_is_not_prepared_is_found(source: str) -> None:
    assert list(unprepared(source)) == [1]


def unprepared(source: str) -> Iterator[int]:
    """Yield the lines where msgspec gets a type that is not prepared, or is imported in another way."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in ("msgspec.json", "msgspec.msgpack"):
            yield node.lineno
        if isinstance(node, ast.Call) and ast.unparse(node.func) in PLACES:
            form = form_of(node)
            if form is not None and not is_ready(form):
                yield node.lineno


def form_of(call: ast.Call) -> ast.expr | None:
    named = next((keyword.value for keyword in call.keywords if keyword.arg == "type"), None)
    place = PLACES[ast.unparse(call.func)]
    given = call.args[place] if place is not None and len(call.args) > place else None
    return named if named is not None else given


def is_ready(form: ast.expr) -> bool:
    is_prepared = isinstance(form, ast.Call) and ast.unparse(form.func) == "prepared"
    return is_prepared or ast.unparse(form) in BUILT_IN
