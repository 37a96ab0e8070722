"""`llmd check` runs the conformance suite on a device."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api import INTEGER_FORMATS, SCALED_FORMATS
from llmd.api.device import DeviceOptions
from llmd.api.errors import ConfigError, NotFoundError
from llmd.cli import check
from llmd.cli.check import CheckedCase, Suite, line_of
from llmd.cli.check_progress import CheckProgress
from llmd.cli.failures import EXIT_CHECK_FAILED
from llmd.cli.plugins.project import create_project
from llmd.testing.plugins.results import NotTested
from tests.plugin_sites import Site
from tests.serving.home import LLMD, Home
from tests.serving.terminal import terminal

Llmd = Callable[..., Any]

PARSER = """
from llmd.api import Parser, hookimpl
LLMD_API = 2
@hookimpl
def llmd_parsers():
    return [Parser("loud", "reasoning", matches=lambda template: 0, load=print)]
"""
GOOD = CheckedCase("linear/f32", ok=True, nmse=1e-12, problem="")
BAD = CheckedCase("rope exact", ok=False, nmse=None, problem="3 rows differ")


def test_the_reference_passes_its_own_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    from llmd.testing import conformance

    few = tuple(case for case in conformance.all_cases() if case.name in {"linear/f32", "norm/rms"})
    monkeypatch.setattr(conformance, "all_cases", lambda: few)
    suite = check.run_suite("reference", DeviceOptions(), CheckProgress(io.StringIO()))
    cases = list(suite.cases)
    assert suite.unclaimed == {}
    assert {case.name for case in few} <= {case.name for case in cases}
    assert all(case.ok for case in cases)


def test_prints_each_case_and_how_many_passed(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "run_suite", lambda *_: Suite([GOOD, GOOD]))
    done = llmd("check", "cpu")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "cpu: 2 of 2 passed"


def test_a_failed_case_ends_with_eight(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "run_suite", lambda *_: Suite([GOOD, BAD]))
    assert llmd("check", "cpu").code == EXIT_CHECK_FAILED
    done = llmd("check", "cpu", "--json")
    document = json.loads(done.out)
    assert (done.code, document["schema"], document["failed"]) == (EXIT_CHECK_FAILED, 1, 1)
    assert document["cases"][1] == {
        "name": "rope exact",
        "ok": False,
        "nmse": None,
        "problem": "3 rows differ",
    }


def test_what_a_device_does_not_claim_is_named(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = {"ops": ("activate",), "kv_dtypes": ("int8", "int4")}
    monkeypatch.setattr(check, "run_suite", lambda *_: Suite([GOOD], left_out))
    assert llmd("check", "cpu").out.splitlines()[-1] == (
        "cpu: 1 of 1 passed. Not tested, because the device does not claim them: ops activate; KV as int8, int4"
    )
    every = (*INTEGER_FORMATS, *SCALED_FORMATS)
    only_plain = check.not_tried(Suite([], {**left_out, "formats": every}))
    assert only_plain.endswith("KV as int8, int4; all formats but plain ones")
    document = json.loads(llmd("check", "cpu", "--json").out)
    assert document["unclaimed"] == {"ops": ["activate"], "kv_dtypes": ["int8", "int4"]}


def test_a_terminal_shows_count_and_time_left_below_the_results(home: Home) -> None:
    with terminal((*LLMD, "check", "reference"), home.environment) as screen:
        screen.wait_for(" cases, about ")
        screen.wait_for(" left", after=screen.shown.index(" cases, about "))
        screen.wait_for("✓ embed/f16")
        screen.process.send_signal(signal.SIGINT)
        assert screen.end() == 130


def test_an_unknown_device_ends_with_three(llmd: Llmd) -> None:
    assert llmd("check", "abacus").code == NotFoundError.exit_code


def test_the_device_computes_on_as_many_threads_as_were_typed(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, DeviceOptions]] = []

    def suite(device: str, options: DeviceOptions, _progress: CheckProgress) -> Suite:
        asked.append((device, options))
        return Suite([GOOD])

    monkeypatch.setattr(check, "run_suite", suite)
    assert llmd("check", "cpu", "--threads", "3").code == 0
    assert asked == [("cpu", DeviceOptions(threads=3))]
    refused = llmd("check", "cpu", "--threads", "0")
    assert (refused.code, "--threads is 0, expected" in refused.err) == (ConfigError.exit_code, True)


def test_lines_show_what_was_measured() -> None:
    assert line_of(GOOD) == "✓ linear/f32  NMSE 1.0e-12"
    assert line_of(BAD) == "✗ rope exact  3 rows differ"


def test_a_plugin_without_devices_is_checked_by_its_name(llmd: Llmd) -> None:
    done = llmd("check", "local")
    assert done.code == 0
    assert "✓ transport local: frames arrive whole and in order" in done.out.splitlines()
    assert done.out.splitlines()[-1] == "local: 7 of 7 passed"


def test_what_could_not_be_tested_of_a_plugin_is_named(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    skipped = [NotTested("device gpu:0", "its driver is too old")]
    monkeypatch.setattr(check, "run_suite", lambda *_: Suite([GOOD], skipped=skipped))
    assert llmd("check", "gpu").out.splitlines()[-1] == (
        "gpu: 1 of 1 passed. Not tested: device gpu:0 (its driver is too old)"
    )
    assert json.loads(llmd("check", "gpu", "--json").out)["skipped"][0]["what"] == "device gpu:0"


def test_the_devices_of_a_plugin_are_checked_with_it(monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
    """A plugin whose name is not that of its device."""
    from llmd.testing import conformance

    few = tuple(case for case in conformance.all_cases() if case.name == "norm/rms")
    monkeypatch.setattr(conformance, "all_cases", lambda: few)
    project = site.folder.parent / "project"
    create_project("backend", "my-try", project)
    source = project / "src" / "llmd_backend_my_try" / "device.py"
    source.write_text(source.read_text().replace('name="my-try"', 'name="card:0"'))
    plugin = source.with_name("plugin.py")
    plugin.write_text(plugin.read_text().replace('name != "my-try"', 'name != "card:0"'))
    site.install_project(project)
    suite = check.run_suite("my-try", DeviceOptions(), CheckProgress(io.StringIO()))
    names = [case.name for case in suite.cases if case.ok]
    assert {"description", "imports only llmd.api", "norm/rms"} <= set(names)


def test_a_plugin_is_also_found_by_its_distribution_and_by_what_it_provides(site: Site) -> None:
    site.write("shout", PARSER)
    for name in ("shout", "made-shout", "loud"):
        cases = list(check.run_suite(name, DeviceOptions(), CheckProgress(io.StringIO())).cases)
        assert [case.name for case in cases if "loud" in case.name], name


def test_what_is_not_installed_is_to_be_installed_first(llmd: Llmd, tmp_path: Path) -> None:
    done = llmd("check", "shout")
    assert (done.code, "there is no device and no plugin 'shout'" in done.err) == (3, True)
    assert "llmd plugins install PATH" in done.err
    done = llmd("check", str(tmp_path))
    assert (done.code, f"llmd plugins install {tmp_path}" in done.err) == (2, True)
