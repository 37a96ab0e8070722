"""Writes the tables of docs/settings.md: ``python -m tools.docs.settings_page``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.inspect import Field, StructType

from llmd.config.schema import Config
from llmd.config.setting_docs import setting_docs
from llmd.config.setting_text import setting_text
from llmd.config.setting_values import PREFIX, struct_fields
from llmd.config.values import expected_form

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
MARK = "<!-- The rest is written by `python -m tools.docs.settings_page`. -->\n"
HEAD = "| setting | variable | value | default | meaning |\n|---|---|---|---|---|\n"


def with_tables(text: str) -> str:
    """Return the page with current tables; what people wrote is above the mark."""
    return text.partition(MARK)[0] + MARK + "".join(tables(Config))


def tables(kind: type[Struct], table: str = "") -> Iterator[str]:
    """Yield a section for each struct that has settings. ``table`` is their table in the file."""
    settings = []
    for field in struct_fields(kind):
        if isinstance(field.type, StructType):
            yield from tables(field.type.cls, table or field.name)
        else:
            settings.append(field)
    if settings:
        title = (inspect.getdoc(kind) or "").partition("\n")[0]
        if any(isinstance(field.type, StructType) for field in struct_fields(kind)):
            title = "Logs and traces."
        yield f"\n## [{table}]: {title.rstrip('.')}\n\n{HEAD}" + "".join(map(row, settings))


def row(field: Field) -> str:
    """Return the row of a setting."""
    name = field.name
    default = setting_text(name, field.default)
    cells = [
        f"`{name}`",
        f"`{PREFIX}{name.upper()}`",
        expected_form(field.type),
        default or "not set",
        setting_docs()[name],
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
