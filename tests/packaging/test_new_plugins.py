"""Each kind of new plugin is generated, built, installed and checked as its README says."""

from __future__ import annotations

import importlib.util
import re
import shutil
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llmd.cli.plugins.project import KINDS
from tests.packaging.user import User

pytestmark = pytest.mark.packaging

SHOWN = {
    "backend": "my-backend ",
    "command": "Hello, world!",
    "dialect": '{"hello": "Ada"}',
}
"""What the last command of a README prints; of other kinds, what the plugin provides."""
TESTING = ("pytest", "_pytest", "py", "iniconfig", "packaging", "pygments")


@pytest.fixture
def author(shared: User, tmp_path: Path) -> Iterator[User]:
    """A user with a free port in place of 8642, who has installed pytest."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    modules = tmp_path / "modules"
    modules.mkdir()
    for name in TESTING:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (modules / source.name).symlink_to(source)
    yield replace(shared, extra={"LLMD_ADDR": address, "LLMD_HOST": address, "PYTHONPATH": str(modules)})
    shared.llmd("stop", "--daemon", "--host", address)


def commands(readme: str, address: str) -> str:
    """Return the script of the commands that a README shows, for a daemon at another address."""
    lines = re.findall(r"^\$ (.*)$", readme, re.MULTILINE)
    assert len(lines) >= 3
    return "\n".join(["set -e", *lines]).replace("127.0.0.1:8642", address)


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "command" else pytest.param(kind, marks=pytest.mark.exhaustive) for kind in KINDS],
)
def test_a_new_plugin_installs_and_passes_its_checks(author: User, tmp_path: Path, kind: str) -> None:
    project, name = tmp_path / "project", f"my-{kind}"
    if kind == "dialect" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    assert author.llmd("plugins", "new", kind, name, "--path", str(project)).returncode == 0
    done = author.shell(commands((project / "README.md").read_text(), author.extra["LLMD_ADDR"]), project)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"✓ {name} (llmd-{kind}-{name} 0.1.0)" in done.stdout
    ((passed, of_all),) = re.findall(rf"^{name}: (\d+) of (\d+) passed", done.stdout, re.MULTILINE)
    assert int(passed) == int(of_all) >= 1
    assert SHOWN.get(kind, f"provides {kind.removeprefix('tool-').removeprefix('reasoning-')}") in done.stdout
    tested = author.shell("python -m pytest -q -p no:cacheprovider", project)
    assert tested.returncode == 0, tested.stdout
    assert author.llmd("plugins", "uninstall", name).returncode == 0
