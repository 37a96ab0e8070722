"""A split over stages changes no bit on one backend, and stays within the golden bounds over two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from llmd.api.messages import StageSpec
from llmd.engine.loading import OpenDevice
from tests.golden.compressed_tensors import DEEPSEEK_V4, is_routed_by_token
from tests.golden.engines import Architectures, engine, logits_error
from tests.golden.expected import read_expected
from tests.golden.models.catalog import CASES
from tests.golden.models.tiny import TinyModel
from tests.golden.rwkv_tensors import RWKV7
from tests.golden.space_tensors import BACKBONES, layer_kinds

BOUND = 1e-9


def num_layers(case: TinyModel) -> int:
    return int(case.config.get("num_hidden_layers") or len(layer_kinds(case.config)))


def first_halves(case: TinyModel) -> tuple[str, ...]:
    """The names of the parts of the first layer."""
    if case.config["model_type"] not in BACKBONES:
        return "0.mixer", "0.ffn"
    return ("0.ffn",) if layer_kinds(case.config)[0] in ("mlp", "moe") else ("0.mixer",)


def is_whole(case: TinyModel) -> bool:
    """Whether every layer looks up tokens or reads values of the first one: only the head can be on another
    device.
    """
    return case.config["model_type"] == RWKV7 or bool(case.config.get("hidden_size_per_layer_input"))


def looking_up_tokens(case: TinyModel) -> int:
    """The end of the layers that look up tokens, if others do not."""
    if case.config["model_type"] != DEEPSEEK_V4:
        return 0
    return 1 + max(layer for layer in range(num_layers(case)) if is_routed_by_token(case.config, layer))


def halves(case: TinyModel, first: str, second: str) -> tuple[StageSpec, ...]:
    last = str(num_layers(case) - 1)
    if is_whole(case):
        return (StageSpec(first, "0", last), StageSpec(second, "head", "head"))
    cut = max(1, looking_up_tokens(case))
    return (StageSpec(first, "0", str(cut - 1)), StageSpec(second, str(cut), last))


def apart(case: TinyModel, device: str) -> tuple[StageSpec, ...]:
    """The embedding, the head and each half of the first layer are stages of their own; if the first layers
    look up tokens, they with the embedding, and each half of the layer after them.
    """
    last = str(num_layers(case) - 1)
    if is_whole(case):
        return (StageSpec(device, "embed", last), StageSpec(device, "head", "head"))
    if cut := looking_up_tokens(case):
        first = (("embed", str(cut - 1)), (f"{cut}.mixer", f"{cut}.mixer"), (f"{cut}.ffn", last))
        return tuple(StageSpec(device, *one) for one in (*first, ("head", "head")))
    alone = [(name, name) for name in ("embed", *first_halves(case))]
    return tuple(StageSpec(device, *one) for one in (*alone, ("1", last), ("head", "head")))


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_split_on_one_backend_is_bit_identical(
    case: TinyModel,
    device: str,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    ids = np.array(case.prompt, np.int32)
    with engine(case, checkpoint(case), architectures, open_device, device=device) as whole:
        expected = whole.forward(ids)
    for stages in (halves(case, device, device), apart(case, device)):
        with engine(case, checkpoint(case), architectures, open_device, stages=stages) as split:
            assert np.array_equal(split.forward(ids), expected)


@pytest.mark.parametrize("order", [("cpu", "reference"), ("reference", "cpu")], ids="-then-".join)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_mixed_split_stays_within_the_golden_bound(
    case: TinyModel,
    order: tuple[str, str],
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    expected = read_expected(case.name)
    stages = halves(case, *order)
    with engine(case, checkpoint(case), architectures, open_device, stages=stages) as core:
        assert logits_error(core, case, expected) <= BOUND
