"""pip is run apart from its settings that send files elsewhere, and its conflicts become sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import PluginError
from llmd.host.installation.pip import Pip, Resolved, failure, pip_variables
from tests.packaging.made_wheels import make_plugin

CONFLICT = """Collecting click<1 (from made-plugin==1.0)
The conflict is caused by:
    made-plugin 1.0 depends on click<1
    The user requested (constraint) click==8.5.1
"""


@pytest.fixture
def offline(tmp_path: Path) -> Pip:
    return Pip({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_TARGET": "/nowhere"})


def test_settings_of_uv_count_where_pip_has_none() -> None:
    uv = {
        "UV_DEFAULT_INDEX": "inner=https://one.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_OFFLINE": "1",
    }
    assert pip_variables(uv) == uv | {
        "PIP_INDEX_URL": "https://one.example/simple",
        "PIP_FIND_LINKS": "/wheels /more",
        "PIP_NO_INDEX": "1",
    }
    both = {"PIP_INDEX_URL": "https://two.example", "UV_INDEX_URL": "https://one.example"}
    assert pip_variables(both) == both


def test_settings_that_send_files_elsewhere_are_dropped() -> None:
    assert pip_variables({"PIP_TARGET": "/a", "PIP_USER": "1", "PIP_TIMEOUT": "5"}) == {"PIP_TIMEOUT": "5"}


def test_a_conflict_with_the_core_is_a_sentence() -> None:
    error = failure(CONFLICT, "ERROR: ResolutionImpossible")
    assert error.message == (
        "made-plugin 1.0 cannot be installed: it needs click<1, but llmd runs with click 8.5.1"
    )
    assert error.hint.startswith("nothing was changed")


def test_all_requirements_of_the_distribution_in_conflict_are_named() -> None:
    several = CONFLICT.replace(
        "    made-plugin 1.0 depends on click<1\n",
        "    made-plugin 1.0 depends on click>=0.1\n"
        "    made-plugin 1.0 depends on click>=9\n"
        "    made-plugin 1.0 depends on numpy>=1\n",
    )
    assert "it needs click>=0.1 and click>=9, but llmd runs with click 8.5.1" in failure(several, "").message


def test_another_failure_shows_the_last_errors_of_pip() -> None:
    error = failure("Collecting a\n", "WARNING: old\nERROR: first\nERROR: second\nERROR: third\n")
    assert error.message == "the plugin cannot be installed: second\nthird"
    assert "out" in failure("out", "").message


def test_what_no_index_has_leads_to_the_search_or_to_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error = failure("", "ERROR: No matching distribution found for llmd-backend-gpu\n")
    assert error.message == "no package index has llmd-backend-gpu for this Python"
    assert "llmd plugins search" in error.hint
    (tmp_path / "llmd-backend-gpu").mkdir()
    error = failure("", "ERROR: No matching distribution found for llmd-backend-gpu\n")
    assert error.hint.endswith("write ./llmd-backend-gpu")


@pytest.mark.parametrize("name", ["cpu", "llmd-backend-cpu"])
def test_for_a_part_of_llmd_the_hint_says_where_it_is_from(name: str) -> None:
    hint = failure("", f"ERROR: No matching distribution found for {name}\n").hint
    assert "llmd-backend-cpu is a part of llmd, which is in no package index" in hint
    assert "make" in hint


def test_resolves_and_unpacks_without_touching_this_environment(tmp_path: Path, offline: Pip) -> None:
    wheel = make_plugin(tmp_path, "made-plugin")
    constraints = tmp_path / "constraints.txt"
    constraints.touch()
    (resolved,) = offline.resolve("made-plugin", constraints, upgrade=False)
    assert resolved == Resolved("made-plugin", "1.0")
    offline.unpack([resolved], tmp_path / "prefix", wheel.parent)
    (record,) = (tmp_path / "prefix").rglob("RECORD")
    assert "made_plugin.py" in record.read_text()
    assert not record.with_name("direct_url.json").exists(), "`pip freeze` would show a folder that is gone"


def test_a_wheel_is_taken_as_it_is(tmp_path: Path, offline: Pip) -> None:
    (tmp_path / "wheels").mkdir()
    wheel = make_plugin(tmp_path, "made-plugin")
    built = offline.build(str(wheel), tmp_path / "wheels")
    assert (built.parent, built.read_bytes()) == (tmp_path / "wheels", wheel.read_bytes())


def test_a_source_that_cannot_be_built_is_an_error(tmp_path: Path, offline: Pip) -> None:
    with pytest.raises(PluginError, match="cannot be installed"):
        offline.build(str(tmp_path), tmp_path)
