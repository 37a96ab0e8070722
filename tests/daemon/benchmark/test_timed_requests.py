from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from llmd.api.messages import Load
from llmd.benchmark.timed_requests import time_requests
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.placement.typical_request import Request
from tests.serving.model import write_embedding_model, write_model

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}


def loaded(directory: Path) -> LoadedModel:
    return load_model(Load(str(directory)), ARCHITECTURES, lambda _name: ReferenceDevice(), lambda _: None)


def test_a_request_takes_its_prompt_and_its_tokens(tmp_path: Path) -> None:
    with closing(loaded(write_model(tmp_path / "m"))) as model:
        found = time_requests(model, Request(40, 9), rounds=2)
        report = model.core.report()
        time_requests(model, Request(40, 9), rounds=2)
        assert model.core.report().cached_tokens == 0, "also if the same prompts run again"
    assert 0 < found.prompt_s < found.request_s
    assert found.tokens_per_s == pytest.approx(8 / (found.request_s - found.prompt_s))
    assert found.slowest >= 1
    assert (report.prompt_tokens, report.output_tokens) == (3 * 40, 3 * 9), "no prompt is in the cache"


def test_a_text_is_embedded(tmp_path: Path) -> None:
    with closing(loaded(write_embedding_model(tmp_path / "e"))) as model:
        found = time_requests(model, Request(40, 0), rounds=1)
    assert 0 < found.prompt_s <= found.request_s
    assert found.tokens_per_s is None
