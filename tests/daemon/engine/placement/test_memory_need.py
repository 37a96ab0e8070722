from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from llmd.api import HOST_MEMORY, DeviceOptions
from llmd.api.errors import ConfigError, MemoryBudgetError, ModelError, UnsupportedModelError
from llmd.api.messages import Load, StageSpec
from llmd.api.step import BLOCK_LEN
from llmd.engine.composition import make_host
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.placement.memory_need import MemoryNeed
from llmd.host.plugin_host import PluginHost
from tests.golden.models.embedding import ENCODERS
from tests.serving.encoder import write_encoder
from tests.serving.memory_needs import memory_needs
from tests.serving.model import CONTEXT_LEN, write_embedding_model, write_model


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> PluginHost:
    return make_host(tmp_path_factory.mktemp("probes"))


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    directory = write_model(tmp_path_factory.mktemp("models") / "tiny")
    return Load(str(directory), device="reference", kv_dtype="f32")


def loaded(load: Load, host: PluginHost) -> LoadedModel:
    return load_model(
        load,
        host.architectures(),
        lambda name: host.open_device(host.find_device(name)),
        lambda _progress: None,
    )


def need_of(load: Load, host: PluginHost) -> MemoryNeed:
    """The need of a model on the reference device, which computes in main memory."""
    needs = memory_needs(load, host)
    assert list(needs) == [HOST_MEMORY]
    return needs[HOST_MEMORY]


def test_is_what_loading_takes(load: Load, host: PluginHost) -> None:
    load = structs.replace(load, kv_memory=1 << 40)
    need = need_of(load, host)
    model = loaded(load, host)
    with model.resources:
        (stage,) = model.loaded.stages
    assert (need.weight_bytes, need.kv_bytes) == (stage.weight_bytes, stage.kv_bytes)
    assert need.total_bytes == stage.size_bytes


def test_is_what_loading_a_model_that_embeds_takes(tmp_path: Path, host: PluginHost) -> None:
    load = Load(
        str(write_embedding_model(tmp_path / "e")), device="reference", kv_dtype="f32", kv_memory=1 << 40
    )
    need = need_of(load, host)
    model = loaded(load, host)
    with model.resources:
        (stage,) = model.loaded.stages
        with pytest.raises(UnsupportedModelError, match="cannot generate"):
            _ = model.core
    assert (need.weight_bytes, need.kv_bytes) == (stage.weight_bytes, stage.kv_bytes)


def test_an_encoder_keeps_nothing_and_needs_room_for_its_longest_text(
    tmp_path: Path, host: PluginHost
) -> None:
    case = ENCODERS[0]
    load = Load(str(write_encoder(case, tmp_path / "e")), device="reference", chunk_len=8)
    need = need_of(load, host)
    model = loaded(load, host)
    with model.resources:
        (stage,) = model.loaded.stages
        assert model.loaded.kv_tokens is None
        assert model.loaded.window == model.loaded.context_len
    assert (need.kv_bytes, need.total_bytes) == (0, stage.size_bytes)
    assert stage.step_bytes >= model.loaded.context_len * 32 * 4
    shorter = structs.replace(load, context_len=model.loaded.context_len // 2)
    assert need_of(shorter, host).step_bytes * 2 == need.step_bytes


def test_keys_and_values_take_what_was_asked_for_or_the_least_that_makes_sense(
    load: Load, host: PluginHost
) -> None:
    need = need_of(load, host)
    assert 0 < need.kv_bytes == need.most_kv_bytes // load.slots
    block = need.most_kv_bytes // load.slots // (CONTEXT_LEN // BLOCK_LEN)
    asked = need_of(structs.replace(load, kv_memory=5 * block + 1), host)
    assert asked.kv_bytes == asked.most_kv_bytes == 5 * block
    assert need_of(structs.replace(load, kv_memory=1 << 40), host).kv_bytes == need.most_kv_bytes
    assert need_of(structs.replace(load, slots=1 << 60), host).most_kv_bytes == 1 << 62
    with pytest.raises(MemoryBudgetError, match="the smallest KV pool takes"):
        need_of(structs.replace(load, kv_memory=block - 1), host)


def test_half_the_bytes_for_keys_of_half_the_width(load: Load, host: PluginHost) -> None:
    half = need_of(structs.replace(load, kv_dtype="f16"), host)
    assert 2 * half.kv_bytes == need_of(load, host).kv_bytes
    assert need_of(structs.replace(load, kv_dtype="bf16"), host) == half
    codes = need_of(structs.replace(load, kv_dtype="int8"), host)
    assert 32 * codes.kv_bytes == (16 + 2) * half.kv_bytes, "heads of 16 elements, and a scale for each"


def test_stages_add_up(load: Load, host: PluginHost) -> None:
    split = structs.replace(load, stages=(StageSpec("reference", "0", "0"), StageSpec("reference", "1", "1")))
    assert need_of(split, host).weight_bytes == need_of(load, host).weight_bytes
    with pytest.raises(ConfigError):
        need_of(structs.replace(load, stages=(StageSpec("reference", "0", "0"),)), host)


def test_each_memory_has_the_stages_that_are_in_it(load: Load, host: PluginHost) -> None:
    reference = host.choose_device("reference").info
    infos = {
        "a": structs.replace(reference, name="a", memory_id="card", memory_bytes=300),
        "b": structs.replace(reference, name="b", memory_id="card", memory_bytes=200),
        "c": reference,
    }
    split = structs.replace(
        load,
        stages=(StageSpec("a", "0", "0"), StageSpec("c", "1", "1")),
        device_options={"a": DeviceOptions(memory_bytes=100)},
    )

    def needs_of(message: Load) -> dict[str, MemoryNeed]:
        return memory_needs(message, host, infos.__getitem__)

    whole, needs = need_of(load, host), needs_of(split)
    assert set(needs) == {"card", HOST_MEMORY}
    card, rest = needs["card"], needs[HOST_MEMORY]
    assert (card.devices, card.memory_bytes, card.limit_bytes) == (("a",), 300, 100)
    assert (rest.devices, rest.limit_bytes) == (("reference",), None)
    assert card.weight_bytes + rest.weight_bytes == whole.weight_bytes
    assert card.kv_bytes == rest.kv_bytes == whole.kv_bytes // 2
    (shared,) = needs_of(
        structs.replace(split, stages=(StageSpec("a", "0", "0"), StageSpec("b", "1", "1")))
    ).values()
    assert (shared.devices, shared.memory_bytes, shared.limit_bytes) == (("a", "b"), 200, 100)
    assert shared.total_bytes == card.total_bytes + rest.total_bytes


def test_a_broken_model_has_no_need(tmp_path: Path, host: PluginHost) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError):
        need_of(Load(str(tmp_path), device="reference"), host)
