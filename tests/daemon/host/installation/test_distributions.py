"""Facts about distributions come from their metadata."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from llmd.api.errors import PluginError
from llmd.host.installation.distributions import (
    dependents_of,
    files_of,
    find,
    identity,
    installed_version,
    plugins_in,
)
from llmd.host.installation.pip import Resolved
from tests.packaging.made_wheels import make_plugin
from tests.plugin_sites import Site


def test_versions_of_what_is_and_is_not_installed() -> None:
    assert installed_version("NumPy") == metadata.version("numpy")
    assert installed_version("no-such-thing") == ""
    assert find("no-such-thing") is None


def test_lists_the_files_that_exist(site: Site) -> None:
    site.write("listed", "LLMD_API = 2")
    info = site.folder / "made_listed-1.0.dist-info"
    (info / "RECORD").write_text("made_listed.py,,\nnot_there.py,,\nmade_listed-1.0.dist-info/METADATA,,\n")
    found = metadata.distribution("made-listed")
    assert files_of(found, site.folder) == [site.folder / "made_listed.py", info / "METADATA"]
    with pytest.raises(PluginError, match="has files outside of"):
        files_of(found, info)


def test_files_that_are_not_listed_cannot_be_removed(site: Site) -> None:
    site.write("unlisted", "LLMD_API = 2")
    with pytest.raises(PluginError, match="has no list of its files"):
        files_of(metadata.distribution("made-unlisted"), site.folder)


def test_finds_the_plugins_of_a_folder_only(site: Site) -> None:
    (plugin,) = site.install("twin_one")
    assert plugins_in([site.folder]) == (plugin,)


def test_knows_who_needs_a_distribution(site: Site) -> None:
    site.write("needed", "LLMD_API = 2")
    site.write("needing", "LLMD_API = 2")
    with (site.folder / "made_needing-1.0.dist-info" / "METADATA").open("a") as file:
        file.write('Requires-Dist: Made_Needed>=1\nRequires-Dist: made-other; extra == "more"\n')
    assert dependents_of(["made-needed"]) == ["made-needing"]
    assert dependents_of(["made-needed", "made-needing"]) == []
    assert dependents_of(["made-other"]) == []


def test_reads_name_and_version_of_a_wheel(tmp_path: Path) -> None:
    assert identity(make_plugin(tmp_path, "Made_Plugin", "2.5")) == Resolved("made-plugin", "2.5")
    (tmp_path / "no.whl").write_text("nothing")
    with pytest.raises(PluginError, match="is not a wheel"):
        identity(tmp_path / "no.whl")
