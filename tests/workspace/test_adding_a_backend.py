"""The quotes in docs/adding-a-backend.md match the files."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from llmd.api import hooks
from llmd.host.kinds import KINDS, Kind
from llmd.host.probing import IMPORT_LIMIT
from tests.workspace.page_examples import ROOT, page, quotations, tree, unknown_commands

EXAMPLE = ROOT / "examples" / "backend_example"
PAGE = page("adding-a-backend.md")
QUOTES = quotations(PAGE)


def test_quotes_several_files_of_the_example() -> None:
    assert len({path for path, _ in QUOTES}) >= 3


@pytest.mark.parametrize(("path", "text"), QUOTES)
def test_each_quotation_stands_in_its_file(path: str, text: str) -> None:
    assert text.strip() in (ROOT / path).read_text()


def test_the_tree_of_the_page_is_the_tree_of_the_example() -> None:
    folder, listed = tree(PAGE)
    assert folder == EXAMPLE
    assert "pyproject.toml" in listed
    package = "src/llmd_backend_example/"
    assert listed - {"pyproject.toml"} | {f"{package}__init__.py"} == {
        str(path.relative_to(folder)) for path in (folder / "src").rglob("*.py")
    }


def test_each_path_that_the_page_names_exists() -> None:
    links = re.findall(r"\]\(((?:\.\./|[\w-]+\.md)[^)#]*)", PAGE)
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


@pytest.mark.parametrize("path", sorted((EXAMPLE / "src").rglob("*.py")), ids=lambda path: path.name)
def test_the_example_imports_nothing_of_llmd_but_its_contracts(path: Path) -> None:
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    others = {name for name in names if name.split(".")[0] not in {*sys.stdlib_module_names, "numpy"}}
    assert {name for name in others if not re.match(r"(llmd\.api|llmd_backend_example)(\.|$)", name)} == set()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_hook_is_named_with_what_it_returns(kind: Kind) -> None:
    hook, returned = kind.hook, kind.type.__name__
    assert hasattr(hooks, hook)
    assert re.search(rf"`{hook}`\s(returns\s)?`{returned}`s", PAGE)


def test_the_time_limit_of_a_probe_is_the_real_one() -> None:
    assert f"{IMPORT_LIMIT.processor_s:g} s of CPU time or {IMPORT_LIMIT.wall_s:g} s of wall time" in PAGE


def test_each_command_exists() -> None:
    assert unknown_commands(PAGE) == []
    assert unknown_commands("`llmd plugins fold x`, `llmd plugins`, `llmd devices`") == [
        "plugins",
        "plugins fold x",
    ]
