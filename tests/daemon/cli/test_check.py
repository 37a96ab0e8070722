"""`llmd check` runs the conformance suite, also on a device that is not used because it failed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from llmd.cli.check import CheckedCase, line_of
from tests.plugin_sites import Site

Llmd = Callable[..., Any]

# It keeps KV as f16 alone, so every case with another fails by name, and its trial with them.
PARTIAL = """
from llmd.api import Backend, hookimpl
LLMD_API = 1

@hookimpl
def llmd_backends():
    return [Backend("partial", lambda: [device().info], lambda name: device())]

def device():
    import msgspec
    from llmd.builtin.reference.device import ReferenceDevice

    made = ReferenceDevice()
    made.info = msgspec.structs.replace(made.info, name="partial", kv_dtypes=("f16",))
    return made
"""


def test_a_device_that_failed_its_trial_is_checked_case_by_case(llmd: Llmd, site: Site) -> None:
    site.write("partial", PARTIAL)
    done = llmd("check", "partial", "--json")
    assert done.code == 8
    document = json.loads(done.out)
    cases = {case["name"]: case for case in document["cases"]}
    assert (document["schema"], document["device"]) == (1, "partial")
    assert cases["linear/f32"]["problem"] == "the device keeps no KV as f32"
    assert 0 < document["failed"] == sum(not case["ok"] for case in cases.values()) < len(cases)


def test_people_read_a_line_for_each_case_and_a_sum(llmd: Llmd, site: Site) -> None:
    site.write("partial", PARTIAL)
    lines = llmd("check", "partial").out.splitlines()
    passed = sum(line.startswith("✓") for line in lines)
    assert passed
    assert lines[-1] == f"partial: {passed} of {len(lines) - 1} passed"


def test_a_device_that_is_not_there_is_not_found(llmd: Llmd) -> None:
    done = llmd("check", "no-such-device")
    assert (done.code, done.out) == (3, "")
    assert "reference" in done.err


@pytest.mark.parametrize(
    ("case", "line"),
    [
        (CheckedCase("linear/f32", True, 1.5e-12, ""), "✓ linear/f32  NMSE 1.5e-12"),
        (CheckedCase("linear/f32 exact", True, None, ""), "✓ linear/f32 exact"),
        (CheckedCase("linear/f32", False, 0.5, "too far"), "✗ linear/f32  NMSE 5.0e-01  too far"),
    ],
)
def test_a_line_has_symbol_name_error_and_problem(case: CheckedCase, line: str) -> None:
    assert line_of(case) == line
