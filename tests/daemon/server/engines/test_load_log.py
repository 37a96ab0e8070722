from __future__ import annotations

import logging

import pytest

from llmd.api.messages import Loaded, Replanned, StageReport
from llmd.server.engines.load_log import log_placement

LOADED = Loaded("llama", 10, 64, 64, 1, ("f32",), (), 64, 0.5, ("converted",))
REPLANNED = Replanned(
    1, (StageReport("cpu", "layers 0-1", 1, 1, 1),), 64, ("f32",), ("converted", "gpu was lost")
)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def events(log: pytest.LogCaptureFixture) -> list[tuple[str, object]]:
    fields = ("load_s", "devices", "notice")
    return [
        (one.message, next(vars(one)[field] for field in fields if field in vars(one))) for one in log.records
    ]


def test_every_load_is_logged_with_its_notices(log: pytest.LogCaptureFixture) -> None:
    for known in (None, LOADED):
        log.clear()
        log_placement("tiny", LOADED, known)
        assert events(log) == [("model_loaded", 0.5), ("load_notice", "converted")]


def test_a_move_is_logged_with_what_is_new(log: pytest.LogCaptureFixture) -> None:
    log_placement("tiny", REPLANNED, LOADED)
    assert events(log) == [("model_replanned", "cpu"), ("load_notice", "gpu was lost")]
