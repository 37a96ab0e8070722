from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from llmd.api.messages import Load
from llmd.engine.placement.device_parts import DeviceParts
from llmd.engine.placement.stages import stage_limits
from llmd.engine.placement.typical_request import Request
from llmd.models.open_model import OpenModel, open_model
from tests.daemon.engine.placement.tiny_candidates import QUICK, candidates
from tests.daemon.models.gguf.test_config_keys import ARCHITECTURES
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.catalog import tiny_model

REQUEST = Request(64, 16)
BLOCKS = (5,)


@pytest.fixture
def parts(load: Load, model: OpenModel) -> DeviceParts:
    (one,) = candidates(QUICK)
    return DeviceParts(load, model, one, stage_limits(load, model, [one.info]))


def test_sizes_by_kind_add_up_to_the_costs(parts: DeviceParts) -> None:
    costs = parts.costs(REQUEST, BLOCKS)
    sizes = parts.sizes(1, 3, BLOCKS)
    assert list(sizes) == ["attention", "feed-forward", "KV cache", "buffers"]
    assert (
        sum(sizes.values())
        == sum(one.num_bytes for one in costs[1:3] if one) + parts.stage(REQUEST).num_bytes
    )
    assert sizes["buffers"] == parts.stage(REQUEST).num_bytes
    whole = parts.sizes(0, 6, BLOCKS)
    every = sum(one.num_bytes for one in costs if one) + parts.stage(REQUEST).num_bytes
    assert sum(whole.values()) == every - parts.tied_bytes()


def test_experts_and_states_are_kinds_of_their_own(load: Load, tmp_path: Path) -> None:
    (one,) = candidates(QUICK)
    hybrid = open_model(write_checkpoint(tiny_model("qwen3-next"), tmp_path / "m"), ARCHITECTURES)
    with hybrid.checkpoint:
        parts = DeviceParts(load, hybrid, one, stage_limits(load, hybrid, [one.info]))
        sizes = parts.sizes(0, 8, (5, 3))
    kinds = ["embedding", "attention", "feed-forward", "head", "experts", "KV cache", "states", "buffers"]
    assert list(sizes) == kinds
    elements = 3 * 8 * 3 * 32 * 64  # layers, experts, matrices
    assert sizes["experts"] in {2 * elements, 4 * elements}
    assert parts.expert_bytes_per_token(0, 8) == sizes["experts"] * 3 / 8
    states = next(group for group in hybrid.plan.groups if group.kind == "state")
    assert sizes["states"] in {count * 2 * states.state_bytes for count in (3, 5)}


def test_a_device_that_computes_no_indexers_is_left_the_other_parts(load: Load, tmp_path: Path) -> None:
    (one,) = candidates(QUICK)
    lacking = structs.replace(one.info, ops=tuple(kind for kind in one.info.ops if kind != "indexer"))
    sparse = open_model(write_checkpoint(tiny_model("deepseek-v32"), tmp_path / "m"), ARCHITECTURES)
    with sparse.checkpoint:
        parts = DeviceParts(
            load, sparse, structs.replace(one, info=lacking), stage_limits(load, sparse, [lacking])
        )
        costs = parts.costs(REQUEST, (5, 5))
    refused = [part.kind for part, cost in zip(sparse.plan.parts, costs, strict=True) if cost is None]
    assert refused == ["mixer"] * 3


def test_longer_answers_and_prompts_take_longer(parts: DeviceParts) -> None:
    def seconds(request: Request) -> float:
        return sum(one.seconds for one in parts.costs(request, BLOCKS) if one) + parts.stage(request).seconds

    assert seconds(Request(64, 0)) < seconds(Request(128, 0)) < seconds(Request(128, 16))
    assert seconds(Request(64, 16)) < seconds(Request(64, 32))


def test_layers_for_graphics_cards_bar_the_others(load: Load, model: OpenModel) -> None:
    (card,) = candidates(QUICK)
    asked = structs.replace(load, gpu_layers=1)
    barred = DeviceParts(asked, model, card, stage_limits(load, model, [card.info]))
    assert [one is None for one in barred.costs(REQUEST, BLOCKS)] == [True] * 3 + [False] * 3
