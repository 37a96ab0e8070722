from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gguf
import pytest

from llmd.api.messages import Load
from llmd.engine.composition import make_host
from llmd.engine.placement.default_quant import with_default_quant
from llmd.models.open_model import OpenModel, open_model
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model
from tests.serving.model import write_model

DEFAULT = Load("", quant="q4", quant_is_default=True)


def opened(path: Path, cache: Path) -> Iterator[OpenModel]:
    model = open_model(path, make_host(cache).architectures())
    yield model
    model.checkpoint.close()


@pytest.fixture
def quantized(tmp_path: Path) -> Iterator[OpenModel]:
    path = write_gguf(tiny_model("llama2-mha"), tmp_path / "m.gguf", gguf.GGMLQuantizationType.Q8_0)
    yield from opened(path, tmp_path)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[OpenModel]:
    yield from opened(write_model(tmp_path / "tiny"), tmp_path)


def test_a_default_does_not_apply_to_weights_that_are_stored_quantised(quantized: OpenModel) -> None:
    load, model = with_default_quant(DEFAULT, quantized)
    assert load.quant is None
    assert model.notices[-1] == (
        "the weights are stored quantised, as q8_0: the setting quant = q4 is ignored"
    )
    asked = Load("", quant="q4")
    assert with_default_quant(asked, quantized) == (asked, quantized)


def test_a_default_applies_to_plain_weights(plain: OpenModel) -> None:
    assert with_default_quant(DEFAULT, plain) == (DEFAULT, plain)
