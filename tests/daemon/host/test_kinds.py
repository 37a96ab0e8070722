"""The result of a hook is checked before it is used."""

from __future__ import annotations

from typing import Any

import pytest

from llmd.api import hooks
from llmd.api.errors import PluginError
from llmd.api.plugins import Architecture, Backend, Command, Transport
from llmd.host.kinds import KINDS

BY_NAME = {kind.name: kind for kind in KINDS}


def nothing(*_: Any) -> Any:
    return None


def test_every_hook_of_the_contract_is_a_kind() -> None:
    specified = {name for name, member in vars(hooks).items() if hasattr(member, "llmd_spec")}
    assert {kind.hook for kind in KINDS} == specified


def test_names_of_an_architecture_are_all_its_names() -> None:
    described = [Architecture(("llama", "LlamaForCausalLM"), nothing), Architecture(("qwen2",), nothing)]
    assert BY_NAME["architecture"].names(described) == ("llama", "LlamaForCausalLM", "qwen2")


def test_accepts_what_the_contract_says() -> None:
    backend = Backend("cpu", nothing, nothing)
    assert BY_NAME["backend"].checked([backend]) == (backend,)


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (None, "returned NoneType, not a sequence"),
        ("cpu", "returned str, not a sequence"),
        ([Transport("tcp", nothing, nothing)], "returned a Transport, not a Backend"),
        ([Backend(7, nothing, nothing)], "the name 7, which is not a valid name"),  # type: ignore[arg-type]
        ([Backend("a b", nothing, nothing)], "the name 'a b', which is not a valid name"),
        ([Backend("cpu", None, nothing)], "whose probe is not callable"),  # type: ignore[arg-type]
        ([Backend("cpu", nothing, "open")], "whose open is not callable"),  # type: ignore[arg-type]
        ([Backend("cpu", nothing, nothing)] * 2, "returned cpu more than once"),
    ],
)
def test_refuses_what_it_does_not_say(returned: object, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint) as caught:
        BY_NAME["backend"].checked(returned)
    assert "llmd_backends" in caught.value.message
    assert caught.value.hint


def test_the_help_of_a_command_is_a_text() -> None:
    with pytest.raises(PluginError, match="returned a Command whose help is not a string"):
        BY_NAME["command"].checked([Command("greet", 3, nothing)])  # type: ignore[arg-type]
