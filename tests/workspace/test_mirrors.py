"""The mirror check finds sources without a test and tests without a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mirrors import faults, has_behaviour


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with one tested module in the daemon and one in a plugin."""
    for path in (
        "daemon/src/llmd/pager/blocks.py",
        "tests/daemon/pager/test_blocks.py",
        "plugins/backend_x/pyproject.toml",
        "plugins/backend_x/src/llmd_backend_x/plugin.py",
        "tests/plugins/backend_x/test_plugin.py",
    ):
        write(tmp_path / path)
    return tmp_path


def write(path: Path, text: str = "def f():\n    return 1\n") -> None:
    """Write a file with a function that does something."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_mirrored_workspace_has_no_faults(workspace: Path) -> None:
    assert faults(workspace) == []


@pytest.mark.parametrize(
    "source",
    ["daemon/src/llmd/pager/eviction.py", "plugins/backend_x/src/llmd_backend_x/ops/add.py"],
)
def test_source_without_test_is_named(workspace: Path, source: str) -> None:
    write(workspace / source)
    (fault,) = faults(workspace)
    assert fault.startswith(source)


@pytest.mark.parametrize("test", ["tests/daemon/pager/test_gone.py", "tests/plugins/backend_x/test_gone.py"])
def test_test_without_source_is_named(workspace: Path, test: str) -> None:
    write(workspace / test)
    (fault,) = faults(workspace)
    assert fault.startswith(test)


def test_module_of_declarations_needs_no_test(workspace: Path) -> None:
    write(workspace / "daemon/src/llmd/api/hooks.py", 'def hook():\n    """Return backends."""\n    ...\n')
    assert faults(workspace) == []


def test_method_with_a_body_is_behaviour() -> None:
    assert has_behaviour("class A:\n    def f(self):\n        return 1\n")
    assert not has_behaviour("class A:\n    x: int\n    def f(self) -> int: ...\n")
