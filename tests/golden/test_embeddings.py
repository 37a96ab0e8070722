"""Models that embed give the vectors of sentence-transformers, whatever shares their steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api.messages import EmbedText, Load, StageSpec
from llmd.engine.embedding_core import EmbeddingCore
from llmd.engine.loading import OpenDevice, load_model
from tests.golden.engines import Architectures
from tests.golden.expected import nmse, read_pooled
from tests.golden.models.embedding import CASES, FLAGS, texts, write_pooling
from tests.golden.models.tiny import TinyModel
from tests.golden.test_goldens import DEVICES

each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
each_device = pytest.mark.parametrize("device", DEVICES)
Embed = Callable[..., NDArray[np.float32]]


@pytest.fixture
def embed(
    checkpoint: Callable[[TinyModel], Path], architectures: Architectures, open_device: OpenDevice
) -> Embed:
    """Return a function that pools the texts of a case in batches, on a device with the given options."""

    def run(case: TinyModel, poolings: Sequence[str], batch: int, **options: object) -> NDArray[np.float32]:
        directory = checkpoint(case)
        write_pooling(directory, poolings)
        load = Load(str(directory), context_len=case.context_len, **options)  # type: ignore[arg-type]
        model = load_model(load, architectures, open_device, lambda _: None)
        assert isinstance(model.runner, EmbeddingCore)
        try:
            return vectors(model.runner, texts(case), batch)
        finally:
            model.close()

    return run


def vectors(core: EmbeddingCore, inputs: Sequence[tuple[int, ...]], batch: int) -> NDArray[np.float32]:
    """The vector of each text, ``batch`` of them at a time."""
    found: dict[int, NDArray[np.float32]] = {}
    for at in range(0, len(inputs), batch):
        for number, tokens in enumerate(inputs[at : at + batch], at):
            core.submit(EmbedText(number, tokens))
        while core.busy:
            for one in core.step().vectors:
                found[one.request_id] = np.frombuffer(one.vector, "<f4")
    return np.stack([found[number] for number in range(len(inputs))])


@each_device
@each_case
@pytest.mark.parametrize("pooling", FLAGS)
def test_vectors_are_those_of_transformers(case: TinyModel, device: str, pooling: str, embed: Embed) -> None:
    expected = read_pooled(case.name)[0][pooling]
    assert nmse(embed(case, [pooling], 8, device=device, kv_dtype="f32"), expected) <= 1e-9


@each_case
def test_several_poolings_follow_one_another(case: TinyModel, embed: Embed) -> None:
    expected = read_pooled(case.name)[0]
    joined = embed(case, ["mean", "cls"], 8, device="reference", kv_dtype="f32")
    assert nmse(joined, np.concatenate([expected["cls"], expected["mean"]], axis=1)) <= 1e-9


@each_device
@each_case
@pytest.mark.parametrize("pooling", ["mean", "weighted_mean", "last"])
def test_bits_depend_on_no_batch_and_no_chunk(
    case: TinyModel, device: str, pooling: str, embed: Embed
) -> None:
    alone = embed(case, [pooling], 1, device=device)
    assert np.array_equal(embed(case, [pooling], 8, device=device), alone)
    assert np.array_equal(embed(case, [pooling], 8, device=device, chunk_len=7), alone)


@each_case
def test_a_split_changes_nothing(case: TinyModel, embed: Embed) -> None:
    whole = embed(case, ["mean"], 8, device="reference")
    stages = (StageSpec("reference", "0", "0"), StageSpec("reference", "1", "1"))
    assert np.array_equal(embed(case, ["mean"], 8, stages=stages), whole)


@each_case
def test_eight_bit_weights_stay_near(case: TinyModel, embed: Embed) -> None:
    expected = read_pooled(case.name)[0]["mean"]
    assert nmse(embed(case, ["mean"], 8, device="reference", quant="q8"), expected) <= 1e-2


def test_expectations_come_from_the_versions_that_the_oracle_pins() -> None:
    requirements = (Path(__file__).parent / "oracle" / "requirements.txt").read_text()
    pinned = dict(re.findall(r"^(torch|transformers)==(.+)$", requirements, re.MULTILINE))
    for case in CASES:
        versions = read_pooled(case.name)[1]
        assert {name: version.partition("+")[0] for name, version in versions.items()} == pinned
