from __future__ import annotations

import pytest
from msgspec import structs

from llmd.api.device import HOST_MEMORY
from llmd.api.errors import ConfigError
from llmd.api.messages import Load, StageSpec
from llmd.engine.placement.alternatives import Alternative, Comparison, compare
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.typical_request import TYPICAL, Request
from llmd.models.open_model import OpenModel
from llmd.placement.problem import cost_of
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW, candidates


def by_name(found: Comparison) -> dict[str, Alternative]:
    return {one.name: one for one in found.alternatives}


def test_each_device_alone_and_the_best_choice_are_compared(load: Load, model: OpenModel) -> None:
    found = compare(load, model, candidates(SLOW, QUICK))
    assert [one.name for one in found.alternatives] == ["d1", "d0"]
    assert found.best == "d1"
    best = by_name(found)["d1"]
    assert best.request_s == pytest.approx(found.least_s)
    assert [(stage.device, stage.parts) for stage in best.stages] == [("d1", "layers 0-1")]
    assert best.stages[0].part_names == ("embed", "0", "1", "head")
    sizes = best.stages[0].bytes_by_kind
    assert list(sizes) == ["embedding", "attention", "feed-forward", "head", "KV cache", "buffers"]
    assert sum(sizes.values()) == best.stages[0].num_bytes


def test_times_of_the_prompt_and_of_tokens_add_up_to_the_request(load: Load, model: OpenModel) -> None:
    (one,) = compare(load, model, candidates(QUICK)).alternatives
    assert one.prompt_s
    assert one.tokens_per_s
    assert one.request_s == pytest.approx(one.prompt_s + TYPICAL.answer_len / one.tokens_per_s)
    prompt = cost_of(ModelOnDevices(load, model, candidates(QUICK)).problem(Request(512, 0)), (0,) * 6)
    assert prompt is not None
    assert one.prompt_s == pytest.approx(prompt.seconds)


def test_a_device_without_room_shares_the_model(load: Load, model: OpenModel) -> None:
    whole = compare(load, model, candidates(QUICK)).alternatives[0].stages[0].num_bytes
    quick, slow = candidates(QUICK, SLOW)
    found = compare(load, model, [structs.replace(quick, free_bytes=whole - 4096), slow])
    assert found.best in {"d0 + d1", "d1 + d0"}
    alone = by_name(found)["d0"]
    assert alone.request_s is None
    assert alone.problem.startswith("needs ")
    assert alone.problem.endswith(" that are free")
    best = by_name(found)[found.best]
    assert {stage.device for stage in best.stages} == {"d0", "d1"}
    assert sum(len(stage.part_names) for stage in best.stages) >= 4


def test_nothing_fits(load: Load, model: OpenModel) -> None:
    found = compare(load, model, candidates(QUICK, free_bytes=1000))
    assert (found.best, found.least_s) == (None, None)
    assert [one.request_s for one in found.alternatives] == [None]


def test_a_device_that_lacks_an_op_says_which_part_it_cannot_run(load: Load, model: OpenModel) -> None:
    (one,) = candidates(QUICK)
    unable = structs.replace(
        one, info=structs.replace(one.info, ops=("embed", "norm", "linear", "add", "head"))
    )
    (alone,) = compare(load, model, [unable]).alternatives
    assert alone.problem == "d0 cannot run layer 0.mixer"


def test_the_choice_of_the_settings_is_compared_too(load: Load, model: OpenModel) -> None:
    split = structs.replace(load, stages=(StageSpec("d0", "embed", "0"), StageSpec("d1", "1", "head")))
    found = compare(split, model, candidates(QUICK, SLOW))
    mixed = by_name(found)["d0 + d1"]
    assert [stage.part_names for stage in mixed.stages] == [("embed", "0"), ("1", "head")]
    assert mixed.request_s
    assert found.best == "d0"


def test_a_split_with_an_unknown_device_is_refused(load: Load, model: OpenModel) -> None:
    split = structs.replace(load, stages=(StageSpec("tpu", "0", "1"),))
    with pytest.raises(ConfigError, match="--split names tpu, which is not a device that can be used"):
        compare(split, model, candidates(QUICK))


def test_layers_on_graphics_cards_are_compared_as_set(load: Load, model: OpenModel) -> None:
    quick, slow = candidates(QUICK, SLOW)
    host = structs.replace(quick, info=structs.replace(quick.info, memory_id=HOST_MEMORY))
    found = compare(structs.replace(load, gpu_layers=1), model, [host, slow])
    assert found.best == "d0"
    assert [stage.part_names for stage in by_name(found)["d0 + d1"].stages] == [("embed", "0"), ("1", "head")]
    full = structs.replace(slow, free_bytes=1000)
    assert set(by_name(compare(structs.replace(load, gpu_layers=1), model, [host, full]))) == {"d0", "d1"}


def test_streamed_weights_are_said(load: Load, model: OpenModel) -> None:
    """A card that has no room for the model, alone in the machine."""
    (card,) = candidates(structs.replace(QUICK, stream_bytes_per_s=1e9))
    card = structs.replace(card, host_free_bytes=1 << 30)
    whole = compare(load, model, [card]).alternatives[0].stages[0].num_bytes
    found = compare(load, model, [structs.replace(card, free_bytes=whole - 4096)])
    best = by_name(found)[found.best or ""]
    streamed = [stage for stage in best.stages if stage.device == "d0/stream"]
    assert streamed
    assert all(stage.host_bytes for stage in streamed)
    assert not any(stage.host_bytes for stage in best.stages if stage.device == "d0")
    split = structs.replace(
        load, stages=(StageSpec("d0", "embed", "0"), StageSpec("d0", "1", "1", streamed=True))
    )
    assert "d0 + d0/stream" in by_name(compare(split, model, [card]))
    with pytest.raises(ConfigError, match="--split names d0/stream, which is not a device that can be used"):
        compare(split, model, candidates(QUICK))
