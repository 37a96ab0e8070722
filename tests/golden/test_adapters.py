"""Tiny models with LoRA adapters answer as transformers does with the adapters merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api import KVDtype
from llmd.api.messages import Load, StageSpec, StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.engine.core import EngineCore
from llmd.engine.loading import OpenDevice, load_model
from tests.golden.adapters import ADAPTERS, EIGHT, AdapterCase
from tests.golden.engines import Architectures
from tests.golden.expected import nmse, read_expected
from tests.golden.models.tiny import NUM_GREEDY, TinyModel

BOUND = 1e-9

each_case = pytest.mark.parametrize("case", ADAPTERS, ids=[case.name for case in ADAPTERS])
each_device = pytest.mark.parametrize("device", ["cpu", "reference"])


class Engines:
    """Loads models with adapters."""

    def __init__(
        self,
        checkpoint: Callable[[TinyModel], Path],
        architectures: Architectures,
        open_device: OpenDevice,
        folder: Path,
        write: Callable[[AdapterCase, Path], Path] = AdapterCase.write,
    ) -> None:
        """``write`` writes an adapter to a path and returns where it is."""
        self._write = write
        self._checkpoint = checkpoint
        self._architectures = architectures
        self._open_device = open_device
        self._folder = folder

    @contextmanager
    def of(
        self, model: TinyModel, *cases: AdapterCase, kv_dtype: KVDtype = "f32", **fields: Any
    ) -> Iterator[EngineCore]:
        """An engine with adapters, by their names. ``fields`` are those of `Load`."""
        written = {case.name: str(self._write(case, self._folder / case.name)) for case in cases}
        load = Load(
            str(self._checkpoint(model)),
            context_len=model.context_len,
            kv_dtype=kv_dtype,
            adapters=written,
            **fields,
        )
        loaded = load_model(load, self._architectures, self._open_device, lambda _: None)
        try:
            yield loaded.core
        finally:
            loaded.close()


@pytest.fixture
def engines(
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
    tmp_path: Path,
) -> Engines:
    return Engines(checkpoint, architectures, open_device, tmp_path)


def submit(request_id: int, model: TinyModel, adapter: str) -> Submit:
    return Submit(
        request_id=request_id,
        prompt=tuple(model.prompt),
        sampling=SamplingParams(seed=0, temperature=0.0),
        stop=StopParams(max_tokens=NUM_GREEDY),
        adapter=adapter,
    )


def answers(core: EngineCore, model: TinyModel, *adapters: str) -> list[list[int]]:
    """What the engine says in one batch after the model's prompt, with each of some adapters; empty: none."""
    said: dict[int, list[int]] = {number: [] for number, _ in enumerate(adapters)}
    for number, adapter in enumerate(adapters):
        core.submit(submit(number, model, adapter))
    while core.busy:
        for output in core.step().tokens:
            said[output.request_id].append(output.token)
    return list(said.values())


def error_of(core: EngineCore, case: AdapterCase) -> float:
    """How far the logits with an adapter are from those that are expected."""
    expected = read_expected(case.name)
    ids = np.array([*case.base.prompt, *expected.tokens.tolist()], np.int32)
    return nmse(core.forward(ids, case.name)[expected.positions], expected.logits)


@each_device
@each_case
def test_answers_are_those_of_merged_weights(case: AdapterCase, device: str, engines: Engines) -> None:
    with engines.of(case.base, case, device=device) as core:
        assert error_of(core, case) <= BOUND
        assert answers(core, case.base, case.name) == [read_expected(case.name).tokens.tolist()]


@each_device
def test_rows_without_an_adapter_have_the_bits_of_a_model_without_adapters(
    device: str, engines: Engines
) -> None:
    case = ADAPTERS[0]
    ids = np.array(case.base.prompt, np.int32)
    with engines.of(case.base, device=device) as plain:
        expected = plain.forward(ids)
    with engines.of(case.base, case, device=device) as core:
        np.testing.assert_array_equal(core.forward(ids), expected)
        assert nmse(core.forward(ids, case.name), expected) > 0.01


def test_each_stage_applies_the_adapters_of_its_layers(engines: Engines) -> None:
    case = ADAPTERS[0]
    stages = (StageSpec("cpu", "0", "0.mixer"), StageSpec("reference", "0.ffn", "1"))
    with engines.of(case.base, case, stages=stages) as core:
        assert error_of(core, case) <= BOUND


def answers_with_eight(core: EngineCore) -> list[list[int]]:
    """What a mixture says in one batch without an adapter and with each of eight.

    The model has an answer for each, and those that are committed.
    """
    base = EIGHT[0].base
    found = answers(core, base, "", *(case.name for case in EIGHT))
    assert found[:2] == [read_expected(name).tokens.tolist() for name in (base.name, EIGHT[0].name)]
    assert len({tuple(tokens) for tokens in found}) == len(found)
    return found


def test_eight_adapters_of_a_mixture_have_the_answers_in_a_batch_that_they_have_alone(
    engines: Engines,
) -> None:
    base = EIGHT[0].base
    with engines.of(base, *EIGHT, device="cpu", slots=1 + len(EIGHT)) as core:
        together = answers_with_eight(core)
        for case, tokens in zip(EIGHT, together[1:], strict=True):
            assert answers(core, base, case.name) == [tokens]
