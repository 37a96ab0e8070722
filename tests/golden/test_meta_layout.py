"""Tiny models in Meta's and Mistral's own layouts answer as in transformers,
whose names and rotations are others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from llmd.engine.loading import OpenDevice
from tests.golden.engines import Architectures, engine, greedy_tokens, logits_error
from tests.golden.expected import read_expected
from tests.golden.meta_layout import write_meta, write_mistral
from tests.golden.models.catalog import tiny_model
from tests.golden.models.tiny import TinyModel

BOUND = 1e-9
Write = Callable[[TinyModel, Path], Path]

LAYOUTS: dict[str, tuple[str, Write]] = {
    "one file": ("llama2-mha", write_meta),
    "two pieces, embedding cut by width": ("llama32-tied", partial(write_meta, pieces=2)),
    "two pieces, embedding cut by token": ("llama32-tied", partial(write_meta, pieces=2, embedding_axis=0)),
    "tied": ("llama32-tied", write_mistral),
    "f16": ("tinyllama", write_meta),
    "window": ("mistral-window", write_mistral),
    "shards, heads of their own width": ("mistral-no-window", write_mistral),
}


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize(("name", "write"), LAYOUTS.values(), ids=LAYOUTS)
def test_answers_in_metas_layout_are_those_of_transformers(
    name: str,
    write: Write,
    device: str,
    tmp_path: Path,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = tiny_model(name)
    expected = read_expected(name)
    directory = write(case, tmp_path / "model")
    with engine(case, directory, architectures, open_device, device=device) as core:
        assert logits_error(core, case, expected) <= BOUND
    with engine(case, directory, architectures, open_device, device=device) as core:
        assert greedy_tokens(core, case) == expected.tokens.tolist()
