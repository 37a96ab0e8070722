"""docs/coming-from.md says what llmd does with the flags, variables and commands of other tools."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from llmd.cli.main import llmd
from llmd.cli.model_flag import NAMES
from llmd.cli.serve import command as serve
from llmd.config.other_tools import OTHER_NAMES, answer_to_flag
from llmd.config.setting_values import setting_fields
from tests.docs.page import CODE, DOCS, rows_with

PAGE = (DOCS / "coming-from.md").read_text()
ACCEPTED = {flag for parameter in serve.params for flag in parameter.opts} | set(NAMES)
VARIABLES = {f"LLMD_{key.rpartition('.')[2].upper()}" for key in setting_fields()} | {"LLMD_HOST"}


def flags() -> Iterator[tuple[str, str, str]]:
    """Yield each flag of another tool with what llmd has instead, and what is said to become of it."""
    for tool in ("Ollama", "llama-server", "vLLM"):
        for row in rows_with(PAGE, f"flag of {tool}"):
            for flag in CODE.findall(row[f"flag of {tool}"]):
                yield flag, row["llmd"], row["the flag is"]


@pytest.mark.parametrize(("flag", "own", "outcome"), list(flags()))
def test_flags_are_accepted_replaced_or_unknown(flag: str, own: str, outcome: str) -> None:
    own_flags = {code.split()[0] for code in CODE.findall(own) if code.startswith("--")}
    if outcome == "accepted":
        assert own_flags <= ACCEPTED
        assert flag in ACCEPTED
    elif outcome == "replaced":
        answer = answer_to_flag(flag)
        assert answer
        assert all(code in answer for code in own_flags)
    else:
        assert outcome == "not known"
        assert flag not in ACCEPTED
        assert not answer_to_flag(flag)


def test_every_flag_that_llmd_knows_is_on_the_page() -> None:
    assert {flag for name in OTHER_NAMES for flag in name.flags} <= {flag for flag, _, _ in flags()}


def test_commands_of_llmd_on_the_page_exist() -> None:
    found = {code.split()[1] for code in CODE.findall(PAGE) if code.startswith("llmd ") and "-v" not in code}
    context = click.Context(llmd)
    assert len(found) > 10
    assert {name for name in found if llmd.get_command(context, name) is None} == set()


def test_variables_and_settings_on_the_page_exist() -> None:
    rows = rows_with(PAGE, "Ollama's variable")
    own = [code for row in rows for code in CODE.findall(row["llmd"])]
    settings = {key.rpartition(".")[2] for key in setting_fields()}
    assert {code for code in own if code.startswith("LLMD_")} <= VARIABLES
    assert {code for code in own if code.islower() and " " not in code} <= settings
