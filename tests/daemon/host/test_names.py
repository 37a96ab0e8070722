"""Plugins are found by metadata, without importing them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from llmd.host.names import PluginName, discover, module_files, project_of
from tests.plugin_sites import Site


def test_a_name_carries_module_distribution_and_version(site: Site) -> None:
    (plugin,) = site.install("other_contract")
    assert plugin == PluginName("other", "trial_other_contract", "trial-other-contract", "3.1")


def test_built_in_plugins_come_first_then_by_distribution(site: Site) -> None:
    site.install("twin_two", "hangs", "twin_one")
    found = discover()
    outside = [plugin.distribution for plugin in found if not plugin.built_in]
    assert [plugin.built_in for plugin in found] == sorted(
        (plugin.built_in for plugin in found), reverse=True
    )
    assert outside == sorted(outside)
    assert "llmd-daemon" in {plugin.distribution for plugin in found}


def test_a_plugin_installed_later_is_found_by_the_same_process(site: Site) -> None:
    site.install("twin_one")
    assert [plugin.name for plugin in site.install("twin_two")] == ["twin-one", "twin-two"]


@pytest.mark.parametrize(
    ("requirement", "project"),
    [("Made_x.y[extra]>=2,<3; python_version > '3'", "Made_x.y"), ("made", "made"), ("", ""), (">=2", "")],
)
def test_a_requirement_begins_with_a_project(requirement: str, project: str) -> None:
    assert project_of(requirement) == project


def test_files_of_a_module_outside_a_package_are_itself(site: Site) -> None:
    (plugin,) = site.install("hangs")
    assert module_files(plugin.module) == (site.folder / "trial_hangs.py",)


def test_files_of_a_module_in_a_package_are_the_package(site: Site) -> None:
    package = site.folder / "made_package"
    package.mkdir()
    for name in ("__init__.py", "plugin.py", "kernels.so"):
        (package / name).touch()
    assert [path.name for path in module_files("made_package.plugin")] == [
        "__init__.py",
        "kernels.so",
        "plugin.py",
    ]
    assert "made_package" not in sys.modules


def test_files_of_a_module_below_a_package_are_those_of_the_inner_package(site: Site) -> None:
    inner = site.folder / "made_outer" / "inner"
    inner.mkdir(parents=True)
    for name in ("__init__.py", "plugin.py"):
        (inner / name).touch()
    (site.folder / "made_outer" / "__init__.py").touch()
    assert module_files("made_outer.inner.plugin") == (inner / "__init__.py", inner / "plugin.py")


def test_an_editable_extension_has_its_sources_and_its_build() -> None:
    assert {path.suffix for path in module_files("llmd_backend_cpu.plugin")} >= {".py", ".so"}


def test_a_module_that_does_not_exist_has_no_files() -> None:
    assert module_files("no_such_package.plugin") == ()


def test_discovering_imports_no_plugin() -> None:
    code = """
import sys
from llmd.host.names import discover, module_files
before = set(sys.modules)
modules = {plugin.module for plugin in discover()}
assert modules, "no plugin is installed"
for module in modules:
    module_files(module)
assert not modules & set(sys.modules), modules & set(sys.modules)
assert "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
