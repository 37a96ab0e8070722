"""Loading follows the message, refuses what is impossible, and frees what it allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from gguf import GGMLQuantizationType

from llmd.api import (
    HOST_MEMORY,
    Architecture,
    ConfigError,
    Device,
    DeviceOptions,
    LoadedWeights,
    MemoryBudgetError,
    ModelPlan,
    Program,
    Progress,
    TensorSource,
    UnsupportedModelError,
)
from llmd.api.messages import Load, Loaded, Loading, StageSpec
from llmd.api.ops import FACTOR_OPS
from llmd.api.plugins import Config
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.builtin.reference.device import ReferenceDevice, ReferenceWeights
from llmd.engine.loading import LoadedModel, load_model
from llmd.registry.packed_weights import PackedWeightFiles
from llmd.testing.null_device import NullDevice
from tests.golden.checkpoint import write_checkpoint
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model
from tests.serving.cores import run, submit

CASE = tiny_model("tinyllama")
ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(CASE, tmp_path_factory.mktemp("model") / CASE.name)


MakeModel = Callable[..., LoadedModel]


@pytest.fixture
def load(directory: Path) -> Iterator[MakeModel]:
    """Load the tiny model; close everything after the test."""
    with ExitStack() as stack:

        def make(device: Device | None = None, **options: Any) -> LoadedModel:
            chosen: dict[str, Any] = {
                "slots": 2,
                "context_len": CASE.context_len,
                "kv_dtype": "f32",
            } | options
            message = Load(str(directory), **chosen)
            model = load_model(
                message, ARCHITECTURES, lambda _name: device or ReferenceDevice(), lambda _: None
            )
            stack.callback(model.close)
            return model

        yield make


def logits(model: LoadedModel) -> np.ndarray:
    return model.core.forward(np.array(CASE.prompt, np.int32))


def test_says_what_was_loaded(load: MakeModel) -> None:
    loaded = load().loaded
    assert loaded.architecture == "llama"
    assert loaded.context_len == CASE.context_len
    assert loaded.formats == ("f16",)
    assert [(s.device, s.parts) for s in loaded.stages] == [("reference", "layers 0-1")]
    assert loaded.stages[0].weight_bytes == 2 * loaded.num_parameters
    assert loaded.kv_tokens == CASE.context_len


def test_stages_split_the_layers_and_change_nothing(load: MakeModel) -> None:
    whole = load()
    split = load(stages=(StageSpec("a", "0", "0"), StageSpec("b", "1", "1")))
    assert [stage.parts for stage in split.loaded.stages] == ["layer 0", "layer 1"]
    assert np.array_equal(logits(split), logits(whole))


@pytest.mark.parametrize(
    "make", [ReferenceDevice, partial(NullDevice, lambda: 0.0)], ids=["reference", "null"]
)
def test_embedding_layers_and_head_on_three_devices_answer_as_one(
    directory: Path, make: Callable[[], Device]
) -> None:
    split = (StageSpec("a", "embed", "embed"), StageSpec("b", "0", "1"), StageSpec("c", "head", "head"))
    opened: list[str] = []

    def open_device(name: str) -> Device:
        opened.append(name)
        return make()

    answers = []
    for stages in ((), split):
        message = Load(str(directory), slots=2, context_len=64, stages=stages)
        with closing(load_model(message, ARCHITECTURES, open_device, lambda _: None)) as model:
            answers.append(run(model.core, *(submit(request, 20 * request) for request in (1, 2))))
            parts = [stage.parts for stage in model.loaded.stages]
    assert answers[0] == answers[1]
    assert len(answers[0][1]) == len(answers[0][2]) == 12
    assert opened == ["auto", "a", "b", "c"]
    assert parts == ["embed", "layers 0-1", "head"]
    weights, keys = (
        [getattr(stage, name) for stage in model.loaded.stages] for name in ("weight_bytes", "kv_bytes")
    )
    table, norm = (2 * CASE.config["hidden_size"] * rows for rows in (CASE.config["vocab_size"], 1))
    assert (weights[0], weights[2]) == (table, table + norm)
    assert keys[0] == keys[2] == 0 < keys[1]


def test_q8_is_quantised_on_the_way(load: MakeModel) -> None:
    model = load(quant="q8")
    assert model.loaded.formats == ("f16", "q8")
    error, exact = logits(model) - logits(load()), logits(load())
    assert 0 < float(np.sum(error**2) / np.sum(exact**2)) < 0.05


def test_a_format_that_the_device_lacks_is_converted_and_said(load: MakeModel) -> None:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(device.info, formats=("bf16",))
    loaded = load(device).loaded
    assert loaded.formats == ("bf16",)
    assert any("converted to bf16" in notice for notice in loaded.notices)


def test_a_table_of_blocks_is_the_head_too_where_the_device_looks_rows_up_in_blocks(tmp_path: Path) -> None:
    case = tiny_model("llama3-gqa-tied")
    message = Load(
        str(write_gguf(case, tmp_path / "m.gguf", GGMLQuantizationType.Q8_0)), slots=1, context_len=64
    )
    device = ReferenceDevice()

    def loaded() -> Loaded:
        with closing(load_model(message, ARCHITECTURES, lambda _name: device, lambda _: None)) as model:
            return model.loaded

    packed = loaded()
    device.info = msgspec.structs.replace(device.info, integer_ops=FACTOR_OPS)
    widened = loaded()
    assert packed.formats == ("f32", "q8_0")
    assert widened.formats == ("f16", "f32", "q8_0")
    table = 2 * case.config["vocab_size"] * case.config["hidden_size"]
    assert widened.stages[0].weight_bytes - packed.stages[0].weight_bytes == table


def test_progress_is_reported_for_each_stage(directory: Path) -> None:
    seen: list[Loading] = []
    message = Load(
        str(directory), slots=1, context_len=64, stages=(StageSpec("a", "0", "0"), StageSpec("b", "1", "1"))
    )
    load_model(message, ARCHITECTURES, lambda _name: ReferenceDevice(), seen.append).close()
    assert list(dict.fromkeys(one.phase for one in seen)) == [
        "layer 0 on reference",
        "layer 1 on reference",
    ]


class PackingDevice(ReferenceDevice):
    """Records the file that it may keep packed weights in."""

    packed: Path | None = None

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> ReferenceWeights:
        self.packed = tensors.packed
        return super().load(program, tensors, progress, have)


def test_a_device_is_given_a_file_for_quantised_weights_alone(directory: Path, tmp_path: Path) -> None:
    def file_of(**options: Any) -> Path | None:
        device = PackingDevice()
        message = Load(str(directory), slots=1, kv_dtype="f32", **options)
        packed_files = PackedWeightFiles(tmp_path)
        load_model(message, ARCHITECTURES, lambda _: device, lambda _: None, None, packed_files).close()
        return device.packed

    first = file_of(quant="q8", weight_cache=1 << 30)
    assert first is not None
    assert first.is_relative_to(tmp_path)
    assert file_of(quant="q8", weight_cache=1 << 30, context_len=64) == first
    assert file_of(quant="q4", weight_cache=1 << 30) not in {first, None}
    assert file_of(weight_cache=1 << 30) is None
    assert file_of(quant="q8") is None


def test_the_kv_memory_bounds_the_pool(load: MakeModel) -> None:
    small = load(kv_memory=1 << 14).loaded
    assert small.stages[0].kv_bytes <= 1 << 14
    assert small.kv_tokens is not None
    assert small.kv_tokens <= CASE.context_len
    assert small.stages[0].kv_bytes < load().loaded.stages[0].kv_bytes
    with pytest.raises(MemoryBudgetError, match="the budget is 100"):
        load(kv_memory=100)


def test_a_limit_of_the_device_bounds_weights_pools_and_step_buffers(load: MakeModel) -> None:
    whole = load(slots=8).loaded.stages[0]
    limit = whole.size_bytes - whole.kv_bytes // 2
    options = {"reference": DeviceOptions(memory_bytes=limit)}
    limited = load(slots=8, device_options=options).loaded.stages[0]
    assert (limited.weight_bytes, limited.step_bytes) == (whole.weight_bytes, whole.step_bytes)
    assert whole.kv_bytes // 4 < limited.kv_bytes <= whole.kv_bytes // 2
    with pytest.raises(MemoryBudgetError, match="exceed the limit of 1000 B"):
        load(device_options={"reference": DeviceOptions(memory_bytes=1000)})


def test_stages_say_in_which_memory_they_are(load: MakeModel) -> None:
    assert load().loaded.stages[0].memory_id == HOST_MEMORY
    card = ReferenceDevice()
    card.info = msgspec.structs.replace(card.info, memory_id="card")
    assert load(card).loaded.stages[0].memory_id == "card"


def test_a_window_beyond_what_the_model_was_made_for_is_refused(load: MakeModel) -> None:
    longest = load().loaded.max_context_len
    assert load(context_len=longest).loaded.context_len == longest
    with pytest.raises(ConfigError, match=f"--max-ctx {longest + 1}: the model supports at most {longest}"):
        load(context_len=longest + 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quant": "q7"}, "quant q7: weights cannot be quantised to this format"),
        ({"quant": "f16"}, "quant f16"),
        ({"threads": 0}, "--threads 0: at least one thread is needed"),
        ({"context_len": 0}, "--max-ctx 0: the context window needs at least one token"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    load: MakeModel, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(**options)


def test_a_device_that_refuses_is_named_with_its_reasons(load: MakeModel) -> None:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(device.info, kv_dtypes=("f16",))
    with pytest.raises(UnsupportedModelError, match=r"KV cache as f32: it supports f16 \("):
        load(device)


def test_activations_that_the_device_lacks_are_named(load: MakeModel) -> None:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(device.info, activations=("int8",))
    with pytest.raises(UnsupportedModelError, match=r"activations as f32: with weights in q8"):
        load(device, quant="q8", activations="f32")
    assert load(device, activations="f32").loaded.notices == ()


class Halves(ReferenceDevice):
    """A device that computes with float16, and keeps the programs that it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.info = msgspec.structs.replace(
            self.info, activations=("f16", "int8"), precisions=("f16",), kv_dtypes=("f16",)
        )
        self.programs: list[Program] = []

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> ReferenceWeights:
        self.programs.append(program)
        return super().load(program, tensors, progress, have)


