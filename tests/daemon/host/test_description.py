"""Describing a plugin returns its objects, or a reason and a fix."""

from __future__ import annotations

import pytest

from llmd.api.errors import PluginError
from llmd.api.plugins import API_VERSION
from llmd.host.description import describe, replacement, summarize
from llmd.host.names import PluginName
from llmd.host.states import Summary
from tests.plugin_sites import Site

HEAD = "from llmd.api import Backend, Command, Transport, hookimpl\nLLMD_API = 2\n"
BACKEND = "@hookimpl\ndef llmd_backends():\n    return [Backend('made', list, str)]\n"
COMMAND = "@hookimpl\ndef llmd_commands():\n    return [Command('greet', 'Say hello.', str)]\n"


def test_gives_every_kind_that_the_plugin_has(site: Site) -> None:
    description = describe(site.write("both", HEAD + BACKEND + COMMAND))
    assert [backend.name for backend in description.backend] == ["made"]
    assert description.transport == ()
    assert description.summary() == Summary(
        {"backend": ("made",), "command": ("greet",)}, {"greet": "Say hello."}
    )


@pytest.mark.parametrize(
    ("source", "reason", "fix"),
    [
        ("raise SystemExit(3)", "raised SystemExit: 3", "`llmd plugins uninstall made-broken`"),
        (
            "import no_such_toolkit",
            "raised ModuleNotFoundError: No module named 'no_such_toolkit'",
            "`llmd plugins uninstall made-broken`",
        ),
        (BACKEND, "raised NameError", "`llmd plugins uninstall made-broken`"),
        ("", "does not state the contract", "LLMD_API = 2"),
        (HEAD, "implements no hook", "docs/adding-a-backend.md"),
        (HEAD + "def llmd_backends():\n    return []\n", "implements no hook", "docs/adding-a-backend.md"),
        (
            HEAD + BACKEND.replace("()", "(config)", 1),
            "does not match its specification",
            "docs/adding-a-backend.md",
        ),
        (
            HEAD + BACKEND.replace("backends", "devices"),
            "does not match its specification",
            "docs/adding-a-backend.md",
        ),
        (
            HEAD + BACKEND.replace("return", "return 1 / 0 #"),
            "llmd_backends raised ZeroDivisionError",
            "`llmd plugins uninstall made-broken`",
        ),
        (
            HEAD + BACKEND.replace("[Backend('made', list, str)]", "7"),
            "returned int",
            "docs/adding-a-backend.md",
        ),
    ],
)
def test_a_broken_plugin_has_a_reason_and_a_fix(site: Site, source: str, reason: str, fix: str) -> None:
    failure = summarize(site.write("broken", source)).failure
    assert failure is not None
    assert failure.phase == "description"
    assert reason in failure.reason
    assert fix in failure.fix


def test_a_newer_contract_is_refused_with_both_numbers_before_any_hook(site: Site) -> None:
    (plugin,) = site.install("other_contract")
    with pytest.raises(PluginError) as caught:
        describe(plugin)
    assert (
        f"trial-other-contract 3.1 is built for plugin contract 99, but this llmd has {API_VERSION}"
        in caught.value.message
    )
    assert "upgrade llmd-daemon" in caught.value.hint
    assert "`llmd plugins install trial-other-contract==VERSION`" in caught.value.hint


def test_a_plugin_of_llmd_itself_cannot_be_uninstalled() -> None:
    hint = replacement(PluginName("cpu", "m", "llmd-daemon", "1"))
    assert hint.startswith("reinstall llmd-daemon")
    assert hint.endswith("`llmd plugins disable cpu`")


def test_an_older_contract_asks_for_a_newer_plugin(site: Site) -> None:
    failure = summarize(site.write("old", HEAD.replace("= 2", "= 1") + BACKEND)).failure
    assert failure is not None
    assert failure.reason == "made-old 1.0 is built for plugin contract 1, but this llmd has 2"
    assert (
        failure.fix
        == "run `llmd plugins install --upgrade made-old`, or run `llmd plugins uninstall made-old`"
    )


def test_the_interrupt_of_the_user_is_no_failure_of_the_plugin(site: Site) -> None:
    plugin = site.write("interrupted", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        describe(plugin)
