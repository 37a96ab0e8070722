from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from llmd.engine.composition import make_host
from llmd.engine.placement.typical_request import Request, request_for
from llmd.models.open_model import OpenModel, open_model
from llmd.placement.seconds import Rows
from tests.serving.model import write_embedding_model, write_model


@contextmanager
def opened(directory: Path, probes: Path) -> Iterator[OpenModel]:
    model = open_model(directory, make_host(probes).architectures())
    with closing(model.checkpoint):
        yield model


def test_a_prompt_is_computed_in_chunks() -> None:
    steps = list(Request(600, 1).prompt_steps(256))
    assert steps == [Rows(1, 256, 256), Rows(1, 256, 512), Rows(1, 88, 600)]


def test_a_short_context_gets_a_shorter_request(tmp_path: Path) -> None:
    for context_len, request in {1024: Request(512, 128), 500: Request(400, 100), 3: Request(2, 1)}.items():
        with opened(write_model(tmp_path / f"{context_len}", context_len=context_len), tmp_path) as model:
            assert request_for(model) == request


def test_a_model_that_embeds_gives_no_answer(tmp_path: Path) -> None:
    with opened(write_embedding_model(tmp_path / "e", context_len=100), tmp_path) as model:
        assert request_for(model) == Request(100, 0)
