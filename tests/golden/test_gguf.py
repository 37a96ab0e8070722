"""Tiny models in GGUF files answer as in transformers, whose names, keys, norms and order of rows are others."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.engine.loading import OpenDevice
from tests.golden.engines import Architectures, engine, expected_rows, greedy_tokens
from tests.golden.expected import nmse, read_expected
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import CASES
from tests.golden.models.tiny import TinyModel

BOUND = 1e-9
WITHOUT_GGUF = ("llama-dynamic-rope-within", "llama-dynamic-rope-beyond")
"""llama.cpp knows no dynamic scaling."""
WINDOWS_THAT_GGUF_FORGETS = (
    "mistral-window",
    "mistral-window-of-block-size",
    "qwen2-window-above-first-layer",
)
CONVERTED = [case for case in CASES if case.name not in (*WITHOUT_GGUF, *WINDOWS_THAT_GGUF_FORGETS)]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("case", CONVERTED, ids=[case.name for case in CONVERTED])
def test_answers_are_those_of_transformers(
    case: TinyModel,
    device: str,
    tmp_path: Path,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    expected = read_expected(case.name)
    path = write_gguf(case, tmp_path / "m.gguf")
    with engine(case, path, architectures, open_device, device=device) as core:
        assert nmse(expected_rows(core, case, expected), expected.logits) <= BOUND
    with engine(case, path, architectures, open_device, device=device) as core:
        assert greedy_tokens(core, case) == expected.tokens.tolist()
