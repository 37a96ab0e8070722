"""Records become the arrays of a result."""

from __future__ import annotations

import msgspec
import numpy as np

from llmd.api.draws import GREEDY, HOST
from llmd_backend_vulkan.outputs.layout import RECORD_START, OutputsLayout
from llmd_backend_vulkan.outputs.results import read_results
from tests.plugins.backend_vulkan.outputs.test_outputs import INF, LIMITS, VOCAB, draws_of, select


def test_fields_are_read_from_their_places() -> None:
    layout = OutputsLayout(VOCAB, LIMITS)
    words = np.arange(layout.results_words, dtype=np.uint32)
    selection = select(2, raw_top=3)
    result = read_results(words, layout, selection)
    second = layout.max_outputs + layout.record_words
    assert result.num_allowed[1] == second + 4
    assert result.ids[1, 0] == second + RECORD_START
    assert result.edited[1].view(np.int32)[0] == second + RECORD_START + layout.kept
    assert result.top_ids.shape == (2, 3)
    assert result.top_raw[1].view(np.int32)[0] == second + RECORD_START + 3 * layout.kept + layout.raw_kept
    assert np.isnan(result.target_raw[0])
    assert result.tokens is None


def test_rows_of_the_host_have_no_token_and_results_are_copies() -> None:
    layout = OutputsLayout(VOCAB, LIMITS)
    words = np.full(layout.results_words, 5, np.uint32)
    draws = draws_of([(1.0, 1.0, INF, 1.0, -INF, -INF)] * 2, [HOST, GREEDY])
    result = read_results(words, layout, msgspec.structs.replace(select(2), draws=draws))
    words[:] = 0
    assert result.tokens is not None
    assert result.tokens.tolist() == [-1, 5]
    assert result.ids[0, 0] == 5
