from __future__ import annotations

from pathlib import Path

import pytest

from bench import placement
from bench.placement import Round, SharedRound, page, rounds, shared_page
from bench.placement_machine import Outcome
from bench.quiet import QuietRounds
from bench.shapes import SHAPES
from tests.bench.watches import Watch
from tests.daemon.engine.placement.tiny_candidates import QUICK
from tests.serving.model import write_model


def test_predicted_and_measured_times_are_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "full_profile", lambda _device, _budget_s: QUICK)
    directory = write_model(tmp_path / "m", context_len=1024)
    (found,) = rounds(directory, "q8", QuietRounds(Watch), 1)
    assert found.prompt > 0
    assert found.answer > 0
    assert found.profile_s >= 0


def test_the_page_has_a_row_for_each_format() -> None:
    found = {"bf16": [Round(0.9, 1.1, 3.0), Round(1.0, 1.2, 3.1), Round(1.3, 0.9, 9.0)]}
    text = page(SHAPES["llama-1b"].with_layers(4), found, QuietRounds(Watch))
    assert "| bf16 | 1.00 (0.90 to 1.30) | 1.10 (0.90 to 1.20) | 3.1 s |" in text


def test_the_page_has_a_row_for_each_setup_and_each_device() -> None:
    shape = SHAPES["llama-100m"]
    found = [
        SharedRound(
            {"cpu": seconds},
            {"alone": Outcome(prompt, 1.0, "cpu"), "apart": Outcome(1.0, 1.1, devices, gain=1.5)},
        )
        for seconds, prompt, devices in ((2.0, 0.9, "a"), (3.0, 1.2, "a + b"), (2.5, 1.0, "a"))
    ]
    text = shared_page(shape, found)
    assert "| alone | cpu | 1.00 (0.90 to 1.20) | 1.00 (1.00 to 1.00) |  |" in text
    assert "| apart | a or a + b | 1.00 (1.00 to 1.00) | 1.10 (1.10 to 1.10) | 1.50 (1.50 to 1.50) |" in text
    assert "| cpu | 2.5 s |" in text
    assert shared_page(shape, []) == ""
