"""The pages on adding a transport and a parser quote the example plugins, and say what is checked."""

from __future__ import annotations

import re

import pytest

from llmd.api import LinkError
from llmd.cli.plugins.project import KINDS
from llmd.testing.conformance import CaseResult
from llmd.testing.plugins.plugin_checks import check_plugin
from tests.docs.page import CODE, rows_with
from tests.plugin_sites import Site
from tests.workspace.page_examples import ROOT, page, quotations, tree, unknown_commands

TRANSPORT, PARSER = (page(f"adding-a-{kind}.md") for kind in ("transport", "parser"))
PAGES = pytest.mark.parametrize("text", [TRANSPORT, PARSER], ids=["transport", "parser"])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def cases(text: str) -> list[str]:
    return [row["case"] for row in rows_with(text, "what it finds")]


@PAGES
def test_each_block_of_code_is_in_its_file(text: str) -> None:
    quoted = quotations(text)
    assert len({path for path, _ in quoted}) >= 3
    assert [path for path, lines in quoted if lines.strip("\n") not in (ROOT / path).read_text()] == []
    others = [name for name, lines in BLOCK.findall(text) if not lines.startswith("# ")]
    assert others == ["console", ""], "the commands and the tree, which the next tests read"


@PAGES
def test_the_tree_of_the_page_is_the_tree_of_the_example(text: str) -> None:
    folder, listed = tree(text)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.py") if path.name != "__init__.py"}
    assert listed == found | {"pyproject.toml"}


@PAGES
def test_each_command_exists(text: str) -> None:
    assert unknown_commands(text) == []
    assert set(re.findall(r"\$ llmd plugins new (\S+) mine", text)) <= set(KINDS)


@pytest.mark.parametrize(
    ("text", "example", "subject"),
    [
        (TRANSPORT, "transport_example", "transport example: "),
        (PARSER, "tool_parser_example", "parser example: "),
    ],
    ids=["transport", "parser"],
)
def test_the_checks_of_the_page_are_those_of_the_example(
    site: Site, text: str, example: str, subject: str
) -> None:
    (plugin,) = site.install_project(ROOT / "examples" / example)
    names = [result.name for result in check_plugin(plugin) if isinstance(result, CaseResult)]
    assert cases(text) == [name.removeprefix(subject) for name in names if name.startswith(subject)]
    assert "imports only llmd.api" in names
    assert "imports only `llmd.api`" in text


def test_each_error_of_a_link_is_one_that_callers_can_tell_apart() -> None:
    named = [code for row in rows_with(TRANSPORT, "the caller") for code in CODE.findall(row["error"])]
    kinds: list[type[LinkError]] = [LinkError, *LinkError.__subclasses__()]
    assert set(named) == {kind.__name__ for kind in kinds}
