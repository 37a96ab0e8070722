"""docs/adding-an-op.md: the places that it lists hold `Glu`, and its example runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from llmd.api import Glu
from tests.docs.page import CODE, rows_with
from tests.workspace.page_examples import BASES, ROOT, changes, copied_sources, missing_paths, page, run

PAGE = page("adding-an-op.md")
CHANGES = changes(PAGE)
PLACES = rows_with(PAGE, "what to add")
CHECKS = rows_with(PAGE, "missing")
NATIVE = ROOT / "plugins" / "backend_cpu" / "csrc"

EXERCISE = """
import json
import numpy as np
import llmd
from llmd.api.encoding import encode
from llmd.api.ops import OP_KINDS
from llmd.testing.conformance import all_cases, check_case, reference_outcome
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.runs import lower_range

tried = {op.kind for case in all_cases() for op in case.ops}
found = {"file": llmd.__file__, "kinds": OP_KINDS, "untried": sorted(set(OP_KINDS) - tried)}
case = next((case for case in all_cases() if case.name == "scale/half"), None)
if case is not None:
    try:
        outcome = reference_outcome(case)
    except AssertionError as error:
        found["fault"] = str(error)
    else:
        found["problems"] = [one.problem for one in check_case(ReferenceDevice(), case) if one.problem]
        program = lower_range(ReferenceDevice(), case, case.first_part, case.last_part)
        found["floats"] = encode(program).floats.tolist()
print(json.dumps(found))
"""


def files(cell: str) -> Iterator[Path]:
    """Yield the files of a cell of a table."""
    for path in CODE.findall(cell):
        yield from (base / path for base in BASES if (base / path).is_file())


def with_example(folder: Path, *left_out: str) -> Mapping[str, Any]:
    """Return what the suite says of the example without its changes to some files."""
    wanted = [(path, change) for path, change in CHANGES if path not in left_out]
    sources = copied_sources(folder, wanted, {})
    found: Mapping[str, Any] = run(EXERCISE, sources)
    assert found["file"].startswith(str(sources))
    return found


@pytest.mark.parametrize("row", PLACES, ids=lambda row: row["file"])
def test_each_place_holds_the_op_and_its_parameter(row: Mapping[str, str]) -> None:
    (path,) = files(row["file"])
    text = path.read_text()
    found = [*CODE.findall(row["`Glu`"]), *CODE.findall(row["`threshold`"])]
    assert found
    assert [code for code in found if code not in text] == []


def test_no_place_of_the_contract_or_of_the_kernels_is_left_out() -> None:
    listed = {path for row in PLACES for path in files(row["file"])}
    contract = [*(BASES[1] / "api").glob("*.py")]
    kernels = [path for suffix in ("*.hpp", "*.cpp") for path in NATIVE.rglob(suffix)]
    holding = {path for path in contract if Glu.__name__ in path.read_text()} | {
        path
        for path in kernels
        if any(word in path.read_text() for word in ("GluArgs", "kGlu", "ops/glu.hpp"))
    }
    assert holding - listed == {NATIVE / "zeros.cpp", BASES[1] / "api" / "features.py"}


def test_places_are_numbered_in_order() -> None:
    assert [row[""] for row in PLACES] == [str(number + 1) for number in range(len(PLACES))]


@pytest.mark.parametrize("row", CHECKS, ids=lambda row: row["missing"])
def test_each_check_says_what_the_page_says(row: Mapping[str, str]) -> None:
    for code in CODE.findall(row["message"]):
        assert any(code in path.read_text() for path in files(row["check"]))


def test_the_example_conforms(tmp_path: Path) -> None:
    found = with_example(tmp_path)
    assert found["kinds"][-1] == "scale"
    assert (found["untried"], found["problems"], found["floats"]) == ([], [], [0.5])


def test_an_op_without_a_case_is_noticed(tmp_path: Path) -> None:
    assert with_example(tmp_path, "testing/op_cases.py")["untried"] == ["scale"]


def test_an_op_without_a_rule_of_the_reference_is_named(tmp_path: Path) -> None:
    assert with_example(tmp_path, "builtin/reference/elementwise.py")["fault"] == "scale has no rule here"


def test_a_parameter_that_is_not_encoded_is_not_noticed(tmp_path: Path) -> None:
    found = with_example(tmp_path, "api/encoding.py")
    assert (found["problems"], found["floats"]) == ([], [])


def test_each_path_exists() -> None:
    assert list(missing_paths(PAGE)) == []


def test_the_page_stays_short() -> None:
    assert len(PAGE.splitlines()) <= 120
