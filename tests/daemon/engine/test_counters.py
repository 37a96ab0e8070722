"""What an engine tells of itself."""

from __future__ import annotations

from collections.abc import Callable

from llmd.engine.core import EngineCore
from tests.serving.cores import run, submit

MakeCore = Callable[..., EngineCore]


def test_report_counts_steps_and_tokens_until_reset(make_core: MakeCore) -> None:
    core = make_core()
    run(core, submit(1, 300, max_tokens=3))
    report = core.report()
    assert (report.steps, report.prompt_tokens, report.output_tokens) == (4, 300, 3)
    assert report.prefill_s > 0
    assert report.decode_s > 0
    core.reset_counters()
    assert core.report().steps == 0
