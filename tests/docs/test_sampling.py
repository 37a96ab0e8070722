"""docs/sampling.md and the page of OpenAI's API name every sampling field."""

from __future__ import annotations

from typing import get_type_hints

import pytest

from llmd.requests.sampling import SamplingOptions
from tests.docs.page import CODE, DOCS, rows_with

FIELDS = sorted(get_type_hints(SamplingOptions))


@pytest.mark.parametrize("field", FIELDS)
def test_every_sampling_field_has_its_line(field: str) -> None:
    rows = rows_with((DOCS / "api" / "openai.md").read_text(), "field")
    assert field in {name for row in rows for name in CODE.findall(row["field"])}


@pytest.mark.parametrize("field", FIELDS)
def test_every_sampling_field_is_explained(field: str) -> None:
    assert field in CODE.findall((DOCS / "sampling.md").read_text())


def test_there_are_fields() -> None:
    assert len(FIELDS) >= 20
