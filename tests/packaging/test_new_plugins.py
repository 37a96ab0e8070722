"""Each kind of new plugin is generated, built, installed and checked, as its author does it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llmd.cli.plugins.project import KINDS
from tests.environments import EnvironmentFactory
from tests.packaging.user import User

pytestmark = pytest.mark.packaging


@pytest.fixture(scope="module")
def user(new_environment: EnvironmentFactory, wheelhouse: Path) -> User:
    return User(new_environment("llmd-daemon"), wheelhouse)


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "command" else pytest.param(kind, marks=pytest.mark.exhaustive) for kind in KINDS],
)
def test_a_new_plugin_installs_and_passes_its_checks(user: User, tmp_path: Path, kind: str) -> None:
    project, name = tmp_path / "project", f"my-{kind}"
    assert user.llmd("plugins", "new", kind, name, "--path", str(project)).returncode == 0
    installed = user.llmd("plugins", "install", str(project))
    assert installed.returncode == 0, installed.stderr
    assert f"✓ {name} (llmd-{kind}-{name} 0.1.0)" in installed.stdout
    checked = user.llmd("check", name)
    assert checked.returncode == 0, checked.stdout
    ((passed, of_all),) = re.findall(rf"^{name}: (\d+) of (\d+) passed", checked.stdout, re.MULTILINE)
    assert int(passed) == int(of_all) >= 1
    assert user.llmd("plugins", "uninstall", name).returncode == 0
