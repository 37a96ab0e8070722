"""Every tiny model answers as in transformers, on every backend."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.api import KVDtype, UnsupportedModelError
from llmd.api.kv import LATENT_KV_DTYPES
from llmd.engine.loading import OpenDevice
from tests.golden.engines import Architectures, engine, greedy_tokens, logits_error
from tests.golden.expected import read_expected
from tests.golden.models.catalog import CASES, tiny_model
from tests.golden.models.fp8 import FP8_CASES
from tests.golden.models.nvfp4 import NVFP4_CASES
from tests.golden.models.routing import ROUTING_CASES
from tests.golden.models.tiny import TinyModel

DEVICES = ("cpu", "reference")
BOUNDS: dict[KVDtype, float] = {"f32": 1e-9, "f16": 1e-5, "bf16": 1e-4, "int8": 1e-3, "int4": 1e-1}

each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def kept_types(case: TinyModel) -> tuple[KVDtype, ...]:
    """The types of keys with which a model is held to the bounds.

    With rounded keys, an indexer chooses other positions where scores are close. `llmd.testing.indexer_cases`
    compares those choices with the reference.
    """
    if "index_topk" in case.config:
        return ("f32",)
    return LATENT_KV_DTYPES if "kv_lora_rank" in case.config else tuple(BOUNDS)


each_kept = pytest.mark.parametrize(
    ("case", "kv_dtype"),
    [
        pytest.param(case, kv_dtype, id=f"{kv_dtype}-{case.name}")
        for kv_dtype in BOUNDS
        for case in CASES
        if kv_dtype in kept_types(case)
    ],
)
each_device = pytest.mark.parametrize("device", DEVICES)


@each_device
@each_kept
def test_logits_are_those_of_transformers(
    case: TinyModel,
    device: str,
    kv_dtype: KVDtype,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    expected = read_expected(case.name)
    with engine(case, checkpoint(case), architectures, open_device, device=device, kv_dtype=kv_dtype) as core:
        assert logits_error(core, case, expected) <= BOUNDS[kv_dtype]


@each_device
@each_case
def test_greedy_tokens_are_those_of_transformers(
    case: TinyModel,
    device: str,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    with engine(case, checkpoint(case), architectures, open_device, device=device) as core:
        assert greedy_tokens(core, case) == read_expected(case.name).tokens.tolist()


@each_device
def test_latent_vectors_are_not_kept_as_codes(
    device: str,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = tiny_model("deepseek-v3")
    with (
        pytest.raises(UnsupportedModelError, match="KV cache as int8: latent attention keeps f32, f16, bf16"),
        engine(case, checkpoint(case), architectures, open_device, device=device, kv_dtype="int8"),
    ):
        pass


def test_expectations_come_from_the_versions_that_the_oracle_pins() -> None:
    requirements = (Path(__file__).parent / "oracle" / "requirements.txt").read_text()
    pinned = dict(re.findall(r"^(torch|transformers)==(.+)$", requirements, re.MULTILINE))
    for case in (*CASES, *FP8_CASES, *NVFP4_CASES, *ROUTING_CASES):
        versions = read_expected(case.name).versions
        assert {name: version.partition("+")[0] for name, version in versions.items()} == pinned
