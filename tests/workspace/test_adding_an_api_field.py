"""docs/adding-an-api-field.md: its example works, and what it says about the sources is true."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.docs.page import CODE, rows_with
from tests.workspace.page_examples import PACKAGE, ROOT, changes, copied_sources, missing_paths, page, run

PAGE = page("adding-an-api-field.md")
CHANGES = changes(PAGE)

EXERCISE = """
import json
import numpy as np
import llmd
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.embedded.options import check_names, read_options
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.sampling import read_sampling
from llmd.sampling.sampler_chain import RowContext, active_order, draw, selection_temperature
from llmd.sampling.shortlist import of_row

row = np.log(np.array([0.6, 0.25, 0.15], np.float32))  # 0.5 * 0.6 ** 2 is 0.18: the last token is removed

def params(**body):
    return read_sampling(RequestFields(body)).params(GenerationDefaults(), seed=1, choice=0)

def drawn(**body):
    contexts = [RowContext(position, 3, 1.0, 0.0) for position in range(200)]
    return sorted({draw(of_row(row), params(**body), context).token for context in contexts})

check_names({"top_a": 0.5})
try:
    read_sampling(RequestFields({"top_a": 1.5}))
    refused = None
except BadRequestError as error:
    refused = error.param
print(json.dumps({
    "file": llmd.__file__,
    "read": read_sampling(RequestFields({"top_a": "0.5"})).top_a,
    "parameter": params(top_a=0.5).top_a,
    "refused": refused,
    "engine": read_options({"top_a": 0.5}).sampling.top_a,
    "active": active_order(params(top_a=0.5)),
    "temperature": selection_temperature(params(top_a=0.5, temperature=0.7, samplers=["top_a", "temperature"])),
    "with": drawn(top_a=0.5),
    "without": drawn(),
    "left out": drawn(top_a=0.5, samplers=["top_k"]),
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the daemon with the field of the example does."""
    sources = copied_sources(tmp_path_factory.mktemp("sources"), CHANGES, {})
    answers: dict[str, Any] = run(EXERCISE, sources)
    assert answers["file"].startswith(str(sources))
    return answers


def test_a_sampler_changes_the_four_files_of_the_table() -> None:
    listed = [path for row in rows_with(PAGE, "what it holds") for path in CODE.findall(row["file"])]
    assert [path for path, _ in CHANGES] == listed
    assert len(set(listed)) == 4
    assert "changes four source files" in PAGE


def test_the_field_is_read_and_passed_to_the_engine(found: dict[str, Any]) -> None:
    assert (found["read"], found["parameter"], found["refused"]) == (0.5, 0.5, "top_a")


def test_an_engine_in_the_same_process_has_the_option(found: dict[str, Any]) -> None:
    assert found["engine"] == 0.5


def test_the_chain_runs_the_sampler_unless_the_list_of_samplers_lacks_it(found: dict[str, Any]) -> None:
    assert (found["active"], found["temperature"]) == (["top_a"], 1.0)
    assert (found["with"], found["without"], found["left out"]) == ([0, 1], [0, 1, 2], [0, 1, 2])


@pytest.mark.parametrize("row", rows_with(PAGE, "read in"), ids=lambda row: row["fields"])
def test_fields_are_read_where_the_table_says(row: dict[str, str]) -> None:
    for path in CODE.findall(row["read in"]):
        assert "RequestFields" in (PACKAGE / path).read_text()
    for name in CODE.findall(row["fields"]):
        assert any(f'"{name}"' in (PACKAGE / path).read_text() for path in CODE.findall(row["read in"]))
        pages = re.findall(r"\]\(([^)]+)\)", row["page"])
        assert any(f"`{name}`" in (ROOT / "docs" / linked).read_text() for linked in pages)


def test_each_path_exists() -> None:
    assert list(missing_paths(PAGE)) == []


def test_the_page_stays_short() -> None:
    assert len(PAGE.splitlines()) <= 120
