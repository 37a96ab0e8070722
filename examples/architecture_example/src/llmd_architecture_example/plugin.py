"""The module that llmd imports to describe this plugin. It imports only llmd.api and the standard library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Architecture, hookimpl

if TYPE_CHECKING:
    from llmd.api import ModelPlan
    from llmd.api.plugins import Config

LLMD_API = 2


@hookimpl
def llmd_architectures() -> Sequence[Architecture]:
    return [Architecture(names=("ExampleForCausalLM", "example"), plan=plan)]


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Return the model that a ``config.json`` describes."""
    from llmd_architecture_example.plan import plan_model

    return plan_model(config, context_len)
