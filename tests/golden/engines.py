"""Loads a tiny model into an engine of this process, as the engine process would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from llmd.api import ActivationDtype, Architecture, Format, KVDtype
from llmd.api.messages import Load, StageSpec, StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.engine.core import EngineCore
from llmd.engine.loading import OpenDevice, load_model
from tests.golden.expected import Expected, nmse
from tests.golden.models.tiny import NUM_GREEDY, TinyModel

Architectures = Mapping[str, Architecture]


@contextmanager
def engine(
    case: TinyModel,
    directory: Path,
    architectures: Architectures,
    open_device: OpenDevice,
    *,
    device: str = "auto",
    stages: tuple[StageSpec, ...] = (),
    kv_dtype: KVDtype = "f32",
    quant: Format | None = None,
    activations: ActivationDtype | None = None,
    slots: int = 2,
) -> Iterator[EngineCore]:
    """An engine of a checkpoint that was written to ``directory``, on one device or split.

    Models that are stored in integers compute in f32 unless ``activations`` says otherwise: their
    expectations do too.
    """
    load = Load(
        str(directory),
        device=device,
        stages=stages,
        context_len=case.context_len,
        slots=slots,
        kv_dtype=kv_dtype,
        quant=quant,
        activations=activations or ("f32" if case.is_quantised else "int8"),
    )
    model = load_model(load, architectures, open_device, lambda _: None)
    try:
        yield model.core
    finally:
        model.close()


def expected_rows(core: EngineCore, case: TinyModel, expected: Expected) -> NDArray[np.float32]:
    """The engine's logits where the expectation has some."""
    ids = np.array([*case.prompt, *expected.tokens.tolist()], np.int32)
    return core.forward(ids)[expected.positions]


def logits_error(core: EngineCore, case: TinyModel, expected: Expected) -> float:
    """How far the engine's logits are from those that are expected, as `nmse` has it."""
    return nmse(expected_rows(core, case, expected), expected.logits)


def greedy_tokens(core: EngineCore, case: TinyModel) -> list[int]:
    """What the engine says after the prompt, one step at a time."""
    core.submit(
        Submit(
            request_id=1,
            prompt=tuple(case.prompt),
            sampling=SamplingParams(seed=0, temperature=0.0),
            stop=StopParams(max_tokens=NUM_GREEDY),
        )
    )
    tokens: list[int] = []
    while core.busy:
        tokens.extend(output.token for output in core.step().tokens)
    return tokens
