"""Checks that the unit tests mirror the sources in both directions.

``daemon/src/llmd/<package>/<module>.py`` is tested by ``tests/daemon/<package>/test_<module>.py``, and
``plugins/<name>/src/<package>/<module>.py`` by ``tests/plugins/<name>/test_<module>.py``; ``tui`` likewise.
Modules that only declare (no function with a body) need no test, nor do ``__init__`` and ``__main__``. Test
folders that cut across the sources are ignored.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def main() -> None:
    """Print the files without a mirror and exit with 1; exit with 0 if there are none."""
    root = Path(__file__).resolve().parent.parent
    sys.exit("\n".join(faults(root)) or 0)


def faults(root: Path) -> list[str]:
    """Return a message for each source without a test and each test without a source."""
    expected = {mirror: source for source, mirror in mirrored(root)}
    present = {test.relative_to(root) for tests in test_folders(root) for test in tests.rglob("test_*.py")}
    untested = [
        f"{source} has no {mirror}"
        for mirror, source in sorted(expected.items())
        if mirror not in present and needs_test(root / source)
    ]
    orphans = [f"{test} tests no source file of that name" for test in sorted(present - expected.keys())]
    return untested + orphans


def test_folders(root: Path) -> Iterator[Path]:
    """Yield the test folders that mirror a distribution."""
    yield root / "tests" / "daemon"
    yield root / "tests" / "tui"
    yield from (root / "tests" / "plugins" / plugin.name for plugin in plugins(root))


def plugins(root: Path) -> list[Path]:
    """Return the folders of the workspace's plugins."""
    return sorted(project.parent for project in (root / "plugins").glob("*/pyproject.toml"))


def mirrored(root: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each source file with the path of its test, both relative to ``root``."""
    yield from mirrors_of(root, root / "daemon" / "src" / "llmd", root / "tests" / "daemon")
    yield from mirrors_of(root, root / "tui" / "src" / "llmd_tui", root / "tests" / "tui")
    for plugin in plugins(root):
        package = plugin / "src" / f"llmd_{plugin.name}"
        yield from mirrors_of(root, package, root / "tests" / "plugins" / plugin.name)


def mirrors_of(root: Path, package: Path, tests: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the pairs of one import package."""
    for source in package.rglob("*.py"):
        inside = source.relative_to(package)
        mirror = tests / inside.with_name(f"test_{inside.stem.strip('_')}.py")
        yield source.relative_to(root), mirror.relative_to(root)


def needs_test(source: Path) -> bool:
    """Whether a source file must have a test."""
    return not source.name.startswith("__") and has_behaviour(source.read_text())


def has_behaviour(source: str) -> bool:
    """Whether a module has a function with a body."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not declares_only(node)
        for node in ast.walk(ast.parse(source))
    )


def declares_only(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is only a docstring, ``...`` or both, as in a protocol or a hook specification."""
    return all(
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        for statement in node.body
    )


if __name__ == "__main__":
    main()