@pytest.mark.parametrize(("asked", "activations"), [(None, "f16"), ("int8", "int8"), ("f16", "f16")])
def test_a_device_computes_with_the_asked_activations_or_its_own_choice_and_its_precision(
    load: MakeModel, asked: str | None, activations: str
) -> None:
    device = Halves()
    load(device, quant="q8", activations=asked, kv_dtype="f16")
    assert [(p.activations, p.precision) for p in device.programs] == [(activations, "f16")]


def test_a_precision_that_the_device_lacks_is_named(load: MakeModel) -> None:
    with pytest.raises(UnsupportedModelError, match=r"precision bf16: with plain weights, .* with f16 \("):
        load(Halves(), activations="bf16", kv_dtype="f16")


def test_an_op_that_the_device_lacks_is_named(load: MakeModel) -> None:
    device = ReferenceDevice()
    without = tuple(kind for kind in device.info.ops if kind != "rope")
    device.info = msgspec.structs.replace(device.info, ops=without)
    with pytest.raises(UnsupportedModelError, match="op rope: the device does not compute it"):
        load(device)


def test_a_feature_that_a_model_needs_is_the_device_s_or_is_named(directory: Path) -> None:
    def plan_with_need(config: Config, context_len: int | None) -> ModelPlan:
        plan = ARCHITECTURES["llama"].plan(config, context_len)
        return msgspec.structs.replace(plan, needs=("of_tomorrow",))

    families = dict.fromkeys(ARCHITECTURES, Architecture(("llama",), plan_with_need))
    message = Load(str(directory), slots=1, context_len=CASE.context_len)
    device = ReferenceDevice()
    with pytest.raises(UnsupportedModelError, match="feature of_tomorrow: the device does not support it"):
        load_model(message, families, lambda _name: device, lambda _: None)
    device.info = msgspec.structs.replace(device.info, features=("of_tomorrow",))
    with closing(load_model(message, families, lambda _name: device, lambda _: None)) as model:
        assert np.all(np.isfinite(logits(model)))


def test_devices_are_closed_when_loading_fails_and_when_the_model_is_closed(load: MakeModel) -> None:
    closed: list[str] = []

    class Watched(ReferenceDevice):
        def close(self) -> None:
            closed.append("device")

    with pytest.raises(MemoryBudgetError):
        load(Watched(), kv_memory=1)
    assert closed == ["device"]
    load(Watched()).close()
    assert closed == ["device", "device"]
