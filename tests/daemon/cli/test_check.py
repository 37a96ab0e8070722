"""`llmd check` runs the conformance suite on a device."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from llmd.api.device import DeviceOptions
from llmd.api.errors import ConfigError, NotFoundError
from llmd.cli import check
from llmd.cli.check import CheckedCase, line_of

Llmd = Callable[..., Any]

GOOD = CheckedCase("linear/f32", ok=True, nmse=1e-12, problem="")
BAD = CheckedCase("rope exact", ok=False, nmse=None, problem="3 rows differ")


def test_the_reference_passes_its_own_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    from llmd.testing import conformance, trial

    few = tuple(case for case in conformance.all_cases() if case.name in trial._NAMES)
    monkeypatch.setattr(conformance, "all_cases", lambda: few)
    cases = list(check.run_suite("reference", DeviceOptions()))
    assert {case.name for case in few} <= {case.name for case in cases}
    assert all(case.ok for case in cases)


def test_prints_each_case_and_how_many_passed(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "run_suite", lambda *_: [GOOD, GOOD])
    done = llmd("check", "cpu")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "cpu: 2 of 2 passed"


def test_a_failed_case_ends_with_eight(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "run_suite", lambda *_: [GOOD, BAD])
    assert llmd("check", "cpu").code == check.EXIT_CHECK_FAILED
    done = llmd("check", "cpu", "--json")
    document = json.loads(done.out)
    assert (done.code, document["schema"], document["failed"]) == (check.EXIT_CHECK_FAILED, 1, 1)
    assert document["cases"][1] == {
        "name": "rope exact",
        "ok": False,
        "nmse": None,
        "problem": "3 rows differ",
    }


def test_an_unknown_device_ends_with_three(llmd: Llmd) -> None:
    assert llmd("check", "abacus").code == NotFoundError.exit_code


def test_the_device_computes_on_as_many_threads_as_were_typed(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, DeviceOptions]] = []

    def suite(device: str, options: DeviceOptions) -> list[CheckedCase]:
        asked.append((device, options))
        return [GOOD]

    monkeypatch.setattr(check, "run_suite", suite)
    assert llmd("check", "cpu", "--threads", "3").code == 0
    assert asked == [("cpu", DeviceOptions(threads=3))]
    refused = llmd("check", "cpu", "--threads", "0")
    assert (refused.code, "--threads is 0, expected" in refused.err) == (ConfigError.exit_code, True)


def test_lines_show_what_was_measured() -> None:
    assert line_of(GOOD) == "✓ linear/f32  NMSE 1.0e-12"
    assert line_of(BAD) == "✗ rope exact  3 rows differ"
