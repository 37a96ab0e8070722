"""Refusals and removals; tests/packaging/test_plugin_installation.py installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import ConfigError, ConflictError, NotFoundError, PluginError
from llmd.host.installation.environment import Environment
from llmd.host.installation.installer import Change, Installer
from llmd.host.installation.pip import Pip
from llmd.host.installation.targets import Target
from tests.packaging.made_wheels import make_plugin
from tests.plugin_sites import Site


@pytest.fixture
def installer(site: Site) -> Installer:
    return Installer(Environment(site.folder, site.folder, "venv"), Pip({"PIP_NO_INDEX": "1"}))


def listed(site: Site, name: str) -> set[Path]:
    """Write a plugin with a list of its files; return these."""
    site.write(name, "LLMD_API = 2")
    info = site.folder / f"made_{name}-1.0.dist-info"
    files = {site.folder / f"made_{name}.py", info / "METADATA", info / "entry_points.txt", info / "RECORD"}
    (info / "RECORD").write_text("".join(f"{path.relative_to(site.folder)},,\n" for path in files))
    return files


def test_uninstalls_the_files_of_a_distribution(site: Site, installer: Installer) -> None:
    listed(site, "kept")
    before = set(site.folder.rglob("*"))
    files = listed(site, "removed")
    assert installer.uninstall("Made.Removed") == Change("made-removed", "1.0", "")
    assert set(site.folder.rglob("*")) == before
    assert not any(path.exists() for path in files)


def test_what_others_need_stays(site: Site, installer: Installer) -> None:
    files = listed(site, "needed")
    listed(site, "needing")
    with (site.folder / "made_needing-1.0.dist-info" / "METADATA").open("a") as file:
        file.write("Requires-Dist: made-needed\n")
    with pytest.raises(PluginError, match="made-needing needs it") as caught:
        installer.uninstall("made-needed")
    assert caught.value.hint == "run `llmd plugins uninstall made-needing` first"
    assert all(path.exists() for path in files)


def test_what_is_not_installed_cannot_be_uninstalled(installer: Installer) -> None:
    with pytest.raises(NotFoundError, match="no-such-thing is not installed"):
        installer.uninstall("no-such-thing")


def test_the_core_is_not_installed_as_a_plugin(installer: Installer) -> None:
    with (
        pytest.raises(ConfigError, match=r"click .* is part of llmd"),
        installer.plan(Target("Click>=1", is_file=False), upgrade=True),
    ):
        pass


def test_a_plugin_with_the_name_of_a_part_of_llmd_does_not_replace_it(
    site: Site, installer: Installer, tmp_path: Path
) -> None:
    site.announce("llmd-backend-cpu", "0.1.0", {"cpu": "made_cpu"})
    wheel = make_plugin(tmp_path, "llmd-backend-cpu", "0.1.0")
    with (
        pytest.raises(ConflictError, match="is not newer"),
        installer.plan(Target(str(wheel), is_file=True), upgrade=False),
    ):
        pass
    newer = make_plugin(tmp_path, "llmd-backend-cpu", "0.2.0")
    with installer.plan(Target(str(newer), is_file=True), upgrade=False) as plan:
        assert plan.changes == [Change("llmd-backend-cpu", "0.1.0", "0.2.0")]
