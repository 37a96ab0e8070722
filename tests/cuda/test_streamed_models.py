"""A model three times as large as a card's memory runs on it, with streamed weights and the right tokens."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from llmd.api import Device
from llmd.api.errors import MemoryBudgetError
from llmd.api.messages import Load, StageSpec
from llmd.benchmark.trace_events import trace_of
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.steps.step_trace import Tracer
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, open_device
from tests.daemon.benchmark.traces import check_trace
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.llama import llama
from tests.golden.models.tiny import TinyModel
from tests.serving.cores import ids, run, submit

pytestmark = NEEDS_COMPILER

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}
LAYERS = 12
CONFIG = llama(
    hidden_size=256, intermediate_size=768, num_hidden_layers=LAYERS, num_attention_heads=4, vocab_size=131
)
CARD_BYTES = 6_000_000
STREAMED = (
    StageSpec("cuda:0", "embed", "embed"),
    StageSpec("cuda:0", "0", str(LAYERS - 1), streamed=True),
    StageSpec("cuda:0", "head", "head"),
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(TinyModel("large", CONFIG, dtype="f16"), tmp_path_factory.mktemp("large"))


def load(
    directory: Path, device: Device, stages: tuple[StageSpec, ...] = (), tracer: Tracer | None = None
) -> LoadedModel:
    name = device.info.name
    options = Load(str(directory), name, stages, context_len=64, slots=2, chunk_len=8, activations="f16")
    return load_model(options, ARCHITECTURES, {name: device}.__getitem__, lambda _: None, tracer=tracer)


def tokens(model: LoadedModel) -> dict[int, list[int]]:
    """Return the greedy answers to two prompts, one of which needs several steps."""
    answers = run(model.core, submit(1, 5, 4), submit(2, 19, 3))
    model.close()
    return {number: ids(outputs) for number, outputs in answers.items()}


def card() -> SimulatedCard:
    return SimulatedCard(num_processors=1, memory_bytes=CARD_BYTES, deferred=True)


def test_a_model_three_times_as_large_as_the_card_has_the_tokens_of_the_reference(directory: Path) -> None:
    model = load(directory, open_device(card()), STREAMED)
    (stage,) = model.loaded.stages
    assert stage.streamed_bytes > 3 * CARD_BYTES
    assert tokens(model) == tokens(load(directory, ReferenceDevice()))


def test_without_streaming_it_does_not_fit(directory: Path) -> None:
    with pytest.raises(MemoryBudgetError):
        load(directory, open_device(card()))


def test_its_trace_shows_that_weights_are_copied_while_the_card_computes(directory: Path) -> None:
    tracer = Tracer()
    tokens(load(directory, open_device(card()), STREAMED, tracer))
    steps = list(tracer.steps)
    trace = trace_of(steps, ["cuda:0: all"])
    assert "stage cuda:0: all / weights" in check_trace(trace).values()
    for step in steps:
        (spans,) = step.stages
        copied = {span.name: span for span in spans if span.kind == "weights"}
        computed = [span for span in spans if span.kind == "device"]
        assert len(copied) == 2 * LAYERS
        for before, after in itertools.pairwise(computed):
            if after.name not in copied:
                continue  # the head stays on the card
            copy = copied[after.name]
            assert copy.start_s <= before.start_s < before.end_s <= copy.end_s <= after.start_s


def test_main_memory_has_what_the_card_has_not(directory: Path) -> None:
    model = load(directory, open_device(card()), STREAMED)
    (stage,) = model.loaded.stages
    whole = load(directory, ReferenceDevice())
    (other,) = whole.loaded.stages
    assert stage.weight_bytes + stage.streamed_bytes == other.weight_bytes
    model.close()
    whole.close()
